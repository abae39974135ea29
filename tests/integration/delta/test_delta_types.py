"""Every class of type, published as Delta: read the same by every reader, or refused."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from polars.exceptions import SchemaError

from ktk_engine import Store
from ktk_engine.errors import PublishError
from ktk_engine.publish.publish_datasets import publish_datasets
from tests.integration.delta.readers import READERS, filtered, in_order
from tests.support.changes import comment_on
from tests.support.committed import snapshot_of
from tests.support.documents import Comments

MOMENT = datetime(2020, 2, 3, 4, 5, 6, 789012)
STRUCT = pa.struct([("b", pa.string()), ("a", pa.int16())])
COLUMNS = {
    "bool": (pa.bool_(), [True, False], "boolean"),
    "int8": (pa.int8(), [-128, 127], "byte"),
    "int16": (pa.int16(), [-(2**15), 7], "short"),
    "int32": (pa.int32(), [-(2**31), 7], "integer"),
    "int64": (pa.int64(), [-(2**63), 2**53 + 1], "long"),
    "uint8": (pa.uint8(), [0, 255], "short"),
    "uint16": (pa.uint16(), [0, 2**16 - 1], "integer"),
    "uint32": (pa.uint32(), [0, 2**31 - 1], "long"),
    "float32": (pa.float32(), [0.1, float("nan")], "float"),
    "float64": (pa.float64(), [float("-inf"), 0.1], "double"),
    "decimal": (pa.decimal128(7, 2), [Decimal("-1.10"), Decimal("99999.99")], "decimal(7,2)"),
    "string": (pa.string(), ["", "a/b %ü=\n'"], "string"),
    "large": (pa.large_string(), ["x" * 100, "z"], "string"),
    "coded": (pa.dictionary(pa.int8(), pa.string()), ["a", "a"], "string"),
    "binary": (pa.binary(), [b"\xff", b""], "binary"),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], "date"),
    "local": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)], "timestamp_ntz"),
    "utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC)] * 2, "timestamp"),
    "berlin": (pa.timestamp("us", "Europe/Berlin"), [MOMENT.replace(tzinfo=UTC)] * 2, "timestamp"),
    "list": (pa.list_(pa.int8()), [[1, None], []], None),
    "struct": (STRUCT, [{"a": 1, "b": "x"}, {"a": None, "b": None}], None),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []], None),
}


def published(tmp_path, table, **layout):
    store = Store(tmp_path / "s")
    store.write_table("t", table, **layout)
    publish_datasets(store._store, "t")
    return store, str(tmp_path / "s" / "t")


@pytest.mark.parametrize("reader", READERS)
def test_every_class_reads_the_same(tmp_path, reader):
    columns = {name: pa.array([*values, None], kind) for name, (kind, values, _) in COLUMNS.items()}
    store, url = published(tmp_path, pa.table(columns))
    ours = store.table("t").query().to_arrow(engine="local")
    theirs = READERS[reader](url)
    assert theirs.num_rows == 3
    for name in columns:
        assert in_order(theirs, [name]) == in_order(ours, [name]), name


def test_every_class_has_the_type_that_files_have(tmp_path):
    columns = {name: pa.array(values, kind) for name, (kind, values, _) in COLUMNS.items()}
    _, url = published(tmp_path, pa.table(columns))
    fields = {field.name: field.type for field in deltalake.DeltaTable(url).schema().fields}
    found = {name: getattr(fields[name], "type", None) for name in COLUMNS}
    expected = {name: kind for name, (_, _, kind) in COLUMNS.items() if kind}
    assert {name: str(found[name]) for name in expected} == expected


def test_a_table_without_local_timestamps_needs_no_table_feature_of_readers(tmp_path):
    store, url = published(tmp_path, pa.table({"a": [1]}))
    protocol = deltalake.DeltaTable(url).protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (1, None)
    store.write_table("t", pa.table({"a": [MOMENT]}), "overwrite")
    protocol = deltalake.DeltaTable(url).protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (3, ["timestampNtz"])
    assert (protocol.min_writer_version, len(protocol.writer_features)) == (7, 2)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pa.array([time(1)], pa.time64("us")), "no type for the class time"),
        (pa.array([2**31], pa.uint32()), "2147483648, and some readers"),
        (pa.array(np.array([1.5], np.float16())), "16 bits, which Spark cannot read"),
        (pa.array([[1]], pa.list_(pa.uint32())), "whether all values of the uint32 in it fit"),
        (pa.array([{"a b": 1}]), "the name a b of its field"),
        (pa.nulls(1), "files have no type for it"),
        (pa.array([[None]]), "for a part of it.*Cast it to a type"),
        (pa.array([1], pa.timestamp("ms")), "timestamp.ms., and Delta has microseconds. Cast it"),
    ],
)
def test_what_delta_cannot_say_is_refused_before_anything_is_written(tmp_path, values, reason):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"k": [1], "x": values}))
    with pytest.raises(PublishError, match=f"column x: .*{reason}.*Nothing was written"):
        publish_datasets(store._store, "t")
    assert store.table("t").version == 1
    assert not (tmp_path / "s" / "t" / "_delta_log").exists()


def test_uint64_is_a_decimal_that_holds_all_values(tmp_path):
    numbers = pa.array([0, 2**64 - 1], pa.uint64())
    lists = pa.array([[2**64 - 1], None], pa.list_(pa.uint64()))
    _, url = published(tmp_path, pa.table({"x": numbers, "l": lists}))
    for name, read in READERS.items():
        if name != "polars":  # says that it cannot
            found = read(url)
            assert found["x"].to_pylist() == [0, 2**64 - 1], name
            assert found["l"].to_pylist() == [[2**64 - 1], None], name
    with pytest.raises(SchemaError, match="data type mismatch"):
        READERS["polars"](url)


@pytest.mark.parametrize("name", ["a b", "a,b", "x=y", "(x)", "a;b"])
def test_names_that_delta_forbids_are_refused(tmp_path, name):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({name: [1]}))
    with pytest.raises(PublishError, match="not allowed in Delta"):
        publish_datasets(store._store, "t")


def test_odd_names_read_the_same(tmp_path):
    table = pa.table({"ä%": ["x"], "a.b": [1], "a": [{"b": 2}], "p.ü": ["é"], "`": ["t"]})
    _, url = published(tmp_path, table, partition_by=["p.ü"])
    for name, read in READERS.items():
        if name != "polars":  # says that it does not decode names of partition columns
            assert in_order(read(url)) == in_order(table), name


PARTITIONS = {
    "string": (pa.string(), ["a/b", "ü=%41+ ", "null"]),
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int8(), [-1, 0]),
    "uint": (pa.uint64(), [0, 2**64 - 1]),
    "float": (pa.float64(), [float("-inf"), 1e20, -0.5]),
    "date": (pa.date32(), [date(1, 1, 1), date(2020, 2, 29)]),
    "local": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)]),
    "berlin": (
        pa.timestamp("us", "Europe/Berlin"),
        [MOMENT.replace(tzinfo=UTC), datetime(1969, 7, 1, tzinfo=UTC)],
    ),
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_values_read_the_same(tmp_path, kind):
    t, values = PARTITIONS[kind]
    table = pa.table({"p": pa.array(values, t), "v": range(len(values))})
    _, url = published(tmp_path, table, partition_by=["p"])
    for name, read in READERS.items():
        assert in_order(read(url)) == in_order(table.cast(_decimal(table.schema))), name
    if kind != "uint":
        for value, number in zip(values, range(len(values)), strict=True):
            for name, found in filtered(url, "p", value).items():
                assert found["v"].to_pylist() == [number], (name, value)


def _decimal(schema):
    """An unsigned partition column is a decimal in Delta."""
    if schema.field("p").type != pa.uint64():
        return schema
    return pa.schema([("p", pa.decimal128(20, 0)), schema.field("v")])


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_partition_values_that_readers_take_for_null_are_refused(tmp_path, value):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"p": [value], "v": [1]}), partition_by=["p"])
    with pytest.raises(PublishError, match="readers read as null"):
        publish_datasets(store._store, "t")


# What a column's files have, what is added and fits, and what does not fit.
WIDTHS = {
    "integer": (pa.array([1], pa.int32()), pa.array([2]), pa.array([2**40])),
    "unsigned": (
        pa.array([1], pa.uint8()),
        pa.array([2], pa.uint64()),
        pa.array([2**40], pa.uint64()),
    ),
    "float": (pa.array([0.5], pa.float32()), pa.array([1.5]), pa.array([0.1])),
    "decimal": (
        pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        pa.array([Decimal("2.50")], pa.decimal128(38, 2)),
        pa.array([Decimal("1234567.50")], pa.decimal128(38, 2)),
    ),
    "list": (pa.array([[1]], pa.list_(pa.int32())), pa.array([[2, None]]), pa.array([[2**40]])),
    "struct": (
        pa.array([{"a": 1, "b": "x"}], pa.struct({"a": pa.int16(), "b": pa.large_string()})),
        pa.array([{"b": "y", "a": 2}]),
        pa.array([{"b": "y", "a": 2**40}]),
    ),
    "map": (
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[("k", 2**40)]], pa.map_(pa.string(), pa.int64())),
    ),
}


@pytest.mark.parametrize("kind", WIDTHS)
def test_new_files_take_the_types_of_those_that_stay(tmp_path, kind, caplog):
    """Of two widths, readers get one; Delta has no type for both."""
    known, fitting, wide = WIDTHS[kind]
    store, url = published(tmp_path, pa.table({"k": [1], "x": known}))
    for narrow, wider in ((known, fitting), (fitting, known)):
        store.write_table("t", pa.table({"k": [1], "x": narrow}), "overwrite")
        types = types_of(store)
        for number in (2, 3):
            store.write_table("t", pa.table({"k": [number], "x": wider}))
        store.write_table("t", pa.table({"k": [3], "x": narrow}), "merge", key=["k"])
        store.table("t").delete("k = 2")
        assert types_of(store) == types and len(types) == 1
    assert caplog.text == ""
    store.write_table("t", pa.table({"k": [1], "x": known}), "overwrite")
    store.write_table("t", pa.table({"k": [4], "x": wide}))
    assert "column x: files hold different types" in caplog.text
    assert "store.relation('t').compact()" in caplog.text
    caplog.clear()
    store.table("t").compact()
    rows = store.table("t").query().to_arrow(engine="local")
    for name, read in READERS.items():
        if (kind, name) != ("unsigned", "polars"):  # says that it reads no such decimals
            assert in_order(read(url)) == in_order(rows), name
    assert (rows.num_rows, caplog.text) == (2, "")
    assert len(types_of(store)) == 1


# Changes that rewrite all files; the values of the new rows fit into the files' types.
REWRITES = {
    "merge": lambda store, rows: store.write_table("t", rows, "merge", key=["k"]),
    "delete": lambda store, rows: store.table("t").delete("k = 2"),
}


@pytest.mark.parametrize("verb", REWRITES)
@pytest.mark.parametrize("kind", WIDTHS)
def test_a_change_of_all_files_keeps_their_types(tmp_path, kind, verb, caplog):
    known, fitting, _ = WIDTHS[kind]
    rows = pa.table({"k": [1, 2], "x": pa.concat_arrays([known, known])})
    store, url = published(tmp_path, rows)
    before = types_of(store), deltalake.DeltaTable(url).schema().to_json()
    for _ in range(2):
        REWRITES[verb](store, pa.table({"k": [2], "x": fitting}))
    assert (types_of(store), deltalake.DeltaTable(url).schema().to_json()) == before
    assert snapshot_of(store._store, "t").files.num_rows == 1
    assert caplog.text == ""


@pytest.mark.parametrize("kind", WIDTHS)
def test_a_merge_into_all_files_takes_the_wider_of_two_types(tmp_path, kind, caplog):
    """Files of two types could not be published."""
    known, _, wide = WIDTHS[kind]
    store, url = published(tmp_path, pa.table({"k": [1, 2], "x": pa.concat_arrays([known, known])}))
    if kind == "decimal":
        wide = wide.cast(pa.decimal128(10, 2))
    store.write_table("t", pa.table({"k": [2], "x": wide}), "merge", key=["k"])
    (found,) = types_of(store)
    if kind not in ("struct", "list", "map"):
        assert found == wide.type
    assert "not published" not in caplog.text
    assert deltalake.DeltaTable(url).to_pyarrow_table().num_rows == 2


def types_of(store):
    """The types of column `x` in the table's files."""
    keys = snapshot_of(store._store, "t").file_column("key").to_pylist()
    return {pq.read_schema(store._store.root / key).field("x").type for key in keys}


def test_statistics_prune_and_are_never_too_narrow(tmp_path):
    store, url = published(tmp_path, pa.table({"x": [1, 2], "s": ["a", "b" * 100]}))
    store.write_table("t", pa.table({"x": [8, None], "s": ["c", None]}))
    moments = pa.table({"x": [9], "s": ["d"], "m": [MOMENT], "f": [float("nan")]})
    store.write_table("t", moments, "overwrite")
    found = pa.table(deltalake.DeltaTable(url).get_add_actions(flatten=True)).to_pylist()
    assert [(row["num_records"], row["min.x"], row["max.x"]) for row in found] == [(1, 9, 9)]
    assert found[0]["min.m"] < MOMENT < found[0]["max.m"]  # rounded to milliseconds
    assert not found[0].get("max.f")
    for name, rows in filtered(url, "m", MOMENT).items():
        assert rows.num_rows == 1, name


# Values that two files have, and one that only the first file has.
FILTERED = {
    "float": (pa.float64(), [0.5, 1.5], [7.0, None], 0.5),
    "NaN elsewhere": (pa.float64(), [0.5, 1.5], [float("nan"), None], 0.5),
    "infinity elsewhere": (pa.float32(), [0.5, 1.5], [float("inf"), None], 0.5),
    "zeros": (pa.float64(), [-0.0, 0.0], [7.0, None], 0.0),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.50"), Decimal(2)], [Decimal(7), None], Decimal(2)),
    "many digits": (
        pa.decimal128(38, 2),
        [Decimal("-12345678901234567890.12"), Decimal(0)],
        [Decimal("9" * 36 + ".99"), None],
        Decimal("-12345678901234567890.12"),
    ),
    "unsigned": (pa.uint64(), [5, 2**64 - 1], [7, None], 2**64 - 1),
    "bool": (pa.bool_(), [True, True], [False, None], True),
    "nulls elsewhere": (pa.int64(), [1, 2], [None, None], 2),
    "long text": (pa.string(), ["a", "b" * 100], ["c", None], "b" * 100),
    "binary": (pa.binary(), [b"a", b"b"], [b"c", None], b"b"),
    "end of time": (pa.date32(), [date(9999, 12, 31), MOMENT.date()], [None, None], MOMENT.date()),
    "last instant": (
        pa.timestamp("us"),
        [datetime(9999, 12, 31, 23, 59, 59, 999_999), MOMENT],
        [datetime(1, 1, 1), None],
        MOMENT,
    ),
}


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("kind", FILTERED)
def test_arrows_dataset_finds_by_a_filter_what_is_there(tmp_path, kind, checkpoint):
    """It takes a bound that a file lacks for one that no value fulfils."""
    t, first, second, value = FILTERED[kind]
    store, url = published(tmp_path, pa.table({"k": [1, 2], "x": pa.array(first, t)}))
    if checkpoint:
        for number in range(20):
            comment_on(store._store, "t", Comments(columns={"k": str(number)}))
    store.write_table("t", pa.table({"k": [3, 4], "x": pa.array(second, t)}))
    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    scalar = pa.scalar(value, dataset.schema.field("x").type)
    right = [k for k, given in zip([1, 2, 3, 4], [*first, *second], strict=True) if given == value]
    assert sorted(dataset.to_table(filter=pc.field("x") == scalar)["k"].to_pylist()) == right
    for null, test in ((True, pc.field("x").is_null()), (False, pc.field("x").is_valid())):
        found = dataset.to_table(filter=test)["k"].to_pylist()
        assert len(found) == sum((item is None) == null for item in [*first, *second])


def test_a_column_without_some_bound_is_pruned_by_again_when_its_files_are_gone(tmp_path):
    def listed():
        configuration = deltalake.DeltaTable(url).metadata().configuration
        return configuration["delta.dataSkippingStatsColumns"].split(",")

    store, url = published(tmp_path, pa.table({"k": [1], "x": [0.5], "a.b": ["y"]}))
    assert sorted(listed()) == ["`a.b`", "k", "x"]
    store.write_table("t", pa.table({"k": [2], "x": [float("nan")], "a.b": ["z" * 100]}))
    assert listed() == ["k"]
    store.table("t").delete("k = 2")
    assert listed() == ["k"]
    for number in range(20):
        comment_on(store._store, "t", Comments(columns={"k": str(number)}))
    assert sorted(listed()) == ["`a.b`", "k", "x"]
    store.write_table("t", pa.table({"k": [2], "x": [float("nan")], "a.b": ["z" * 100]}))
    store.write_table("t", pa.table({"k": [3], "x": [1.0], "a.b": ["z"]}), "overwrite")
    assert sorted(listed()) == ["`a.b`", "k", "x"]
    store.table("t").alter(add={"new": pa.int64()})
    store.write_table("t", pa.table({"k": [4], "x": [1.0], "a.b": ["z"], "new": [5]}))
    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    assert "new" in listed()
    assert dataset.to_table(filter=pc.field("new").is_null())["k"].to_pylist() == [3]


def test_a_table_without_any_bounds_is_read_and_gets_them_with_a_checkpoint(tmp_path):
    def configuration():
        return deltalake.DeltaTable(url).metadata().configuration

    store, url = published(tmp_path, pa.table({"x": [0.5, float("nan")], "s": ["z" * 100, None]}))
    assert configuration()["delta.dataSkippingNumIndexedCols"] == "0"
    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("x") == 0.5)["s"].to_pylist() == ["z" * 100]
    assert dataset.to_table(filter=pc.field("s").is_null()).num_rows == 1
    store.write_table("t", pa.table({"x": [1.5], "s": ["z"]}))
    assert deltalake.DeltaTable(url).to_pyarrow_table().num_rows == 3
    store.write_table("t", pa.table({"x": [2.5], "s": ["y"]}), "overwrite")
    assert sorted(configuration()["delta.dataSkippingStatsColumns"].split(",")) == ["s", "x"]
    assert "delta.dataSkippingNumIndexedCols" not in configuration()
    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("x") == 2.5).num_rows == 1
