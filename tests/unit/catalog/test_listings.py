"""However many cubes and tables a store has, its documents are listed once."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from ktk_engine.catalog.catalog import list_relations
from ktk_engine.describe.info import list_contents  # deep: it lists what the catalog lists
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.maintain.orphans import ProjectNodes, find_orphans  # deep: as the adapter asks
from tests.support.changes import WriteRequest, build
from tests.support.interrupting_store import InterruptingStore, cells, rows


@pytest.fixture(scope="module")
def objects():
    store = InterruptingStore()
    for name in ("c", "d", "e"):
        build(store, cells(1), WriteRequest("s", "seed", name, ("x",), ("p",)))
        build(store, cells(1, value="w"), WriteRequest("e", "enrichment", name, ("x",), ("p",)))
        build(store, rows(1), WriteRequest(f"t{name}"))
    return store.objects


def missing(store):
    with pytest.raises(DatasetNotFoundError, match="It has: c, d, e, tc, td, te"):
        Store.of(store).relation("gone")


@pytest.mark.parametrize(
    ("action", "most"),
    [
        (list_contents, 1),
        (list_relations, 1),
        (lambda store: Store.of(store).cubes(), 1),
        (lambda store: Store.of(store).tables(), 1),
        (lambda store: find_orphans(store, ProjectNodes("p", {})), 1),
        (missing, 4),  # its own as a cube and as a table, relations, and everything
    ],
)
def test_documents_are_listed_once(objects, action, most):
    store = InterruptingStore(objects)
    action(store)
    assert store.calls.count(("list_names", "")) == most


def test_contents(objects):
    opened = Store.of(InterruptingStore(objects))
    assert (opened.cubes(), opened.tables()) == (["c", "d", "e"], ["tc", "td", "te"])
    opened.drop("d")
    opened.drop("te")
    assert (opened.cubes(), opened.tables()) == (["c", "e"], ["tc", "td"])
