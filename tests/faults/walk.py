"""A store that goes through one operation after the other, of which each is disturbed."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from tests.faults.child import Moment, Outcome, bounds, disturbed
from tests.faults.content import (
    ARROW_VERBS,
    SPARK_VERBS,
    TABLE,
    Content,
    Verb,
    choose_verb,
    first_content,
)
from tests.faults.invariants import Broken, require, verify, verify_cleanup, verify_published
from tests.faults.report import Tally
from tests.faults.scale import cases
from tests.faults.spark_child import SparkChildren
from tests.faults.system_calls import Fault
from tests.faults.verbs import prepare, run, table
from tests.support.dataset_builder import write_plain
from tests.support.stores import LocalStore


class Writers(ABC):
    """Where disturbed operations run.

    Attributes:
        verbs: what there is, by dataset.
        in_segments: whether they run with bounds by which all is stored in segments.
    """

    verbs: Mapping[str, tuple[str, ...]]

    def __init__(self, in_segments: bool) -> None:
        self.in_segments = in_segments

    @abstractmethod
    def moment(self, root: Path, verb: Verb, fault: Fault, random: Random) -> Moment:
        """Choose when it happens."""

    @abstractmethod
    def disturbed(self, root: Path, verb: Verb, moment: Moment) -> Outcome:
        """Run an operation and disturb it."""


class ArrowWriters(Writers):
    """Operations through Arrow, each in a process that is forked for it."""

    verbs = ARROW_VERBS

    def moment(self, root: Path, verb: Verb, fault: Fault, random: Random) -> Moment:
        """Three of four at a call of the system, the others at any time.

        A run on a copy of the store tells how many calls there are.
        """
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(root, Path(folder) / "s")
            usual = self.disturbed(copy, verb, Moment(fault))
        require(usual.end == "done", f"{verb} was not done on a copy: {usual}")
        if fault in ("kill", "KeyboardInterrupt") and random.random() < 1 / 4:
            return Moment(fault, seconds=random.random() * usual.seconds)
        return Moment(fault, random.randint(1, max(1, usual.calls)), random.random() < 0.5)

    def disturbed(self, root: Path, verb: Verb, moment: Moment) -> Outcome:
        return disturbed(root, verb, moment, self.in_segments)


class SparkWriters(Writers):
    """Operations through Spark, each in a process with a JVM of its own."""

    verbs = SPARK_VERBS

    def __init__(self, in_segments: bool, count: int) -> None:
        super().__init__(in_segments)
        self._children = SparkChildren(ahead=1, in_segments=in_segments)
        self._left = count
        self._seconds = 4.0

    def moment(self, root: Path, verb: Verb, fault: Fault, random: Random) -> Moment:
        """At any time."""
        return Moment(fault, seconds=random.random() * self._seconds * 1.1)

    def disturbed(self, root: Path, verb: Verb, moment: Moment) -> Outcome:
        child = self._children.take(self._left)
        self._left -= 1
        outcome = child.disturbed(root, verb, moment)
        if outcome.end == "done":
            self._seconds = (self._seconds + outcome.seconds) / 2
        return outcome

    def end(self) -> None:
        self._children.end()


def walk(
    tally: Tally,
    folder: Path,
    writers: Writers,
    faults: Sequence[Fault],
    stores: tuple[int, int],
    steps: int = 10,
) -> None:
    """Disturb one operation after the other, on some stores.

    Args:
        tally: gets the outcomes.
        folder: for the stores.
        writers: run the operations.
        faults: one of these happens to each operation.
        stores: how many in each run of the tests, and in the long run.
        steps: how many operations on each.
    """
    what = f"{type(writers).__name__}-{faults[0]}" + "-in-segments" * writers.in_segments
    for case, random in cases(what, *stores):
        with bounds(writers.in_segments):
            store = Walk(folder / case, random, writers)
            for step in range(steps):
                try:
                    tally.good(store.step(random.choice(faults)))
                except Exception as error:  # noqa: BLE001 - any means that something is broken
                    tally.bad(f"{case}, step {step}", f"{_where(error)} [{store.did}]")
                    break


class Walk:
    """One store and what it should hold.

    Attributes:
        store: the store.
        content: its rows.
        did: what was done last, for messages.
    """

    def __init__(self, root: Path, random: Random, writers: Writers) -> None:
        self.store = LocalStore(root)
        self.did = "nothing"
        self.content, verbs = first_content(random)
        self._random, self._writers = random, writers
        if writers.in_segments:  # the table began as Kartothek's, with an index file
            first, *verbs = verbs
            write_plain(self.store, TABLE, table(TABLE, first.rows), ("P",), indexes=("k",))
        for verb in verbs:
            run(self.store, verb)

    def step(self, fault: Fault) -> str:
        """Disturb one operation, check everything, and let the next ones mend it.

        Args:
            fault: what happens to it.

        Returns:
            What came of it.

        Raises:
            Broken: something that has to hold does not.
        """
        verb = choose_verb(self._random, self.content, self._writers.verbs)
        before = self._prepared(verb)
        moment = self._writers.moment(self.store.root, verb, fault, self._random)
        outcome = self._writers.disturbed(self.store.root, verb, moment)
        self.did = f"{verb} {moment} -> {outcome}"
        after = verb.after(self.content)
        require(outcome.end not in ("raw", "stuck"), f"{outcome.end}: {outcome.message}")
        found = verify(self.store, (after,) if outcome.end == "done" else (before, after))
        self.content = found
        self._mend(verb, found == after)
        return _said(outcome, before, after, found)

    def _prepared(self, verb: Verb) -> Content:
        """Do what the operation needs; give what is there before it."""
        prepare(self.store, verb)
        return verb.after(self.content) if verb.name == "publish" else self.content

    def _mend(self, verb: Verb, is_done: bool) -> None:
        """The next process publishes, or writes the same again, or cleans up."""
        if not is_done and verb.name != "replace_where" and self._random.random() < 0.5:
            run(self.store, verb)
            self.content = verb.after(self.content)
            verify(self.store, (self.content,))
        verify_published(self.store)
        if self._random.random() < 0.3:
            verify_cleanup(self.store.root, self.content)


def _said(outcome: Outcome, before: Content, after: Content, found: Content) -> str:
    if outcome.end == "done":
        return "done"
    if before == after:
        return "without effect on rows"
    return "unchanged" if found == before else "committed"


def _where(error: Exception) -> str:
    if isinstance(error, Broken):
        return str(error)
    return "".join(traceback.format_exception(error)[-3:])
