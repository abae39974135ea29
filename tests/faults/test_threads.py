"""Threads that share one `Store` and one `LocalStore`, while another process writes."""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from random import Random

from ktk_engine import Store
from tests.faults.content import ENRICHMENT, PLACES, SEED, TABLE, Verb, choose_rows
from tests.faults.invariants import SCOPES, problems_of
from tests.faults.read import rows_of
from tests.faults.report import Tally
from tests.faults.scale import LARGE
from tests.faults.scale import SEED as CHANCE
from tests.faults.verbs import run
from tests.support.committed import describe, list_contents, read_history, resolve
from tests.support.dataset_builder import write_plain_nyc
from tests.support.queries import comparison, prune
from tests.support.stores import LocalStore

THREADS = 12
SECONDS = 60.0 if LARGE else 4.0
_CONTEXT = multiprocessing.get_context("forkserver")


def test_threads(request, tmp_path):
    store = LocalStore(tmp_path / "s")
    random = Random(f"threads-{CHANCE}")
    for uuid in (TABLE, SEED, ENRICHMENT):
        run(store, Verb("build", uuid, choose_rows(random, uuid)))
        for _ in range(5):
            run(store, Verb("append", uuid, choose_rows(random, uuid)))
    write_plain_nyc(store)
    ours, theirs = _CONTEXT.Pipe()
    writer = _CONTEXT.Process(target=_write, args=(theirs, str(store.root)))
    writer.start()
    tally = Tally(f"questions of {THREADS} threads to one Store along with a writer")
    asker, end = _Asker(store), time.monotonic() + SECONDS
    barrier, lock = threading.Barrier(THREADS), threading.Lock()

    def ask(number: int) -> None:
        chance = Random(f"{CHANCE}-{number}")
        barrier.wait()
        while time.monotonic() < end:
            question = chance.choice(asker.questions)
            try:
                question(chance)
            except Exception:  # noqa: BLE001 - nothing of the kind may happen
                with lock:
                    tally.bad(f"thread {number}, {question.__name__}", traceback.format_exc(-3))
            else:
                with lock:
                    tally.good(question.__name__)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(ask, range(THREADS)))
    ours.send("stop")
    assert ours.recv() > 1
    writer.join()
    tally.finish(request)


class _Asker:
    """Questions to one shared object, each of which knows what is right."""

    def __init__(self, store: LocalStore) -> None:
        self._store, self._shared = store, Store(store.root)
        self._cube = self._shared.cube("c")
        self._plans = {
            where: self._files(self._cube.query(where=where)) for where in self._conditions()
        }
        self.questions = [self.plan, self.foreign, self.newest, self.table, self.about, self.check]

    def _conditions(self) -> list[str]:
        state = resolve(self._store, SCOPES[0])
        payloads = sorted({row[2] for row in rows_of(self._store, state.snapshot(SEED))})
        return [f"v = {payload}" for payload in payloads]

    @staticmethod
    def _files(query) -> list[list[str]]:
        return [item.files["key"].to_pylist() for item in query.plan.datasets]

    def plan(self, chance: Random) -> None:
        where = chance.choice(sorted(self._plans))
        query = self._cube.query(where=where)
        assert self._files(query) == self._plans[where]
        assert "cube c" in query.explain()

    def foreign(self, chance: Random) -> None:
        """A cube of Kartothek's, of whose files only the footers know anything."""
        query = self._shared.cube("nyc").query(where=f"hour = {chance.choice((1, 2))}")
        assert query.plan.datasets

    def newest(self, chance: Random) -> None:
        assert sorted(self._shared.cubes()) == ["c", "nyc"]
        assert self._shared.cube("c").query(where=f"P = '{chance.choice(PLACES)}'").explain()

    def table(self, chance: Random) -> None:
        snapshot = resolve(self._store, SCOPES[1]).snapshot(TABLE)
        condition = comparison("k", snapshot.schema.field("k").type, "=", chance.randrange(12))
        prune(self._store, snapshot, [condition], None, self._shared._cache)
        assert len(rows_of(self._store, snapshot)) == snapshot.rows

    def about(self, chance: Random) -> None:
        assert describe(self._store, chance.choice(("c", "t", "nyc")))
        assert len(list_contents(self._store)) == 3
        entries = read_history(self._store, chance.choice(("c", "t")))
        assert [entry.version for entry in entries] == [*range(len(entries), 0, -1)]

    def check(self, chance: Random) -> None:
        assert not problems_of(self._store, chance.choice(("c", "t", "nyc")))


def _write(connection, root: str) -> None:
    store, random, written = LocalStore(root), Random(3), 0
    while not connection.poll():
        uuid = random.choice((TABLE, SEED, ENRICHMENT))
        name = random.choice(("append", "overwrite", "build", "compact", "comment"))
        run(store, Verb(name, uuid, choose_rows(random, uuid), written))
        written += 1
    connection.send(written)
