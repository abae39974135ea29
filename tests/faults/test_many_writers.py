"""Eight writers along with compaction and clean-up: each acknowledged commit is there once."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest

from ktk_engine.errors import CommitConflictError, KtkError, VersionGoneError
from tests.faults.content import TABLE, Row, Verb
from tests.faults.invariants import problems_of
from tests.faults.read import rows_of
from tests.faults.report import Tally
from tests.faults.scale import LARGE
from tests.faults.verbs import TARGETS, run, table
from tests.support.changes import Retention, build, run_cleanup
from tests.support.committed import read_entries, resolve, scope_of
from tests.support.stores import ObjectStore, open_store

# Writers, commits of each, and what is done at the same time.
_SCALE = {"local": (8, 50 if LARGE else 5), "s3": (8, 50) if LARGE else (4, 3)}
Place = tuple[str, dict[str, Any]]  # address and settings of a store
_CONTEXT = multiprocessing.get_context("forkserver")
_SCOPE = scope_of(TABLE)
_NOTHING_KEPT = Retention(timedelta(0), 1)


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_many_writers(request, kind, tmp_path):
    place: Place = (str(tmp_path / "s"), {})
    if kind == "s3":
        server = request.getfixturevalue("s3_server")
        place = (server.new_url(), server.options)
    store = open_store(*place)
    count, commits = _SCALE[kind]
    beside = (_compact, _comment, _clean_up, _clean_up) if count == 8 else (_compact, _clean_up)
    run(store, Verb("build", TABLE, (("a", 0, 0),)))
    writers = [_start(_write, place, number, commits) for number in range(1, count + 1)]
    others = [_start(work, place) for work in beside]
    acknowledged: list[Row] = [("a", 0, 0)]
    tally = Tally(f"commits by {count} writers on {kind} along with compaction, comments, clean-up")
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
        tally.outcomes[f"{done[0]} meanwhile"] += done[1]
        for error in errors:
            tally.bad(done[0], error)
    state = resolve(store, _SCOPE)
    found = Counter(rows_of(store, state.snapshot(TABLE)))
    if found != Counter(acknowledged):
        lost, more = Counter(acknowledged) - found, found - Counter(acknowledged)
        tally.bad("at the end", f"lost {dict(lost)}, too many {dict(more)}")
    assert [e.version for e, _ in read_entries(store, _SCOPE, 0)] == [*range(1, state.version + 1)]
    assert not problems_of(store, TABLE)
    tally.finish(request)


def _start(work, place: Place, *arguments):
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_alone, args=(work, theirs, place, *arguments))
    process.start()
    theirs.close()
    return process, ours


def _alone(work, connection: Connection, place: Place, *arguments) -> None:
    logging.disable()
    work(connection, open_store(*place), *arguments)


def _write(connection: Connection, store: ObjectStore, number: int, commits: int) -> None:
    """Append rows, or replace a partition that is this writer's own; again after a conflict."""
    done: list[Row] = []
    errors: list[str] = []
    for commit in range(commits):
        row = ("a/%", number * 1000 + commit, commit)
        for _ in range(100):
            try:
                build(store, table(TABLE, (row,)), TARGETS[TABLE], mode="append")
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


def _compact(connection: Connection, store: ObjectStore) -> None:
    _again_and_again(connection, store, "compactions", lambda n: run(store, Verb("compact", TABLE)))


def _comment(connection: Connection, store: ObjectStore) -> None:
    comment = Verb("comment", TABLE)
    _again_and_again(
        connection, store, "comments", lambda n: run(store, replace(comment, number=n))
    )


def _clean_up(connection: Connection, store: ObjectStore) -> None:
    _again_and_again(
        connection, store, "clean-ups", lambda n: run_cleanup(store, _SCOPE, _NOTHING_KEPT)
    )


def _again_and_again(connection: Connection, store: ObjectStore, what: str, act) -> None:
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
