"""Asks a store in a process of its own, which may end."""

from __future__ import annotations

import logging
import multiprocessing
import resource
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from tests.faults.answer import Answer
from tests.faults.questions_without_spark import ask_without_spark
from tests.support.stores import LocalStore

_CONTEXT = multiprocessing.get_context("forkserver")
_SECONDS = 60


def asked_in_child(
    store: LocalStore, uuids: tuple[str, ...], memory: int = 0
) -> Mapping[str, Answer] | None:
    """Ask everything that needs no JVM.

    Args:
        store: the store.
        uuids: datasets to ask about.
        memory: bytes of address space that it may use besides what it has; 0 for any number.

    Returns:
        The answers, their values as text; None if the process ended or took too long.
    """
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_ask, args=(theirs, store, uuids, memory))
    process.start()
    theirs.close()
    answers: Mapping[str, Answer] | None = None
    try:
        if ours.poll(_SECONDS):
            answers = ours.recv()
    except EOFError:
        pass  # it has ended
    if answers is None:
        process.kill()
    process.join()
    return answers


def _ask(connection: Connection, store: LocalStore, uuids: tuple[str, ...], memory: int) -> None:
    logging.disable()
    if memory:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    answers = ask_without_spark(store, uuids)
    connection.send({name: replace(item, value=str(item.value)) for name, item in answers.items()})
