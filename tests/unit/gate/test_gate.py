"""The gate without files: policies, owners, names, broken enrichments."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    SpecificationError,
    TypeClassError,
)
from ktk_engine.gate import gate
from ktk_engine.gate.check_columns import change_schema
from ktk_engine.gate.gate import validate_view
from ktk_engine.gate.write_request import WriteRequest
from tests.support.committed import Snapshot, State, files_table, scope_of
from tests.support.voices import DBT, spoken

SEED = WriteRequest("seed", "seed", "c", ("L",), ("P",))
NOWHERE = State(None, scope_of("t"), 0, None, "", {})
MODEL = pa.schema([("P", pa.int64()), ("L", pa.int64()), ("v", pa.float64())])


def validate_write(target, model, datasets, *, keeps_rows=False, **options):
    target = replace(target, mode="append" if keeps_rows else None, **options)
    return gate.validate_write(target, model, NOWHERE, datasets)


def committed(schema=MODEL, seed=True, keys=("P",), **properties):
    metadata = {
        "ktk_cube_is_seed": seed,
        "ktk_cube_dimension_columns": ["L"],
        "ktk_cube_partition_columns": ["P"],
        "ktk_cube_suppress_index_on": [],
    }
    parts = pa.table({key: pa.array([], schema.field(key).type) for key in keys})
    indices = {"L": ""} if seed else {}
    name = "c++seed" if seed else "c++extra"
    return Snapshot(name, schema, keys, files_table([], [], parts), indices, metadata, **properties)


EXTRA = committed(pa.schema([("P", pa.int64()), ("L", pa.int64()), ("w", pa.int64())]), False)
CUBE = {"seed": committed(), "extra": EXTRA}


def test_the_policies():
    model = pa.schema([("P", pa.int64()), ("L", pa.int64()), ("x", pa.int8())])
    refused = {
        policy: sorted(item.column for item in change_schema(MODEL, model, policy).findings)
        for policy in ("fail", "append_new_columns", "sync_all_columns", "ignore")
    }
    assert refused == {
        "fail": ["v", "x"],
        "append_new_columns": ["v"],
        "sync_all_columns": [],
        "ignore": ["v"],
    }


def test_appending_keeps_columns_that_the_model_lacks_where_rows_stay():
    model = pa.schema([("P", pa.int64()), ("L", pa.int64())])
    change = change_schema(MODEL, model, "append_new_columns", ["L"], keeps_rows=True)
    assert (change.findings, change.committed) == ((), MODEL)
    refused = change_schema(MODEL, model, "append_new_columns", ["v"], keeps_rows=True)
    assert [item.column for item in refused.findings] == ["v"]
    for policy in ("fail", "ignore"):
        assert change_schema(MODEL, model, policy, keeps_rows=True).findings


def test_a_configured_column_cannot_be_left_out():
    model = MODEL.append(pa.field("k", pa.int8()))
    change = change_schema(MODEL, model, "ignore", ["k"])
    assert [item.column for item in change.findings] == ["k"]


def test_a_declared_column_that_is_missing_is_explained_by_the_declaration():
    declared = {"P": pa.int64(), "L": pa.int64()}
    target = WriteRequest("seed", "seed", "c", ("L",), ("P",), declared=declared, contract=True)
    model = pa.schema([("P", pa.int64()), ("l2", pa.int64())])
    with pytest.raises(TypeClassError, match="missing in definition") as error:
        validate_write(target, model, {})
    assert {item.column for item in error.value.findings} == {"L", "l2"}
    with pytest.raises(ConfigurationError, match="dimension_columns names `L`"):
        validate_write(SEED, model, {})


def test_a_broken_enrichment_stays_unless_it_may_go():
    model = pa.schema([("P", pa.int64()), ("L", pa.string()), ("v", pa.float64())])
    with pytest.raises(TypeClassError, match="extra: `L` is signed integer there and string"):
        validate_write(SEED, model, CUBE, full_refresh=True)
    cascade = WriteRequest("seed", "seed", "c", ("L",), ("P",), cascade=True)
    assert validate_write(cascade, model, CUBE, full_refresh=True).leaving == ("extra",)
    with pytest.raises(TypeClassError):
        validate_write(cascade, model, CUBE)


def test_what_lies_in_another_store_binds_and_never_leaves():
    model = pa.schema([("P", pa.int64()), ("L", pa.string()), ("v", pa.float64())])
    cascade = WriteRequest("seed", "seed", "c", ("L",), ("P",), cascade=True)
    external = {"extra": CUBE["extra"]}
    with pytest.raises(TypeClassError, match="read from another store, and never changed there"):
        validate_write(cascade, model, {}, full_refresh=True, external=external)
    owned = MODEL.append(pa.field("w", pa.int64()))
    with pytest.raises(TypeClassError, match="rename w in seed: extra"):
        validate_write(SEED, owned, {}, built_by={}, external=external)


def test_lost_partition_columns_break_an_enrichment():
    target = WriteRequest("seed", "seed", "c", ("L",), ("v",))
    model = pa.schema([("v", pa.int64()), ("L", pa.int64())])
    with pytest.raises(ConsistencyError, match="extra: its rows are addressed by `P`"):
        validate_write(target, model.append(pa.field("z", pa.int64())), CUBE, full_refresh=True)


@pytest.mark.parametrize(
    ("built_by", "fix"),
    [
        (None, "rename it in seed, or remove it from extra or seed"),
        (
            {"seed": "cells"},
            "config(dataset='extra'); if its rows may go, drop it with dbt",
        ),
        (
            {"extra": "more", "seed": "cells"},
            "build both in one run: dbt run --full-refresh -s more cells",
        ),
    ],
)
def test_what_to_do_about_columns_of_others(built_by, fix):
    model = MODEL.append(pa.field("w", pa.int64()))
    with pytest.raises(TypeClassError) as error:
        validate_write(SEED, model, CUBE, full_refresh=True, built_by=built_by)
    assert fix in error.value.said(DBT)


@pytest.mark.parametrize("name", ["partition", "__x"])
def test_names_that_index_files_need(name):
    target = WriteRequest("seed", "seed", "c", (name,), ("P",))
    model = pa.schema([("P", pa.int64()), (name, pa.int64()), ("v", pa.float64())])
    with pytest.raises(TypeClassError, match=f"{name} .*rename it"):
        validate_write(target, model, {})


@pytest.mark.parametrize("name", ["__ktk_position", "__KTK_key"])
def test_names_of_the_engine_s_own(name):
    """A payload column of such a name came back with other values."""
    model = MODEL.append(pa.field(name, pa.int64()))
    with pytest.raises(TypeClassError, match="the engine's own"):
        validate_write(SEED, model, {})


def test_a_view_with_a_contract_is_checked():
    with pytest.raises(TypeClassError, match="missing in contract"):
        validate_view("v", MODEL, {"v": pa.float64()})


def test_unsigned_dimensions_are_adopted_from_the_seed():
    unsigned = pa.schema([("P", pa.int64()), ("L", pa.uint64()), ("v", pa.float64())])
    model = pa.schema([("P", pa.int64()), ("L", pa.decimal128(20, 0)), ("w", pa.float64())])
    target = WriteRequest("extra", "enrichment", "c", ("L",), ("P",))
    passed = validate_write(target, model, {"seed": committed(unsigned)})
    assert passed.physical.field("L").type == pa.uint64()


def refused(target, model, datasets=CUBE, **options):
    with pytest.raises(TypeClassError) as caught:
        validate_write(target, pa.schema(model), datasets, **options)
    return {item.column: item for item in caught.value.findings}


def test_a_payload_column_of_another_dataset_is_said_to_be_at_once():
    """Not first that it is new, and then, with --full-refresh, whose it is."""
    target = WriteRequest("extra", "enrichment", "c", ("L",), ("P",))
    found = refused(target, [*MODEL, pa.field("w", pa.int64())])
    assert found["v"].rule == "owner"
    found = refused(target, [*MODEL])
    assert (found["v"].rule, found["w"].rule) == ("owner", "missing")


@pytest.mark.parametrize("name", ["P", "L"])
def test_a_renamed_column_of_the_layout_is_not_filled_with_nulls(name):
    model = [pa.field("Q", f.type) if f.name == name else f for f in MODEL]
    partitions, dimensions = (("Q",), ("L",)) if name == "P" else (("P",), ("Q",))
    target = WriteRequest("seed", "seed", "c", dimensions, partitions)
    found = refused(target, model)
    assert "null" not in str(found[name].fix)
    assert "--full-refresh" in spoken(found[name].fix, DBT)


@pytest.mark.parametrize("name", ["__HIVE_DEFAULT_PARTITION__", "__x", "KLEE_TS"])
def test_a_column_that_a_cube_would_hide_is_refused(name):
    found = refused(SEED, [*MODEL, pa.field(name, pa.int64())], {})
    assert "a cube does not show" in found[name].reason
    validate_write(WriteRequest("t"), pa.schema([pa.field(name, pa.int64())]), {})


def test_a_second_seed_dataset_names_the_first():
    other = WriteRequest("s2", "seed", "c", ("L",), ("P",))
    with pytest.raises(ConsistencyError) as caught:
        validate_write(other, pa.schema([*MODEL.remove(2), ("x", pa.int64())]), CUBE)
    assert "Cube c has the seed dataset seed, and a cube has only one" in str(caught.value)
    assert "s2" not in str(caught.value).partition("on it:")[2]


WIDE = pa.schema(
    [
        ("P", pa.int64()),
        ("L", pa.int64()),
        ("narrow", pa.int64()),
        ("unsigned", pa.uint64()),
        ("money", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
    ]
)
NEW_ROWS = pa.schema(
    [
        ("unsigned", pa.decimal128(20, 0)),
        ("L", pa.int32()),
        ("P", pa.int64()),
        ("narrow", pa.int16()),
        ("money", pa.decimal128(12, 2)),
        ("at", pa.null()),
        ("fresh", pa.float32()),
        ("empty", pa.null()),
    ]
)
# As Spark puts both together: the old columns first, each as wide as either has it.
ALL_ROWS = pa.schema(
    [
        ("P", pa.int64()),
        ("L", pa.int64()),
        ("narrow", pa.int64()),
        ("unsigned", pa.decimal128(20, 0)),
        ("money", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us")),
        ("fresh", pa.float32()),
        ("empty", pa.null()),
    ]
)


@pytest.mark.parametrize("declared", [{}, {"unsigned": pa.uint32(), "fresh": pa.float32()}])
@pytest.mark.parametrize("policy", ["append_new_columns", "sync_all_columns"])
@pytest.mark.parametrize("role", ["table", "seed"])
def test_rows_with_old_ones_among_them_need_no_gate_of_their_own(role, policy, declared):
    """What the gate gives for new rows tells what it would give for all of them."""
    cube = {"cube": "c", "dimension_columns": ("L",)} if role == "seed" else {}
    target = WriteRequest(
        *("seed", role),
        partition_by=("P",),
        on_schema_change=policy,
        declared=declared,
        indexes=("narrow",),
        **cube,
    )
    datasets = {"seed": committed(WIDE)}
    once = validate_write(target, NEW_ROWS, datasets, keeps_rows=True).of_rows(ALL_ROWS)
    assert once == validate_write(target, ALL_ROWS, datasets, keeps_rows=True)


def test_a_contract_allows_no_old_column_that_the_model_lacks():
    declared = {"P": pa.int64(), "L": pa.int64()}
    policy = "append_new_columns"
    target = WriteRequest("t", on_schema_change=policy, contract=True, declared=declared)
    model = pa.schema([("P", pa.int64()), ("L", pa.int64())])
    passed = validate_write(target, model, {"t": committed()}, keeps_rows=True)
    with pytest.raises(TypeClassError, match="missing in contract"):
        passed.of_rows(MODEL)


@pytest.mark.parametrize(("cube", "dataset"), [("c+", "s"), ("c", "+s"), ("c++", "s")])
def test_a_uuid_keeps_cube_and_dataset_apart(cube, dataset):
    with pytest.raises(SpecificationError, match="separates cube and dataset"):
        WriteRequest(dataset, "seed", cube, ("L",), ("P",)).uuid  # noqa: B018 - asked for its error
    assert WriteRequest("s+", "seed", "+c", ("L",), ("P",)).uuid == "+c++s+"
