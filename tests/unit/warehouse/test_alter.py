"""Columns that come, go and change their names; comments and properties; on anybody's files."""

from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    DataError,
    DatasetNotFoundError,
    KtkError,
    TypeClassError,
)
from ktk_engine.gate.constraint import CONSTRAINTS  # deep: where they are kept
from ktk_engine.warehouse.alter import alter
from ktk_engine.warehouse.alter_statement import Alteration
from ktk_engine.warehouse.relations import Relations
from ktk_engine.write.present_rows import present_rows  # deep: patched
from tests.support.changes import (
    ChangeSet,
    ColumnChanges,
    Constraint,
    DatasetChange,
    Notes,
    PendingCommit,
    StagedStore,
    WriteRequest,
    alter_columns,
    alter_table,
    build,
    commit,
    publish_stages,
    staged,
)
from tests.support.committed import check, describe, read_history, resolve, scope_of, snapshot_of
from tests.support.dataset_builder import build_overlaid, write_plain
from tests.support.queries import MetadataCache
from tests.support.stores import Warehouse, tree

ODD = pa.table(
    {
        "P": ["a/b", "50%", "x=y", "größe"],
        "n": pa.array([1, None, 3, 4], pa.int32()),
        "u": pa.array([2**64 - 1, 0, None, 7], pa.uint64()),
        "f": [math.nan, -0.0, None, 1.5],
        "d": [decimal.Decimal("1.10"), None, decimal.Decimal("-2.25"), decimal.Decimal("0.00")],
        "t": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None] * 2),
        "s": ["", None, "'\\", "ü\0"],
        "b": [True, None, False, True],
        "none": pa.nulls(4),
        "list": [[1], [], None, [None]],
    }
)


@pytest.fixture
def relations(store):
    """The relations of a warehouse, whose schema `s` the store is."""
    root = store.root.parent
    return Relations(Warehouse(str(root)))


@pytest.fixture
def run(store):
    return partial(alter_table, store)


def rows(store, name="t", key="P"):
    found = Store(store.root).table(name).query().to_arrow(engine="local")
    return repr(found.sort_by(key).to_pylist()), found


def snapshot(store, uuid="t"):
    return snapshot_of(store, uuid)


def stored_names(store, uuid="t"):
    """Names of the columns that the present files really have."""
    return [set(pq.read_schema(store.root / key).names) for key in keys_of(store, uuid)]


def keys_of(store, uuid="t"):
    return snapshot(store, uuid).files["key"].to_pylist()


def operations(store, name="t"):
    return [entry.operation for entry in read_history(store, name)]


@pytest.fixture
def table(store):
    build(store, ODD, WriteRequest("t", partition_by=("P",), indexes=("n",), clustered_by=("s",)))
    more = ODD.slice(0, 2).set_column(0, "P", pa.array(["new", "new"]))
    build(store, more, WriteRequest.of(snapshot(store)), mode="append")
    return store


def test_a_column_is_added_without_writing_a_row(table, run):
    files = snapshot(table).labels
    before, _ = rows(table)
    assert run("alter table s.t add columns (x decimal(5,1) comment 'why', y string)")
    assert snapshot(table).labels == files
    found = rows(table)[1]
    assert found.schema.names == [*ODD.schema.names, "x", "y"]
    assert found["x"].null_count == found["y"].null_count == len(found)
    assert repr(found.drop_columns(["x", "y"]).sort_by("P").to_pylist()) == before
    assert snapshot(table).comments.columns == {"x": "why"}
    assert operations(table)[0] == "alter"
    assert read_history(table, "t")[0].history["reason"] == "add column x, add column y"
    more = ODD.append_column("x", pa.array([decimal.Decimal("1.5")] * 4))
    more = more.append_column("y", pa.array(["y"] * 4))
    build(table, more, WriteRequest.of(snapshot(table)), mode="append")
    assert rows(table)[1]["y"].null_count == 6
    assert not check(table, "t").problems


def test_a_renamed_column_keeps_values_index_order_and_comment(table, run):
    run("comment on column s.t.n is 'number'")
    before, old = rows(table)
    assert run("alter table s.t rename column N to `größer %`")
    assert run("alter table s.t rename column s to `o'k`")
    after = rows(table)[1]
    names = {"n": "größer %", "s": "o'k"}
    assert after.schema.names == [names.get(name, name) for name in old.schema.names]
    assert repr(after.rename_columns(old.schema.names).sort_by("P").to_pylist()) == before
    found = snapshot(table)
    assert set(found.indices) == {"größer %"}
    assert found.clustered_by == ("o'k",)
    assert found.comments.columns == {"größer %": "number"}
    assert all({"n", "s"}.isdisjoint(names) for names in stored_names(table))
    assert Store(table.root).table("t").query(where="`größer %` = 3").count() == 1
    assert not check(table, "t").problems


def test_physical_types_stay(table, run):
    run("alter table s.t rename column n to m")
    files = [pq.read_schema(table.root / key) for key in keys_of(table)]
    assert {(item.field("m").type, item.field("u").type) for item in files} == {
        (pa.int32(), pa.uint64())
    }


@pytest.mark.parametrize("name", ["f", "F"])
def test_a_dropped_column_does_not_come_back(table, run, name):
    run("comment on column s.t.f is 'old'")
    _, old = rows(table)
    assert run(f"alter table s.t drop column {name}")
    assert rows(table)[0] == repr(old.drop_columns(["f"]).sort_by("P").to_pylist())
    assert all("f" not in names for names in stored_names(table))
    assert run("alter table s.t add column f string")
    assert rows(table)[1]["f"].null_count == 6
    assert snapshot(table).comments.columns == {}
    assert Store(table.root).table("t").at(version=2).query(["f"]).to_arrow(engine="local")
    assert not check(table, "t").problems


def test_a_column_that_an_incremental_run_dropped_does_not_come_back(table, run):
    """`sync_all_columns` leaves it in the files that stay."""
    less = ODD.drop_columns(["f", "none"])
    target = WriteRequest(
        "t", partition_by=("P",), indexes=("n",), on_schema_change="sync_all_columns"
    )
    build(table, less, target, mode="append")
    assert any("f" in names for names in stored_names(table))
    again = less.append_column("f", pa.array([1.0] * 4))
    target = replace(target, on_schema_change="append_new_columns")
    for name in ("F", "f"):  # SQL, and Spark where it reads what is published, ignore letter case
        other = again.rename_columns([*less.column_names, name])
        with pytest.raises(ConfigurationError, match=f"alter table t add column {name} double"):
            build(table, other, target, mode="append")
    run("alter table s.t add column f double")
    assert rows(table)[1]["f"].null_count == 10
    build(table, again, target, mode="append")
    assert rows(table)[1]["f"].null_count == 10
    assert not check(table, "t").problems


def test_an_index_goes_with_its_column(table, run):
    run("alter table s.t drop column n")
    assert snapshot(table).indices == {}
    assert not check(table, "t").problems


def test_a_column_without_any_value_takes_a_type(table, run):
    before, _ = rows(table)
    assert run("alter table s.t alter column none type decimal(10,2)")
    found = rows(table)
    assert found[0] == before and pa.types.is_decimal(found[1].schema.field("none").type)
    assert not check(table, "t").problems


@pytest.mark.parametrize("text", ["n type bigint", "n type smallint", "d type decimal(30,2)"])
def test_a_column_holds_every_value_of_its_class_already(table, run, text):
    versions = len(operations(table))
    assert run(f"alter table s.t alter column {text}")
    assert len(operations(table)) == versions


@pytest.mark.parametrize(
    ("action", "error", "reason"),
    [
        ("alter column n type double", ConfigurationError, "an integer cannot hold 0.5"),
        ("alter column n type string", ConfigurationError, "cannot become string"),
        ("alter column d type decimal(10,3)", ConfigurationError, "scale 2 cannot hold"),
        ("drop column P", ConfigurationError, "is a partition column"),
        ("rename column P to q", ConfigurationError, "is a partition column"),
        ("drop column nosuch", ConfigurationError, "has no column `nosuch`"),
        ("rename column n to F", ConfigurationError, "has a column `f` already"),
        ("add column N int", ConfigurationError, "has a column `n` already"),
        ("add column x interval", ConfigurationError, "is not a type"),
        ("add column x struct<>", TypeClassError, "a struct without fields cannot be stored"),
        ("add column __ktk_x int", TypeClassError, "__ktk_"),
        ("rename column s to __ktk_x", TypeClassError, "__ktk_"),
        ("rename column n to partition", TypeClassError, "partition"),
        ("unset tblproperties (k)", ConfigurationError, "has no property `k`"),
        ("set tblproperties (creation_time = 'x')", ConfigurationError, "is reserved"),
        ("set tblproperties (ktk_comment = 'x')", ConfigurationError, "is reserved"),
        ("unset tblproperties if exists (creation_time)", ConfigurationError, "has no property"),
        ("alter column nosuch comment 'x'", ConfigurationError, "has no column `nosuch`"),
    ],
)
def test_refusals_change_nothing(table, run, action, error, reason):
    before = tree(table.root)
    with pytest.raises(error) as caught:
        run(f"alter table s.t {action}")
    assert reason in str(caught.value)
    assert tree(table.root) == before


def constrained(store, constraint):
    """As a model's contract leaves it, which Spark verifies."""

    def change(base, attempt):
        return replace(base, properties={**base.properties, CONSTRAINTS: [constraint.as_dict()]})

    changes = (DatasetChange("t", "properties", change, frozenset()),)
    commit(resolve(store, scope_of("t")), ChangeSet(PendingCommit(), changes))


def test_what_constraints_name_stays(store, run):
    build(store, pa.table({"a": [1], "b": [2]}), WriteRequest("t"))
    constrained(store, Constraint("primary_key", ("a",)))
    with pytest.raises(ConfigurationError, match="while there is the constraint primary_key"):
        run("alter table s.t drop column a")
    assert run("alter table s.t drop column b")
    constrained(store, Constraint("check", expression="a > 0"))
    with pytest.raises(ConfigurationError, match=r"constraint check \(a > 0\)"):
        run("alter table s.t rename column a to c")
    assert run("alter table s.t add column c int")


def test_properties(table, run):
    assert run("alter table s.t set tblproperties ('owner' = 'ops', tier = 2, comment = 'said')")
    assert describe(table, "t").datasets[0].metadata == {"owner": "ops", "tier": "2"}
    assert describe(table, "t").datasets[0].comment == "said"
    assert operations(table)[0] == "properties"
    versions = len(operations(table))
    assert run("alter table s.t set tblproperties ('owner' = 'ops')")
    assert run("alter table s.t unset tblproperties if exists (nosuch)")
    assert len(operations(table)) == versions
    build(table, ODD, WriteRequest("t", partition_by=("P",)))
    assert describe(table, "t").datasets[0].metadata == {"owner": "ops", "tier": "2"}
    assert run("alter table s.t unset tblproperties (tier)")
    assert describe(table, "t").datasets[0].metadata == {"owner": "ops"}
    assert run("comment on table s.t is null")
    assert operations(table)[0] == "comment"
    assert describe(table, "t").datasets[0].comment == ""


def test_relations_of_others_are_left_to_them(table, run):
    with pytest.raises(DatasetNotFoundError, match="There is no table"):
        run("alter table s.nosuch drop column a")
    assert not run("alter table nosuch.t drop column a")
    assert not run("alter table t drop column a")
    assert not run("select 1")


def test_views_have_comments_only(table, run, relations):
    from ktk_engine.warehouse.actor import statement_actor

    relations.create_view(table.root.name, "v", "select 1 as a", {"a": "int"}, statement_actor())
    assert run("comment on table s.v is 'seen'")
    assert run("comment on column s.v.a is 'one'")
    from tests.support.committed import read_view

    comments = read_view(table, "v").comments
    assert (comments.relation, comments.columns) == ("seen", {"a": "one"})
    with pytest.raises(ConfigurationError, match="has no column `b`"):
        run("comment on column s.v.b is 'x'")
    with pytest.raises(ConfigurationError, match="is a view: its columns are those of its query"):
        run("alter table s.v drop column a")


def test_a_commit_in_between_is_a_conflict_and_computed_again(table):
    """An append of the old columns would have no column of the new name."""
    state = resolve(table, scope_of("t"))
    append = (ODD.slice(0, 1), WriteRequest.of(snapshot(table)))
    with (
        pytest.raises(CommitConflictError, match="Run it again"),
        staged(state, "alter t") as staging,
    ):
        alter_columns(staging, "t", ColumnChanges(rename={"n": "m"}), MetadataCache())
        build(table, *append, mode="append")
    assert "n" in snapshot(table).schema.names
    with staged(resolve(table, scope_of("t")), "alter t") as staging:
        alter_columns(staging, "t", ColumnChanges(add={"z": pa.int64()}), MetadataCache())
        build(table, *append, mode="append")
    assert rows(table)[1].num_rows == 8


def test_an_append_after_a_renaming_is_a_conflict(table, run):
    state = resolve(table, scope_of("t"))
    target = WriteRequest.of(snapshot(table))
    run("alter table s.t rename column n to m")
    with pytest.raises(CommitConflictError):
        build(table, ODD, target, mode="append", state=state)


def test_an_empty_table(store, run):
    build(store, ODD.slice(0, 0), WriteRequest("t", partition_by=("P",)))
    for action in ("rename column n to m", "drop column f", "add column f int"):
        assert run(f"alter table s.t {action}")
    assert {"m", "f"} <= set(snapshot(store).schema.names)


def test_files_of_another_program(store, run):
    data = {"a": pa.array([1, 2], pa.int8()), "b": pa.array([1000, 2000], pa.timestamp("ns"))}
    write_plain(store, "t", pa.table(data))
    run("alter table s.t add column c string")
    run("alter table s.t rename column a to z")
    run("alter table s.t drop column b")
    found = rows(store, key="z")[1]
    assert found.to_pylist() == [{"z": 1, "c": None}, {"z": 2, "c": None}]
    assert not check(store, "t").problems


CELLS = pa.table({"p": ["a", "a", "b"], "x": [1, 2, 1], "v": [1.0, 2.0, 3.0], "i": ["k", "l", "k"]})
MORE = pa.table({"p": ["a", "b"], "x": [1, 1], "w": [1, 2]})


@pytest.fixture
def cube(store):
    return build_overlaid(store)


def answer(cube):
    return cube.query().to_arrow(engine="local").sort_by([("p", "ascending"), ("x", "ascending")])


def test_payload_of_a_cube(cube, store):
    cube = cube.alter("cells", rename={"v": "value"}, add={"new": "array<string>"}, drop=["i"])
    found = answer(cube)
    assert found["value"].to_pylist() == [1.0, 20.0, 3.0]
    assert found["new"].null_count == 3 and "i" not in found.schema.names
    assert cube.history(1)[0]["operation"] == "alter"
    with pytest.raises(KtkError, match="already owned by dataset cells"):
        cube.alter("more", rename={"w": "value"})
    with pytest.raises(ConfigurationError, match="is a dimension column"):
        cube.alter("more", drop=["x"])
    cube = cube.alter("more", properties={"owner": "ops", "n": 1})
    cube = cube.alter("more", properties={"n": None})
    assert cube.info()["datasets"][1]["metadata"] == {"owner": "ops"}
    assert not check(store, "c").problems


def test_a_hidden_name_is_refused(cube):
    with pytest.raises(TypeClassError, match="a cube does not show"):
        cube.alter("cells", rename={"v": "KLEE_TS"})


def test_python_verbs_of_a_table(table):
    found = Store(table.root).table("t")
    found = found.alter(add={"x": pa.int8()}, rename={"n": "m"}, drop="f", properties={"a": [1]})
    assert {"x", "m"} <= set(found.schema.names) and "f" not in found.schema.names
    assert found.info()["datasets"][0]["metadata"] == {"a": [1]}
    with pytest.raises(ConfigurationError, match="has no column `zz`"):
        found.alter(drop=["zz"])


def test_another_layout(table):
    before, _ = rows(table)
    found = Store(table.root).table("t").repartition()
    assert rows(table)[0] == before and snapshot(table).partition_keys == ()
    assert set(snapshot(table).indices) == {"n"}
    assert found.history(1)[0]["history"]["reason"] == "partitioned by nothing"
    found = found.repartition("P")
    assert (rows(table)[0], snapshot(table).partition_keys) == (before, ("P",))
    assert found.repartition("P").version == found.version
    with pytest.raises(DataError, match="2 rows have no value in `n`"):
        found.repartition("n")
    with pytest.raises(ConfigurationError, match="partition_by names `nosuch`"):
        found.repartition("nosuch")
    assert found.at().version == found.version and not check(table, "t").problems


def test_a_repartition_loses_no_commit_in_between(table, monkeypatch):
    """It is computed again on top of that."""
    from ktk_engine.api import alter as api

    added = []

    def slow(state, base, known):
        found = present_rows(state, base, known)
        if not added:
            added.append(True)
            build(table, ODD.slice(0, 1), WriteRequest.of(base), mode="append")
        return found

    monkeypatch.setattr(api, "present_rows", slow)
    assert Store(table.root).table("t").repartition().rows == 7


def test_the_refusal_of_another_layout_says_how_to_change_it(table):
    target = replace(WriteRequest.of(snapshot(table)), partition_by=())
    with pytest.raises(ConfigurationError, match=r"\.repartition\("):
        build(table, ODD, target, mode="append")
    with pytest.raises(ConfigurationError, match=r"never rebuilt.*\.repartition\("):
        build(table, ODD, replace(target, keeps_versions=True), mode="append")


@pytest.mark.parametrize("between", [False, True])
def test_in_a_staged_run(table, between):
    """It becomes part of the run's one version, or a conflict where rows came in between."""
    before, stage = rows(table)[0], StagedStore(table)
    build(stage, ODD, WriteRequest.of(snapshot(stage)), mode="append")
    for changes in (
        ColumnChanges(rename={"n": "m"}),
        ColumnChanges(add={"x": pa.int64()}, drop=("f",)),
        ColumnChanges(add={"y": pa.string()}),
    ):
        alter(stage, "t", Alteration(("t",), changes), {})
    alter(stage, "t", Alteration(("t",), notes=Notes(set={"owner": "ops"})), {})
    assert rows(table)[0] == before
    if between:
        build(table, ODD, WriteRequest.of(snapshot(table)), mode="append")
        with pytest.raises(CommitConflictError):
            publish_stages([stage])
        assert rows(table)[1].num_rows == 10 and "n" in snapshot(table).schema.names
        return
    publish_stages([stage])
    found = rows(table)[1]
    assert found.num_rows == 10 and {"m", "x", "y"} <= set(found.schema.names)
    assert "f" not in found.schema.names
    assert describe(table, "t").datasets[0].metadata == {"owner": "ops"}
    assert Store(table.root).table("t").query(where="m = 3").count() == 2
    assert not check(table, "t").problems
