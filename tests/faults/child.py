"""Runs one operation in a process of its own, which is killed, interrupted or made to fail."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from ktk_engine.errors import KtkError
from tests.faults.content import Verb
from tests.faults.system_calls import Fault, Trap
from tests.faults.verbs import run
from tests.support.stores import LocalStore
from tests.support.tiny_bounds import tiny_bounds, tiny_indices

_CONTEXT = multiprocessing.get_context("forkserver")
_PATIENCE = 60  # seconds


@dataclass(frozen=True)
class Moment:
    """When and how an operation is disturbed.

    Attributes:
        fault: what happens.
        call: at which call of the system; 0 means at a time.
        after: whether that call is done first.
        seconds: at which time after the start, where `call` is 0.
    """

    fault: Fault
    call: int = 0
    after: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How it ended.

    Attributes:
        end: `done`, `dead`, `interrupted`, `refused` (one of our errors) or `raw` (another one).
        message: of the error.
        calls: how many calls of the system there were.
        seconds: how long the operation took.
    """

    end: str
    message: str = ""
    calls: int = 0
    seconds: float = 0.0


def outcome_of(operation: Callable[[], None]) -> Outcome:
    """Run an operation and say how it ends, whatever it raises."""
    start = time.perf_counter()
    try:
        operation()
        outcome = Outcome("done")
    except (KeyboardInterrupt, SystemExit):
        outcome = Outcome("interrupted")
    except KtkError as error:
        outcome = Outcome("refused", str(error))
    except BaseException as error:  # noqa: BLE001 - what else comes is the outcome
        outcome = Outcome("raw", f"{type(error).__name__}: {error}")
    return replace(outcome, seconds=time.perf_counter() - start)


def bounds(in_segments: bool) -> AbstractContextManager[None]:
    """Bounds for few rows, which make segments of indexes, and maybe of all else.

    Args:
        in_segments: whether tables of files, too, are stored in segments, which are merged.
    """
    return tiny_bounds() if in_segments else tiny_indices(INDEX_FILE_BYTES=1_500)


def disturbed(root: Path, verb: Verb, moment: Moment, in_segments: bool = False) -> Outcome:
    """Run an operation in a process of its own, and disturb it."""
    ours, theirs = _CONTEXT.Pipe()
    child = _CONTEXT.Process(target=_run, args=(theirs, str(root), verb, moment, in_segments))
    child.start()
    theirs.close()
    try:
        assert ours.recv() == "started"
        if not moment.call and moment.seconds:
            time.sleep(moment.seconds)
            with suppress(ProcessLookupError):  # it was faster
                os.kill(child.pid, signal.SIGKILL if moment.fault == "kill" else signal.SIGINT)
        outcome: Outcome = ours.recv() if ours.poll(_PATIENCE) else Outcome("stuck")
    except (EOFError, ConnectionResetError):
        outcome = Outcome("dead")
    child.join(_PATIENCE)
    if child.is_alive():
        child.kill()
        return Outcome("stuck", "the process did not end")
    return outcome


def _run(connection: Connection, root: str, verb: Verb, moment: Moment, in_segments: bool) -> None:
    logging.disable()
    store = LocalStore(root)
    calls = 0

    def run_in_trap() -> None:
        nonlocal calls
        connection.send("started")
        trap = Trap(moment.fault, moment.call, moment.after)
        try:
            with bounds(in_segments):
                run(store, verb)
        finally:
            calls = trap.calls

    connection.send(replace(outcome_of(run_in_trap), calls=calls))
