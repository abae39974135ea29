"""Two and three writers, in all orders of their calls that interrupt one once, and in random ones.

KTK_INTERLEAVINGS=<number> tries more of them; KTK_INTERLEAVING='<scenario>: <schedule>', as a
failure shows it, runs one alone.
"""

from __future__ import annotations

import os
from itertools import count, islice

import pytest

from ktk_engine.maintain import copy  # deep: patched
from tests.integration.random.interleaved import SCENARIOS, interleave
from tests.support.interleaving import Schedule, bounded

NUMBER = int(os.environ.get("KTK_INTERLEAVINGS", "500"))
ONLY = os.environ.get("KTK_INTERLEAVING", "")


def schedules(name, writers, most):
    """Half of them by a bound, spread over all that there are; the others by chance."""
    if ONLY:
        wanted, _, text = ONLY.partition(": ")
        return [Schedule.parse(text)] if wanted == f"{name}, {writers} writers" else []
    steps = interleave(SCENARIOS[name], Schedule(), writers).step
    interrupted = 2 if NUMBER > 500 else 1
    found = list(bounded(steps, writers, interrupted))
    chosen = found[:: max(1, 2 * len(found) // most)][: most // 2]
    return [*chosen, *(Schedule(seed=n) for n in islice(count(), most - len(chosen)))]


@pytest.mark.parametrize("writers", [2, 3])
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_change_is_there_once_and_published_forms_never_go_back(name, writers, monkeypatch):
    monkeypatch.setattr(copy, "_THREADS", 1)  # threads of a writer would come in any order
    for schedule in schedules(name, writers, NUMBER // (2 * len(SCENARIOS))):
        try:
            interleave(SCENARIOS[name], schedule, writers)
        except AssertionError as error:
            error.add_note(f"KTK_INTERLEAVING='{name}, {writers} writers: {schedule}'")
            raise
