"""What a relation may take the place of, and whose datasets a node may write to."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import CommitConflictError, ConsistencyError
from ktk_engine.warehouse.name_claim import NameClaim, drop_replaced, replaced_relations
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse
from tests.support.changes import WriteRequest, alter_table, build, comment_on
from tests.support.committed import (
    Catalog,
    DbtNode,
    Owner,
    builder_of,
    cube_scope,
    list_relations,
    read_history,
    resolve,
)
from tests.support.dataset_builder import build_table, write_plain, write_plain_nyc
from tests.support.documents import Comments, ViewDocument, add_view, view_key
from tests.support.stores import LocalStore, tree

ROWS = pa.table({"id": [1, 2], "v": [1.0, 2.0]})
MINE = DbtNode("model.p.mine", "p")
ME = Owner(MINE, frozenset({"model.p.mine", "model.p.other"}))


@pytest.fixture
def staged(tmp_path):
    """A warehouse with a stage over it, and the store of its schema as all others see it."""
    warehouse = StagedWarehouse(tmp_path)
    stage = warehouse.create_schema("an")
    return warehouse, stage, LocalStore(tmp_path / "an")


def test_names_are_checked_again_when_a_stage_is_published(staged):
    warehouse, stage, store = staged
    build(stage, ROWS, WriteRequest("t"))
    build(stage, ROWS, cube_target(), history={"node": MINE.node})
    add_view(store, ViewDocument("T", "view", sql="select 1"))
    before = tree(store.root)
    with pytest.raises(CommitConflictError, match="has become the name of the view T meanwhile"):
        warehouse.publish()
    assert tree(store.root).keys() <= before.keys() and list_relations(store)[0].name == "T"


@pytest.mark.parametrize("what", ["view", "dataset"])
def test_a_name_that_became_another_cubes_dataset(staged, what):
    warehouse, stage, store = staged
    if what == "view":
        add_view(stage, ViewDocument("d", "view", sql="select 1"))
    else:
        build(stage, ROWS, WriteRequest("d"))
    build(store, ROWS, cube_target("other"))
    with pytest.raises(CommitConflictError, match=r"known as d, .* dataset other\+\+d meanwhile"):
        warehouse.publish()
    assert [relation.uuid for relation in list_relations(store)] == ["other++d"]


def test_what_a_stage_takes_the_place_of_is_no_other(staged):
    warehouse, stage, store = staged
    add_view(store, ViewDocument("d", "view", sql="select 1"))
    stage.delete([view_key("d")])
    build(stage, ROWS, WriteRequest("d"))
    warehouse.publish()
    assert [relation.uuid for relation in list_relations(store)] == ["d"]


@pytest.mark.parametrize(("word", "left"), [("view", "d"), ("table", "")])
def test_one_of_two_that_share_a_name_can_be_dropped(tmp_path, word, left):
    store = LocalStore(tmp_path / "s")
    build(store, ROWS, WriteRequest("d"))
    add_view(store, ViewDocument("d", "view", sql="select 1"))
    with pytest.raises(ConsistencyError, match="drop view d"):
        Catalog.of(store).find("d")
    found = Catalog.of(store).find("dataset:d")
    assert found.uuid == "d"
    alter_table(store, f"drop {word} s.d")
    assert [relation.uuid for relation in list_relations(store)] == [left]


def test_what_another_node_has_built_meanwhile_is_not_dropped(tmp_path):
    """Before the rows were computed it was a table that may go, then one of another node."""
    store = LocalStore(tmp_path / "s")
    build(store, ROWS, WriteRequest("d"))
    claim = NameClaim("d", "c++d", ME)
    replaced = replaced_relations(store, claim)
    other = replace(WriteRequest("d"), owner=owner("model.q.theirs", "q"))
    build(store, ROWS, other, history={"node": "model.q.theirs"}, full_refresh=True)
    build(store, ROWS, cube_target())
    (note,) = drop_replaced(store, claim, replaced, {})
    assert note.startswith("left d as it is, which was changed meanwhile")
    assert {relation.uuid for relation in list_relations(store)} == {"d", "c++d"}


def cube_target(cube="c", dataset="d", owner=ME, **changes):
    return WriteRequest(dataset, "seed", cube, ("id",), owner=owner, **changes)


def owner(node, project="p"):
    return Owner(DbtNode(node, project), ME.living)


def test_the_log_says_who_builds_and_under_which_name(store):
    build(store, ROWS, cube_target(relation="x"))
    build(store, ROWS, cube_target("e"))
    comment_on(store, "c++d", Comments("text"))
    state = resolve(store, cube_scope("c"))
    assert builder_of(state, "c++d") == MINE
    known = Catalog.of(store)
    assert known.find("x").uuid == known.find("c++d").uuid == "c++d"
    assert known.find("d").uuid == "e++d"
    build(store, ROWS, cube_target(relation="d"))
    with pytest.raises(ConsistencyError, match=r"name d means several relations: c\+\+d, e"):
        Catalog.of(store).find("d")


@pytest.mark.parametrize(
    ("by", "mode", "full_refresh", "message"),
    [
        (ME, None, False, ""),
        (owner("model.p.other"), None, True, "is built by model.p.mine, and model.p.other"),
        (owner("model.q.mine", "q"), None, True, "model.q.mine would write to it"),
        (owner("model.q.mine", "q"), "append", False, "model.q.mine would write"),
        (None, None, False, ""),
    ],
)
def test_rows_of_a_cube_go_for_their_own_node_alone(store, by, mode, full_refresh, message):
    build(store, ROWS, cube_target())
    before = tree(store.root)
    target = cube_target(owner=by)
    if not message:
        build(store, ROWS, target, mode=mode, full_refresh=full_refresh)
        return
    with pytest.raises(ConsistencyError, match="Nothing was written") as error:
        build(store, ROWS, target, mode=mode, full_refresh=full_refresh)
    assert message in str(error.value)
    assert "store.cube('c').drop('d')" in str(error.value)
    assert tree(store.root) == before


def test_a_renamed_model_of_the_project_goes_on_with_its_dataset(store):
    build(store, ROWS, cube_target(owner=owner("model.p.gone")))
    done = build(store, ROWS, cube_target())
    assert "takes over c++d from model.p.gone, which the project no longer has" in str(done)
    assert builder_of(resolve(store, cube_scope("c")), "c++d") == MINE


def test_rows_of_nobody_are_added_to_or_taken_in_a_full_refresh(store):
    specification = cube_target()
    metadata = {
        "ktk_cube_is_seed": True,
        "ktk_cube_dimension_columns": ["id"],
        "ktk_cube_partition_columns": [],
        "ktk_cube_suppress_index_on": [],
    }
    write_plain(store, "c++d", ROWS, (), metadata, ("id",))
    before = tree(store.root)
    with pytest.raises(ConsistencyError, match="holds rows that no project built"):
        build(store, ROWS, specification)
    assert tree(store.root) == before
    more = pa.table({"id": [3], "v": [3.0]})
    build(store, more, cube_target(relation="mine"), mode="append")
    state = resolve(store, cube_scope("c"))
    assert state.snapshot("c++d").files.num_rows == 2
    assert builder_of(state, "c++d") == MINE
    assert Catalog.of(store).find("mine").uuid == "c++d"


def test_an_incremental_run_under_another_name_is_refused(store):
    """dbt looks for the relation by name, and would take the run for a first one."""
    build(store, ROWS, cube_target(relation="before"))
    with pytest.raises(ConsistencyError, match="as before, and it would now become after"):
        build(store, ROWS, cube_target(relation="after"), mode="append")
    build(store, ROWS, cube_target(relation="after"))
    assert Catalog.of(store).find("before") is None


def claim(name, uuid="", by=ME, **changes):
    return NameClaim(name, uuid, by, **changes)


def test_datasets_of_cubes_are_replaced_by_their_own_node_in_a_full_refresh(store):
    build(store, ROWS, cube_target())
    for mine in (claim("d"), claim("d", "e++d"), claim("d", "d"), claim("other", "c++other")):
        with pytest.raises(ConsistencyError, match="d would leave cube c"):
            replaced_relations(store, mine)
        (found,) = replaced_relations(store, replace(mine, full_refresh=True))
        assert found.uuid == "c++d"
    for by in (owner("model.p.other"), owner("model.p.mine", "q"), None):
        for uuid in ("", "e++d", "d"):
            with pytest.raises(ConsistencyError, match="Nothing was written"):
                replaced_relations(store, claim("d", uuid, by, full_refresh=True))
    assert replaced_relations(store, claim("d", "c++d")) == ()
    with pytest.raises(ConsistencyError, match=r"is stored as c\+\+d, but its configuration asks"):
        replaced_relations(store, claim("d", "e++d", keeps_versions=True))


def test_what_goes_is_in_the_history_with_node_and_reason(store):
    build(store, ROWS, cube_target())
    mine = claim("d", "e++d", full_refresh=True)
    notes = drop_replaced(store, mine, replaced_relations(store, mine), {"node": "model.p.mine"})
    assert notes == [
        "took d out of cube c, version 2 (`ktk undrop c d` on the command line brings it back)"
    ]
    newest = read_history(store, "c")[0]
    assert newest.history == {
        "node": "model.p.mine",
        "reason": "model.p.mine now builds dataset e++d",
    }


def test_kartotheks_datasets_are_never_replaced(store):
    write_plain_nyc(store)
    write_plain(store, "plain", ROWS)
    before = tree(store.root)
    for name in ("flights", "weather", "plain"):
        for uuid in ("", f"other++{name}", name):
            if uuid == name == "plain":
                continue
            with pytest.raises(ConsistencyError, match="whose builder is unknown"):
                replaced_relations(store, claim(name, uuid, full_refresh=True))
    assert tree(store.root) == before


def test_views_and_tables_go_as_in_sql_unless_another_node_builds_them(store):
    def put(node, project="p"):
        view = ViewDocument("v", "view", sql="select 1", node=node, project=project)
        add_view(store, view)

    for node in ("", "model.p.mine", "model.p.gone"):
        put(node)
        assert [item.name for item in replaced_relations(store, claim("v", "c++v"))] == ["v"]
        assert replaced_relations(store, claim("v")) == ()
    for node, project in (("model.p.other", "p"), ("model.q.gone", "q")):
        put(node, project)
        for uuid in ("", "c++v", "v"):
            with pytest.raises(ConsistencyError, match=f"built by {node}"):
                replaced_relations(store, claim("v", uuid))
    build_table(store, "t")
    assert [item.uuid for item in replaced_relations(store, claim("t"))] == ["t"]
    build(store, ROWS, WriteRequest("t", owner=owner("model.p.other")))
    with pytest.raises(ConsistencyError, match=r"built by model\.p\.other"):
        replaced_relations(store, claim("t"))
    build(store, ROWS, WriteRequest("t", owner=ME))
    assert [item.uuid for item in replaced_relations(store, claim("t"))] == ["t"]
    with pytest.raises(ConsistencyError, match=": table t would be dropped"):
        replaced_relations(store, claim("t", "c++t"))
