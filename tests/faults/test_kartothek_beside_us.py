"""Kartothek 5.3 itself writes, collects garbage and deletes in our store; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ktk_engine.errors import ForeignWriterError, ForeignWriterWarning
from tests.faults.content import TABLE, Verb
from tests.faults.invariants import verify
from tests.faults.read import rows_of
from tests.faults.verbs import run
from tests.support.committed import scope_of, snapshot_of, version_of
from tests.support.documents import document_key
from tests.support.kartothek import needs_kartothek, run_in_oracle
from tests.support.stores import LocalStore

pytestmark = needs_kartothek
FIRST, SECOND, OTHER = (("a", 1, 10), ("b/%", 2, 20)), (("a", 3, 30),), (("b/%", 4, 40),)
_START = """
import sys
from functools import partial
import pandas as pd
from kartothek.io.eager import (
    delete_dataset, garbage_collect_dataset, update_dataset_from_dataframes,
)
from storefact import get_store_from_url
store = partial(get_store_from_url, "hfs://" + sys.argv[1])
"""
UPDATE = _START + (
    'rows = pd.DataFrame({"P": ["b/%"], "k": [4], "v": [40]})\n'
    'update_dataset_from_dataframes([rows], store=store, dataset_uuid="t")'
)
COLLECT = _START + 'garbage_collect_dataset(dataset_uuid="t", store=store)'
DELETE = _START + 'delete_dataset(dataset_uuid="t", store=store)'


def by_kartothek(root: Path, script: str) -> None:
    done = run_in_oracle(script, root)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def store(tmp_path):
    store = LocalStore(tmp_path / "s")
    run(store, Verb("build", TABLE, FIRST))
    run(store, Verb("append", TABLE, SECOND))
    return store


def rows(store: LocalStore) -> list:
    return sorted(rows_of(store, snapshot_of(store, TABLE)))


def test_an_update_is_taken_over(store):
    by_kartothek(store.root, UPDATE)
    assert rows(store) == sorted([*FIRST, *SECOND, *OTHER])
    run(store, Verb("append", TABLE, (("a", 5, 50),)))
    assert rows(store) == sorted([*FIRST, *SECOND, *OTHER, ("a", 5, 50)])
    assert version_of(store, scope_of(TABLE)) == 3


def test_an_update_from_a_stale_document_overwrites_nothing(store):
    """Kartothek read version 2, we committed version 3, and it wrote on top of version 2."""
    stale = store.get(document_key(TABLE))
    run(store, Verb("append", TABLE, (("a", 5, 50),)))
    store.put(document_key(TABLE), stale)
    by_kartothek(store.root, UPDATE)
    with pytest.warns(ForeignWriterWarning), pytest.raises(ForeignWriterError, match="version 2"):
        run(store, Verb("append", TABLE, (("a", 6, 60),)))
    assert version_of(store, scope_of(TABLE)) == 3


def test_its_garbage_collection_leaves_the_newest_version(store):
    run(store, Verb("build", TABLE, FIRST))
    superseded = len(list((store.root / "t" / "table").rglob("*.parquet")))
    by_kartothek(store.root, COLLECT)
    assert len(list((store.root / "t" / "table").rglob("*.parquet"))) < superseded
    verify(store, ({TABLE: tuple(sorted(FIRST))},))
    run(store, Verb("append", TABLE, SECOND))
    verify(store, ({TABLE: tuple(sorted([*FIRST, *SECOND]))},))


def test_a_deletion_is_said_and_does_not_come_back(store):
    by_kartothek(store.root, DELETE)
    removed = "removed by another program"
    with (
        pytest.warns(ForeignWriterWarning, match=removed),
        pytest.raises(ForeignWriterError, match=removed),
    ):
        run(store, Verb("append", TABLE, SECOND))
    run(store, Verb("remove", TABLE))
    run(store, Verb("build", TABLE, OTHER))
    assert rows(store) == sorted(OTHER)
