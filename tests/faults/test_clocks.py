"""Clocks that jump, and clocks that differ from writer to writer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tests.faults.content import ARROW_VERBS, choose_verb, first_content
from tests.faults.invariants import AgedStore, verify, verify_published
from tests.faults.report import Tally
from tests.faults.scale import cases
from tests.faults.verbs import prepare, run
from tests.support.changes import Retention, run_cleanup
from tests.support.committed import list_scopes
from tests.support.stores import LocalStore

_JUMPS = [
    timedelta(),
    *(timedelta(seconds=n) for n in (-1, 1, -59, 60)),
    *(timedelta(hours=n) for n in (-1, 1, -25, 25)),
    *(timedelta(days=n) for n in (-8, 8, -400, 400, -9000, 20_000)),
]
_RETENTION = Retention(timedelta(days=7), 2)


class JumpingStore(LocalStore):
    """A store whose clock says something else at each look."""

    def __init__(self, root: Path, random: Random) -> None:
        super().__init__(root)
        self._random = random

    def now(self) -> datetime:
        return datetime.now(UTC) + self._random.choice(_JUMPS)


def test_clocks(request, tmp_path):
    """Versions stay in order, a clean-up at any time takes nothing that the head needs."""
    tally = Tally("operations while the clock jumps by up to 55 years")
    for case, random in cases("clock", 3, 40):
        store = JumpingStore(tmp_path / case, random)
        content, verbs = first_content(random)
        for verb in verbs:
            run(store, verb)
        try:
            for _ in range(10):
                verb = choose_verb(random, content, ARROW_VERBS)
                prepare(store, verb)
                run(store, verb)
                content = verb.after(content)
                verify(store, (content,))
                for scope in list_scopes(store):
                    run_cleanup(store, scope, _RETENTION)
                verify(store, (content,))
                tally.good("right")
            verify_published(store)
            for scope in list_scopes(store):
                run_cleanup(AgedStore(store.root), scope, Retention(timedelta(0), 1))
            verify(store, (content,))
        except Exception as error:  # noqa: BLE001 - any means that something is broken
            tally.bad(case, f"{verb}: {type(error).__name__}: {error}")
    tally.finish(request)
