"""Three processes change a cube and a table, by verbs over several datasets, and are killed.

Verbs often find nothing to do in some datasets, or in all. Then a model replays the log: each
version has exactly the rows that its change makes of the version before.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from ktk_engine import Store
from ktk_engine.api.transaction import retry_transaction_on_conflict  # deep: with its history
from ktk_engine.api.write_table import delete_from  # deep: with its history
from ktk_engine.errors import CommitConflictError, VersionGoneError
from tests.faults.read import content_of
from tests.faults.report import Tally
from tests.faults.scale import LARGE, SEED
from tests.integration.delta.readers import by_deltalake
from tests.integration.iceberg.readers import by_pyiceberg
from tests.support.changes import WriteRequest, build, publish_head
from tests.support.committed import (
    State,
    check,
    cube_scope,
    read_entries,
    resolve,
    scope_of,
    state_at,
)
from tests.support.stores import LocalStore
from tests.support.tiny_bounds import tiny_bounds

_WRITERS = 250 if LARGE else 9
_CONTEXT = multiprocessing.get_context("forkserver")
_PLACES, _CELLS = ("a", "b", "c"), range(4)
_PAYLOAD = {"s": "v", "e": "w", "t": "v"}
_TABLE = WriteRequest("t", partition_by=("p",), indexes=("x",))
# A dataset's rows by partition and cell; the table may have a row twice.
Model = dict[str, Counter[tuple[str, int, int]]]
Change = Mapping[str, Any]


def _choose(random: Random, name: str) -> Change:
    """A verb with its rows and condition, as JSON knows it."""
    verb = random.choice(("append", "delete", "delete", "update", "partitions", "table", "clear"))
    column, value = random.choice((("p", random.choice(_PLACES)), ("x", random.choice(_CELLS))))
    datasets = random.choice((None, ["s"], ["e"], ["s", "e"]))
    if verb in ("append", "update"):
        datasets = datasets or ["s", "e"]
    if verb in ("update", "partitions"):
        column, value = "p", random.choice(_PLACES)
    if verb in ("table", "clear"):
        datasets = ["t"]
    place = value if column == "p" else random.choice(_PLACES)
    cells = random.sample(_CELLS, random.randint(1, 2))
    rows = [(place, x, random.randrange(1_000)) for x in cells]
    return {
        "name": name,
        "verb": verb,
        "where": (column, value),
        "rows": rows,
        "datasets": datasets,
    }


def _made(change: Change, old: Model) -> Model:
    """What a change makes of the rows."""
    new = {name: Counter(rows) for name, rows in old.items()}
    column, value = change["where"]
    place = {"p": 0, "x": 1}[column]
    for name in change["datasets"] or ("s", "e"):
        if change["verb"] not in ("append", "table"):
            new[name] = Counter({r: n for r, n in new[name].items() if r[place] != value})
        if change["verb"] in ("append", "update", "table"):
            rows = [tuple(row) for row in change["rows"]]
            if name != "t":  # of two rows of one cell the later counts
                cells = {row[:2] for row in rows}
                new[name] = Counter({r: n for r, n in new[name].items() if r[:2] not in cells})
            new[name].update(rows)
    return new


def _do(face: Store, change: Change) -> None:
    column, value = change["where"]
    where, datasets = f"{column} = {value!r}", change["datasets"]
    said, verb = {"change": json.dumps(change)}, change["verb"]
    if verb == "table":
        build(face._store, _rows(change, "t"), _TABLE, "append", history=said)
    elif verb == "clear":
        delete_from(face, "t", where, said)
    else:
        rows = {name: _rows(change, name) for name in datasets or ()}
        verbs = {
            "append": lambda cube: cube.append(rows),
            "delete": lambda cube: cube.delete(where, datasets),
            "update": lambda cube: cube.update(rows, where),
            "partitions": lambda cube: cube.remove_partitions(where, datasets),
        }
        retry_transaction_on_conflict(face, "c", verbs[verb], said)


def _rows(change: Change, name: str) -> pa.Table:
    names = ("p", "x", _PAYLOAD[name])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in change["rows"]])


def _write(connection: Connection, root: str, name: str) -> None:
    """Change the store until somebody kills this process, and say what was acknowledged."""
    logging.disable()
    random, number = Random(name), 0
    with tiny_bounds():
        while True:
            change = _choose(random, f"{name}-{number}")
            number += 1
            connection.send(("begun", change))
            try:
                _do(Store(root), change)
            except (CommitConflictError, VersionGoneError):
                connection.send(("refused", change))
            else:
                connection.send(("done", change))


def _read(connection: Connection, root: str) -> None:
    """Read what is published in a loop, until somebody asks for what was seen."""
    logging.disable()
    seen: list[list[tuple[Any, ...]]] = []
    while not connection.poll():
        for read in (by_deltalake, by_pyiceberg):
            rows = read(f"{root}/t").select(["p", "x", "v"])
            seen.append(sorted(tuple(row.values()) for row in rows.to_pylist()))
    connection.send(seen)


def test_three_writers_that_are_killed(request, tmp_path):
    root, random = str(tmp_path / "s"), Random(SEED)
    tally = Tally("changes of a cube and a table by three processes that are killed")
    store = LocalStore(Path(root))
    with tiny_bounds():
        _prepare(Store.of(store))
    ours, theirs = _CONTEXT.Pipe()
    reader = _CONTEXT.Process(target=_read, args=(theirs, root))
    reader.start()
    said = _killed_again_and_again(root, random, tally)
    ours.send("stop")
    seen = ours.recv()
    reader.join()
    with tiny_bounds():
        _verify(store, said, seen, tally)
    tally.finish(request)


def _prepare(face: Store) -> None:
    rows = {"rows": [(p, x, x) for p in _PLACES for x in (0, 1)]}
    face.build(
        "c",
        {name: _rows(rows, name) for name in ("s", "e")},
        seed="s",
        dimension_columns=["x"],
        partition_by=["p"],
        indexes=["v", "w"],
    )
    build(face._store, _rows(rows, "t"), _TABLE)
    face.table("t").publish(["delta", "iceberg"])


class _Writer:
    """A process that is killed soon after a few of its changes were acknowledged."""

    def __init__(self, root: str, number: int, random: Random) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_write, args=(theirs, root, f"w{number}"))
        self.process.start()
        theirs.close()
        self._left, self._pause = random.randint(0, 5), random.uniform(0, 0.5)
        self._end = 0.0

    def listen(self, said: dict[str, str]) -> None:
        """Note what became of its changes."""
        with suppress(EOFError, OSError):
            while self._connection.poll():
                what, change = self._connection.recv()
                said[change["name"]] = what
                self._left -= what == "done"
                if self._left < 0 and not self._end:
                    self._end = time.monotonic() + self._pause

    @property
    def is_over(self) -> bool:
        """Whether it is to be killed."""
        return 0 < self._end < time.monotonic()


def _killed_again_and_again(root: str, random: Random, tally: Tally) -> dict[str, str]:
    """Run three writers, and start another one for each that was killed; what each change got."""
    said: dict[str, str] = {}
    started, running = 0, list[_Writer]()
    while started < _WRITERS or running:
        while len(running) < 3 and started < _WRITERS:
            running.append(_Writer(root, started, random))
            started += 1
        for writer in list(running):
            writer.listen(said)
            if writer.process.exitcode is not None:
                tally.bad("a writer", f"ended by itself: {writer.process.exitcode}")
            elif not writer.is_over:
                continue
            else:
                os.kill(writer.process.pid, signal.SIGKILL)
                tally.good("killed")
            writer.process.join()
            writer.listen(said)
            running.remove(writer)
        time.sleep(0.01)
    return said


def _verify(store: LocalStore, said: Mapping[str, str], seen: list[Any], tally: Tally) -> None:
    tables: list[list[tuple[Any, ...]]] = []
    logged: Counter[str] = Counter()
    for scope in (cube_scope("c"), scope_of("t")):
        head = resolve(store, scope)
        model: Model = {}
        for entry, _ in read_entries(store, scope, 0):
            found = _content(state_at(head, entry.version))
            if "change" in entry.history:
                change = json.loads(entry.history["change"])
                logged[change["name"]] += 1
                model = _made(change, model)
            else:
                model = found
            if found != model:
                tally.bad(f"version {entry.version} of {scope}", f"{entry.history}")
                model = found
            if scope.kind == "dataset":
                tables.append(sorted(found["t"].elements()))
        publish_head(store, scope)  # as the next commit does, after one whose writer was killed
        assert check(store, scope.name).problems == ()
    for name, what in said.items():
        tally.good({"begun": "interrupted"}.get(what, what))
        if logged[name] > 1 or (what == "refused" and logged[name]):
            tally.bad(name, f"{what}, and {logged[name]} times in the log")
    idle = sum(what == "done" and not logged[name] for name, what in said.items())
    tally.outcomes["done without a version"] += idle
    tally.outcomes["published tables read"] += len(seen)
    for rows in seen:
        if rows not in tables:
            tally.bad("a published table", f"{rows} was not a version")
    _verify_indexes(store, tally)


def _content(state: State) -> Model:
    return {
        state.scope.dataset_id(uuid): Counter((p, x, value) for p, value, x in rows)
        for uuid, rows in content_of(state).items()
    }


def _verify_indexes(store: LocalStore, tally: Tally) -> None:
    """Ask for each value of each indexed column."""
    head = resolve(store, cube_scope("c"))
    rows, cube = _content(head), Store.of(store).cube("c")
    extra = {row[:2]: row[2] for row in rows["e"]}
    joined = [(*row, extra.get(row[:2])) for row in rows["s"]]
    for place, column in enumerate(("p", "x", "v", "w")):
        for value in {row[place] for row in joined if row[place] is not None}:
            found = cube.query(["p", "x", "v", "w"], f"{column} = {value!r}").to_arrow()
            wanted = sorted(map(repr, (row for row in joined if row[place] == value)))
            if sorted(repr(tuple(row.values())) for row in found.to_pylist()) != wanted:
                tally.bad(f"{column} = {value!r}", "the index says otherwise")
            tally.good("index values asked for")
