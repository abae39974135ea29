"""Writers on one store, of which one runs at a time: who makes the next call is a schedule's.

Each call of the store (a put, a list, a get, a delete) is a step. A schedule says after which
steps another writer goes on, so that each run can be repeated; it is told by a short text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from random import Random

from tests.support.interrupting_store import InterruptingStore

Body = Callable[[InterruptingStore], None]
_LONGEST_WAIT = 60  # seconds, of a writer for the turn: more is a deadlock


@dataclass(frozen=True)
class Schedule:
    """Which writer makes which step.

    Attributes:
        first: the writer that begins.
        switches: number of a step -> how many writers further the turn goes before it.
        seed: where the turn goes by chance instead: each number gives other orders.
    """

    first: int = 0
    switches: Mapping[int, int] = field(default_factory=dict)
    seed: int | None = None

    def __str__(self) -> str:
        if self.seed is not None:
            return f"seed {self.seed}"
        turns = " ".join(f"{step}+{turn}" for step, turn in self.switches.items())
        return f"first {self.first} {turns}".strip()

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read what `str` gives."""
        kind, number, *turns = text.split()
        if kind == "seed":
            return cls(seed=int(number))
        pairs = (turn.split("+") for turn in turns)
        return cls(int(number), {int(step): int(turn) for step, turn in pairs})


def bounded(steps: int, writers: int, most: int) -> Iterator[Schedule]:
    """All schedules in which a writer is interrupted a few times at most.

    Args:
        steps: how many steps a run takes.
        writers: their number.
        most: how often any is interrupted.
    """
    for count in range(most + 1):
        for first, places in product(range(writers), combinations(range(1, steps), count)):
            for turns in product(range(1, writers), repeat=count):
                yield Schedule(first, dict(zip(places, turns, strict=True)))


class SteppingStore(InterruptingStore):
    """One writer's view of a store: each call waits for the turn.

    Attributes:
        run: the run that deals turns; None for one that nobody shares.
        writer: whose calls these are.
    """

    run: Run | None = None
    writer = 0

    def now(self) -> datetime:
        """A clock that goes on with each step."""
        step = self.run.step if self.run else 0
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=self.days, milliseconds=step)

    def _step(self, method, key, action):
        if self.run is None:
            return action()
        with self.run.turn(self.writer, method, key):
            return action()


@dataclass
class Run:
    """One interleaving of writers.

    Attributes:
        objects: what lies in the store.
        schedule: who goes on when.
        seen: is told of each step that succeeded: method and key. It must not raise: a writer
            would take it for an error of the store.
    """

    objects: dict[str, tuple[bytes, datetime]]
    schedule: Schedule
    seen: Callable[[str, str], None] = lambda method, key: None
    step: int = 0
    trace: list[tuple[int, str, str]] = field(default_factory=list)
    _alive: list[int] = field(default_factory=list)
    _current: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def all(self, bodies: Sequence[Body]) -> list[BaseException | None]:
        """Run writers to their ends; gives what each raised."""
        self._chance = Random(self.schedule.seed)
        self._often = self._chance.choice((0.02, 0.1, 0.3, 0.6))
        self._alive = list(range(len(bodies)))
        self._current = self.schedule.first
        if self.schedule.seed is not None:
            self._current = self._chance.randrange(len(bodies))
        raised: list[BaseException | None] = [None] * len(bodies)

        def work(number: int) -> None:
            try:
                bodies[number](self.store(number))
            except BaseException as error:  # noqa: BLE001 - it is judged when all have ended
                raised[number] = error
            with self.turn(number, "end", ""):
                pass

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raised

    def store(self, writer: int) -> SteppingStore:
        """The store, as a writer sees it."""
        store = SteppingStore()
        store.objects, store.run, store.writer = self.objects, self, writer
        return store

    @contextmanager
    def turn(self, writer: int, method: str, key: str) -> Iterator[None]:
        """A step: it waits until it is the writer's turn, and then deals the next one."""
        with self._changed:
            mine = self._changed.wait_for(lambda: self._current == writer, _LONGEST_WAIT)
        assert mine, f"writer {writer} waits for ever: {self.trace[-5:]}"
        try:
            yield
            self.seen(method, key)
        finally:
            self.trace.append((writer, method, key))
            self._deal(writer, is_over=method == "end")

    def _deal(self, writer: int, is_over: bool) -> None:
        """Say who makes the next step."""
        self.step += 1
        turn = self.schedule.switches.get(self.step, 0)
        if self.schedule.seed is not None and self._chance.random() < self._often:
            turn = self._chance.randrange(len(self._alive))
        after = [w for w in self._alive if w > writer] + [w for w in self._alive if w < writer]
        if is_over:
            self._alive.remove(writer)
            turn = turn or 1
        if after and turn:
            with self._changed:
                self._current = after[(turn - 1) % len(after)]
                self._changed.notify_all()
