"""Eight writers beside compaction and clean-up: each acknowledged commit stands exactly once."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from ktk_engine.errors import CommitConflictError, KtkError, VersionGoneError
from ktk_engine.log.garbage import Retention
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import read_entries, resolve
from ktk_engine.maintain.check import check
from ktk_engine.maintain.cleanup import run_cleanup
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.write.build import build
from ktk_engine.write.retained import Retained
from tests.faults.content import TABLE, Row, Verb
from tests.faults.read import rows_of
from tests.faults.report import Tally
from tests.faults.scale import LARGE
from tests.faults.verbs import TARGETS, run, table

WRITERS, COMMITS = 8, 50 if LARGE else 8
_CONTEXT = multiprocessing.get_context("forkserver")
_SCOPE = scope_of(TABLE)
_NOTHING_KEPT = Retention(timedelta(0), 1)


def test_many_writers(request, tmp_path):
    store = LocalStore(tmp_path / "s")
    run(store, Verb("build", TABLE, (("a", 0, 0),)))
    writers = [_start(_write, store.root, number) for number in range(1, WRITERS + 1)]
    others = [_start(work, store.root) for work in (_compact, _comment, _clean_up, _clean_up)]
    acknowledged: list[Row] = [("a", 0, 0)]
    tally = Tally(f"commits by {WRITERS} writers beside compaction, comments and clean-up")
    for number, (process, connection) in enumerate(writers, 1):
        rows, errors = connection.recv()
        process.join()
        acknowledged += rows
        tally.outcomes["acknowledged"] += len(rows)
        for error in errors:
            tally.bad(f"writer {number}", error)
    for process, connection in others:
        connection.send("stop")
        done, errors = connection.recv()
        process.join()
        tally.outcomes[f"{done[0]} beside them"] += done[1]
        for error in errors:
            tally.bad(done[0], error)
    state = resolve(store, _SCOPE)
    found = Counter(rows_of(store, state.snapshot(TABLE)))
    if found != Counter(acknowledged):
        lost, more = Counter(acknowledged) - found, found - Counter(acknowledged)
        tally.bad("at the end", f"lost {dict(lost)}, too many {dict(more)}")
    assert [e.version for e, _ in read_entries(store, _SCOPE, 0)] == [*range(1, state.version + 1)]
    assert not check(store, TABLE).problems
    tally.finish(request)


def _start(work, root: Path, *arguments):
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_alone, args=(work, theirs, root, *arguments))
    process.start()
    theirs.close()
    return process, ours


def _alone(work, connection: Connection, root: Path, *arguments) -> None:
    logging.disable()
    work(connection, LocalStore(root), *arguments)


def _write(connection: Connection, store: LocalStore, number: int) -> None:
    """Append rows, or replace a partition that is this writer's own; again after a conflict."""
    done: list[Row] = []
    errors: list[str] = []
    for commit in range(COMMITS):
        row = ("a/%", number * 1000 + commit, commit)
        for _ in range(100):
            try:
                build(store, table(TABLE, (row,)), TARGETS[TABLE], retained=Retained("append"))
                done.append(row)
                break
            except CommitConflictError:
                continue
            except KtkError as error:
                errors.append(f"{type(error).__name__}: {error}")
                break
        else:
            errors.append(f"{row}: a hundred conflicts")
    connection.send((done, errors))


def _compact(connection: Connection, store: LocalStore) -> None:
    _again_and_again(connection, store, "compactions", lambda n: run(store, Verb("compact", TABLE)))


def _comment(connection: Connection, store: LocalStore) -> None:
    comment = Verb("comment", TABLE)
    _again_and_again(
        connection, store, "comments", lambda n: run(store, replace(comment, number=n))
    )


def _clean_up(connection: Connection, store: LocalStore) -> None:
    _again_and_again(
        connection, store, "clean-ups", lambda n: run_cleanup(store, _SCOPE, _NOTHING_KEPT)
    )


def _again_and_again(connection: Connection, store: LocalStore, what: str, act) -> None:
    done, errors = 0, []
    while not connection.poll():
        try:
            act(done)
            done += 1
        except (CommitConflictError, VersionGoneError):
            pass  # said, and nothing was done
        except KtkError as error:
            errors.append(f"{type(error).__name__}: {error}")
        time.sleep(0.05)
    connection.send(((what, done), errors))
