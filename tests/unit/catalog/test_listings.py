"""However many cubes and tables a store has, its documents are listed once."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from ktk_engine.catalog.catalog import Catalog, list_relations
from ktk_engine.describe.info import list_contents  # deep: it lists what the catalog lists
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.maintain.orphans import ProjectNodes, find_orphans  # deep: as the adapter asks
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.documents import ViewDocument, add_view
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


def many_names(objects, tables):
    """A schema in which names are listed that no statement of the test reads."""
    store = InterruptingStore(objects)
    for number in range(tables):
        store.put(f"other_{number}.by-dataset-metadata.json", b"{}")
        store.put(f"_ktk_log/dataset/other_{number}/1.json", b"{}")
    return InterruptingStore(store.objects)


@pytest.fixture(scope="module")
def thirty_cubes():
    store = InterruptingStore()
    for number in range(30):
        build(store, cells(1), WriteRequest(f"s{number}", "seed", f"c{number}", ("x",), ("p",)))
    return store.objects


@pytest.mark.parametrize(
    ("name", "is_table"),
    [("t", True), ("T", True), ("v", False), ("dataset:t", True), ("dataset:c7++s7", True),
     ("cube:c7", False), ("hidden", True)],
)  # fmt: skip
def test_a_name_costs_what_it_stands_for(thirty_cubes, name, is_table):
    """And not what a schema has besides."""

    def calls(others, tables):
        store = InterruptingStore(others)
        build(store, rows(1), WriteRequest("t"))
        build(store, rows(1), WriteRequest("hidden"))
        store.delete(["hidden.by-dataset-metadata.json"])
        add_view(store, ViewDocument("v", "view", sql="select 1 as a"))
        store = many_names(store.objects, tables)
        found = Catalog.of(store).find(name)
        assert found is not None and bool(found.uuid) is is_table
        return len(store.calls)

    in_ten = calls({k: v for k, v in thirty_cubes.items() if "c7" in k}, 10)
    assert calls(thirty_cubes, 1300) <= in_ten + 5


def test_a_table_of_another_program_may_have_the_name_of_a_model_in_a_cube(objects):
    store = InterruptingStore(objects)
    target = WriteRequest("s", "seed", "f", ("x",), ("p",), relation="orders")
    build(store, cells(1), target)
    assert Catalog.of(store).find("ORDERS").uuid == "f++s"
    write_plain(store, "orders", rows(1), (), {}, ())
    with pytest.raises(ConsistencyError, match="means several relations: f\\+\\+s, orders"):
        Catalog.of(store).find("orders")
