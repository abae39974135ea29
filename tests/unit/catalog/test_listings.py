"""However many cubes and tables a store has, its documents are listed once."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from ktk_engine.catalog.catalog import Catalog, list_relations
from ktk_engine.describe.info import list_contents  # deep: it lists what the catalog lists
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.maintain.orphans import ProjectNodes, find_orphans  # deep: as the adapter asks
from tests.support.changes import (
    StagedStore,
    WriteRequest,
    build,
    publish_stages,
    remove,
    rename,
    run_sql,
    undrop,
)
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
        store.put(f".ktk/dataset/other_{number}/log/{1:020}.json", b"{}")
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
     ("cube:c7", False), ("hidden", True), ("s7", True), ("S7", True)],
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


@pytest.mark.parametrize(
    "change",
    [
        "create table s.n (a int)",
        "create or replace table s.t (a int)",
        "create table if not exists s.t (a int)",
        "create or replace table s.v (a int)",  # in place of a view
        "alter table s.t add columns (b int)",
        "truncate table s.t",
        "drop table s.t",
        "drop table if exists s.gone",
        "drop view s.v",
        lambda store: Store.of(store).write_table("n", rows(1)),
        lambda store: rename(store, "t", "n"),
        lambda store: undrop(store, "dropped"),
    ],
)
def test_a_statement_costs_what_it_names(thirty_cubes, change):
    """And not what a schema has besides."""

    def calls(others, tables):
        store = InterruptingStore(others)
        build(store, rows(1), WriteRequest("t"))
        build(store, rows(1), WriteRequest("dropped"))
        remove(store, "dropped")
        add_view(store, ViewDocument("v", "view", sql="select 1 as a"))
        store = many_names(store.objects, tables)
        if callable(change):
            change(store)
        else:
            assert run_sql(store, change)
        return len(store.calls)

    in_ten = calls({k: v for k, v in thirty_cubes.items() if "c7" in k}, 10)
    assert calls(thirty_cubes, 1300) <= in_ten + 5


def seed(store, cube, relation="", dataset="s"):
    build(store, cells(1), WriteRequest(dataset, "seed", cube, ("x",), ("p",), relation=relation))


def is_free(store, name):
    """Whether a statement may create a table of a name, as looking it up says, too."""
    found = Catalog.of(InterruptingStore(store.objects)).find(name)
    try:
        run_sql(InterruptingStore(store.objects), f"create or replace table s.`{name}` (a int)")
    except ConsistencyError:
        assert found is not None
        return False
    return found is None


def without_notes(store):
    """The store as an earlier version left it."""
    return InterruptingStore({k: v for k, v in store.objects.items() if "/relation/" not in k})


def test_a_name_that_a_dataset_gets_or_gives_up(objects):
    store = InterruptingStore(objects)
    seed(store, "f", "orders")
    assert not is_free(store, "orders") and not is_free(store, "Orders")
    seed(store, "f", "sales 2024/Ä..")  # any text
    assert is_free(store, "orders")
    assert Catalog.of(store).find("SALES 2024/ä..").uuid == "f++s"
    remove(store, "f", cascade=True)
    assert Catalog.of(store).find("sales 2024/Ä..") is None
    seed(store, "f", "orders")
    assert not is_free(store, "orders")


@pytest.mark.parametrize("name", ["orders", "ORDERS", "hidden"])
def test_names_that_an_earlier_version_gave(name):
    store = InterruptingStore()
    seed(store, "f", "orders")
    build(store, cells(1, value="w"), WriteRequest("hidden", "enrichment", "f", ("x",), ("p",)))
    seed(store, "g", "g1")
    seed(store, "h")
    store.delete(["f++hidden.by-dataset-metadata.json", ".ktk/cube/f/published/f++hidden"])
    old = without_notes(store)
    assert not is_free(old, name) and is_free(old, "other")
    seed(old, "g", "g2")  # which notes its names
    assert not is_free(old, name) and is_free(old, "g1") and not is_free(old, "g2")
    build(old, cells(1, value="z"), WriteRequest("z", "enrichment", "f", ("x",), ("p",)))
    seed(old, "h", "h1")
    assert not any("/cube/g/" in key for _, key in reads(old, name))
    assert not is_free(old, name) and not is_free(old, "z")


def reads(store, name):
    store = InterruptingStore(store.objects)
    Catalog.of(store).known_as(name)
    return store.calls


def test_a_dataset_of_another_program_in_a_noted_cube(objects):
    store = InterruptingStore(objects)
    for key in [key for key in store.objects if key.startswith("c++e")]:
        store.objects[key.replace("c++e", "c++foreign")] = store.objects[key]
    metadata = {"ktk_cube_is_seed": False, "ktk_cube_dimension_columns": ["x"]}
    write_plain(store, "c++foreign", cells(1), ("p",), metadata, ())
    assert Catalog.of(store).find("foreign").uuid == "c++foreign"
    assert not is_free(store, "FOREIGN")


def test_names_are_noted_before_the_commit_and_once(objects):
    store = InterruptingStore(objects)
    seed(store, "f", "orders")
    puts = [key for method, key in store.calls if method.startswith("put")]
    notes = [key for key in puts if "/relation/" in key]
    (entry,) = [key for key in puts if "/cube/f/log/" in key]
    assert [key.rpartition("/")[2] for key in notes] == ["f", "f"]  # the name, and the mark
    assert notes[1] == ".ktk/relation/noted/f"
    assert puts.index(notes[1]) < puts.index(entry)
    store.calls.clear()
    build(store, cells(2), WriteRequest("s", "seed", "f", ("x",), ("p",), relation="orders"))
    build(store, rows(1), WriteRequest("plain"))
    assert not [call for call in store.calls if "/relation/" in call[1]]


def test_a_name_that_is_noted_between_two_listings():
    """The cube is marked after its notes, so the marks are read before the notes."""
    store = InterruptingStore()
    seed(store, "f", "orders")
    old = without_notes(store)

    class Meanwhile(InterruptingStore):
        def list_names(self, folder="", prefix="", since="", at_most=None):
            found = super().list_names(folder, prefix, since, at_most)
            if folder.startswith(".ktk/relation/"):
                for key in store.objects.keys() - self.objects.keys():
                    self.objects[key] = store.objects[key]
            return found

    assert [item.uuid for item in Catalog.of(Meanwhile(old.objects)).known_as("orders")] == ["f++s"]


@pytest.mark.parametrize("ends", ["published", "discarded", "killed"])
def test_names_of_staged_runs_and_of_lost_writes(objects, ends):
    store = InterruptingStore(objects)
    if ends == "killed":
        killed = InterruptingStore(store.objects)
        seed(killed, "f", "orders")
        at = killed.calls.index(("put_if_absent", f".ktk/cube/f/log/{1:020}.json"))
        store.at = at
        with pytest.raises(KeyboardInterrupt):
            seed(store, "f", "orders")
        store.at = -1
    else:
        stage = StagedStore(store)
        seed(stage, "f", "orders")
        assert Catalog.of(stage).find("orders").uuid == "f++s"
        assert is_free(store, "orders")
        if ends == "published":
            publish_stages([stage])
        else:
            stage.close({})
    assert is_free(store, "orders") is (ends != "published")


def test_a_table_of_another_program_may_have_the_name_of_a_model_in_a_cube(objects):
    store = InterruptingStore(objects)
    target = WriteRequest("s", "seed", "f", ("x",), ("p",), relation="orders")
    build(store, cells(1), target)
    assert Catalog.of(store).find("ORDERS").uuid == "f++s"
    write_plain(store, "orders", rows(1), (), {}, ())
    with pytest.raises(ConsistencyError, match="means several relations: f\\+\\+s, orders"):
        Catalog.of(store).find("orders")
