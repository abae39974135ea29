"""A process of a user without rights, who is asked to read and write."""

from __future__ import annotations

import logging
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from ktk_engine.errors import KtkError
from tests.faults.content import ARROW_VERBS, Verb, choose_rows, first_content
from tests.faults.questions_without_spark import ask_without_spark
from tests.faults.verbs import run
from tests.support.stores import LocalStore

NOBODY = 65534  # user and group
_CONTEXT = multiprocessing.get_context("forkserver")


class Nobody:
    """The process; where the tests are not run by root, it has their own rights."""

    def __init__(self) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function there, and give its result."""
        self._ours.send((work, arguments))
        return self._ours.recv()

    def end(self) -> None:
        self._ours.send(None)
        self._process.join()


def refused(store: LocalStore, verb: Verb) -> str:
    """Write, and give the refusal; empty if it was done."""
    try:
        run(store, verb)
    except KtkError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - none of ours, which the message tells
        return f"a raw error: {type(error).__name__}"
    return ""


def _serve(connection: Connection) -> None:
    logging.disable()
    _import_everything()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    while (asked := connection.recv()) is not None:
        work, arguments = asked
        connection.send(work(*arguments))


def _import_everything() -> None:
    """What is imported late is imported now: later it may not be read."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "s")
        for verb in first_content(Random(11))[1]:
            run(store, verb)
        for uuid, names in ARROW_VERBS.items():
            for name in names:
                refused(store, Verb(name, uuid, choose_rows(Random(1), uuid), 10**6))
        ask_without_spark(store)
