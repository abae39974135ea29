"""What changes and reads by Arrow alone answer, without Java, is what was recorded."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from tests.golden.changed import as_it_is, built, changes_of
from tests.golden.changes import STORAGES
from tests.golden.records import records

SEEDS = range(3)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_changes(tmp_path, storage, seed):
    store = Store(tmp_path / "store")
    changed = built(store, storage, seed)
    head = f"{storage}, seed {seed}"
    with records(f"changes-{storage}", "arrow", f"{head}:") as found:
        found.check(f"{head}: rows at first", changed.start())
        for what, change in changes_of(store, changed, as_it_is):
            found.check(f"{head}: {what}", changed.step(change))
    assert changed.relation.check()["problems"] == ()
