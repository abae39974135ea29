"""Every class of type, published as Iceberg: read the same by every reader, or refused."""

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import PublishError
from ktk_engine.publish.iceberg.iceberg_form import ICEBERG
from ktk_engine.publish.iceberg.iceberg_schema import RESERVED
from tests.integration.delta.readers import in_order
from tests.integration.iceberg.readers import READERS, by_polars, files, filtered, table_of
from tests.support.committed import snapshot_of

MOMENT = datetime(2020, 2, 3, 4, 5, 6, 789012)
STRUCT = pa.struct([("b", pa.string()), ("a", pa.int16())])
COLUMNS = {
    "bool": (pa.bool_(), [True, False], "boolean"),
    "int8": (pa.int8(), [-128, 127], "int"),
    "int16": (pa.int16(), [-(2**15), 7], "int"),
    "int32": (pa.int32(), [-(2**31), 7], "int"),
    "int64": (pa.int64(), [-(2**63), 2**53 + 1], "long"),
    "uint8": (pa.uint8(), [0, 255], "int"),
    "uint16": (pa.uint16(), [0, 2**16 - 1], "int"),
    "uint32": (pa.uint32(), [0, 2**31 - 1], "long"),
    "float32": (pa.float32(), [0.1, float("nan")], "float"),
    "float64": (pa.float64(), [float("-inf"), 0.1], "double"),
    "decimal": (pa.decimal128(7, 2), [Decimal("-1.10"), Decimal("99999.99")], "decimal(7, 2)"),
    "digits": (pa.decimal128(38, 9), [Decimal("1e28"), Decimal("-1e-9")], "decimal(38, 9)"),
    "string": (pa.string(), ["", "a/b %ü=\n'"], "string"),
    "large": (pa.large_string(), ["x" * 100, "\U0010ffff" * 20], "string"),
    "coded": (pa.dictionary(pa.int8(), pa.string()), ["a", "a"], "string"),
    "binary": (pa.binary(), [b"\xff" * 20, b""], "binary"),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], "date"),
    "time": (pa.time64("us"), [time(0), time(23, 59, 59, 999999)], "time"),
    "local": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)], "timestamp"),
    "utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC)] * 2, "timestamptz"),
    "list": (pa.list_(pa.int8()), [[1, None], []], None),
    "struct": (STRUCT, [{"a": 1, "b": "x"}, {"a": None, "b": None}], None),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []], None),
    "deep": (pa.list_(pa.struct([("m", pa.list_(STRUCT))])), [[{"m": [{"a": 1}]}], []], None),
}

# pyiceberg 0.12 gives an empty list of structs for null, iceberg-rust nulls for all nested columns
# of files without field ids: docs/delta.md says so.
READ_OTHERWISE = {"pyiceberg": {"deep"}, "iceberg-rust": {"list", "struct", "map", "deep", "s"}}


def published(tmp_path, table, **layout):
    store = Store(tmp_path / "s")
    store.write_table("t", table, **layout)
    store.table("t").publish("iceberg")
    return store, str(tmp_path / "s" / "t")


def fields_of(url):
    return table_of(url).schema().fields


@pytest.fixture(scope="module")
def every_class(tmp_path_factory):
    columns = {name: pa.array([*values, None], kind) for name, (kind, values, _) in COLUMNS.items()}
    return published(tmp_path_factory.mktemp("types"), pa.table(columns))


@pytest.mark.parametrize("reader", READERS)
def test_every_class_reads_the_same(every_class, reader):
    store, url = every_class
    ours = store.table("t").query().to_arrow(engine="local")
    theirs = READERS[reader](url)
    assert theirs.num_rows == 3
    for name in COLUMNS:
        if name not in READ_OTHERWISE.get(reader, ()):
            assert in_order(theirs, [name]) == in_order(ours, [name]), name


def test_every_class_has_the_type_that_readers_expect(every_class):
    found = {field.name: str(field.field_type) for field in fields_of(every_class[1])}
    expected = {name: kind for name, (_, _, kind) in COLUMNS.items() if kind}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "name", ["bool", "int64", "uint16", "uint32", "decimal", "string", "large", "date", "local"]
)
def test_every_value_is_found_where_files_are_pruned(every_class, name):
    for value in COLUMNS[name][1]:
        for reader, rows in filtered(every_class[1], name, value).items():
            assert rows.num_rows == COLUMNS[name][1].count(value), (reader, value)


def test_a_zone_other_than_utc_reads_as_the_instant_or_not_at_all(tmp_path):
    moments = pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    _, url = published(tmp_path, pa.table({"at": moments}))
    assert by_polars(url)["at"].to_pylist() == [MOMENT.replace(tzinfo=UTC)]
    for name in ("pyiceberg", "iceberg-rust"):
        with pytest.raises(Exception, match=r"(?i)unsupported"):
            READERS[name](url)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pa.array([2**63], pa.uint64()), "no unsigned numbers"),
        (pa.array([2**31], pa.uint32()), "2147483648, and some readers"),
        (pa.array(np.array([1.5], np.float16())), "16 bits"),
        (pa.array([[1]], pa.list_(pa.uint32())), "whether all values of the uint32 in it fit"),
        (pa.nulls(1), "files have no type for it"),
        (pa.array([[None]]), "for a part of it.*Cast it to a type"),
        (pa.array([{"a": None}]), "for a part of it.*Cast it to a type"),
        (pa.array([1], pa.timestamp("ms")), "timestamp.ms., and Iceberg has microseconds. Cast"),
        (pa.array([1], pa.time32("ms")), "time32.ms., and Iceberg has microseconds. Cast it"),
    ],
)
def test_what_iceberg_cannot_say_is_refused_before_anything_is_written(tmp_path, values, reason):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"k": [1], "x": values}))
    with pytest.raises(PublishError, match=f"column x: .*{reason}.*Nothing was written"):
        store.table("t").publish("iceberg")
    assert store.table("t").version == 1
    assert not (tmp_path / "s" / "t" / "iceberg").exists()


def test_a_column_with_the_path_of_a_field_is_refused(tmp_path):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"a.b": [1], "a": [{"b": 2}]}))
    with pytest.raises(PublishError, match=r"field b of a: Iceberg confuses it with column a\.b"):
        store.table("t").publish("iceberg")


@pytest.mark.parametrize("layout", [{}, {"partition_by": ["x"]}], ids=["in files", "partition"])
@pytest.mark.parametrize("name", RESERVED)
def test_names_of_columns_that_readers_fill_themselves_are_refused(tmp_path, name, layout):
    store = Store(tmp_path / "s")
    layout = {key: [name] for key in layout}
    store.write_table("t", pa.table({"k": [1], name: ["a"]}), **layout)
    with pytest.raises(PublishError, match=f"column {name}: Iceberg keeps this name.*Rename it"):
        store.table("t").publish("iceberg")


def test_the_names_are_not_reserved_in_fields_nor_in_other_letters(tmp_path):
    table = pa.table({"_FILE": ["a"], "pos": ["b"], "_metadata": ["c"], "s": [{"_file": "d"}]})
    _, url = published(tmp_path, table)
    for name, read in READERS.items():
        names = [n for n in table.column_names if n not in READ_OTHERWISE.get(name, ())]
        assert in_order(read(url), names) == in_order(table, names), name


def test_odd_names_read_the_same(tmp_path):
    table = pa.table({"ä%": ["x"], "a.b": [1], "1.ü": ["é"], "_1_x2E_xFC": [0.5], "`": ["t"]})
    _, url = published(tmp_path, table, partition_by=["1.ü"])
    for name, read in READERS.items():
        assert in_order(read(url)) == in_order(table), name


PARTITIONS = {
    "string": (pa.string(), ["a/b", "ü=%41+ ", "null", "", "__HIVE_DEFAULT_PARTITION__"]),
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int8(), [-1, 0]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint": (pa.uint64(), [0, 2**64 - 1]),
    "date": (pa.date32(), [date(1, 1, 1), date(2020, 2, 29)]),
    "local": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)]),
    "utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC)]),
}


def test_floating_partition_values_are_refused(tmp_path):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"p": [1e20], "v": [1]}), partition_by=["p"])
    with pytest.raises(PublishError, match="round floating partition values"):
        store.table("t").publish("iceberg")


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_values_read_the_same(tmp_path, kind):
    t, values = PARTITIONS[kind]
    table = pa.table({"p": pa.array(values, t), "v": range(len(values))})
    _, url = published(tmp_path, table, partition_by=["p"])
    for name, read in READERS.items():
        assert in_order(read(url)) == in_order(table), name
    for value, number in zip(values, range(len(values)), strict=True):
        if kind != "uint":
            for name, found in filtered(url, "p", value).items():
                assert found["v"].to_pylist() == [number], (name, value)


TEXTS = pa.dictionary(pa.int8(), pa.string())
# A value of a text, its plain type, and the type with a dictionary.
CODED = {
    "flat": (lambda text: text, pa.string(), TEXTS),
    "list": (lambda text: [text], pa.list_(pa.string()), pa.list_(TEXTS)),
    "struct": (lambda text: {"a": text}, pa.struct({"a": pa.string()}), pa.struct({"a": TEXTS})),
}


@pytest.mark.parametrize("depth", CODED)
@pytest.mark.parametrize("is_coded", [True, False], ids=["coded first", "plain first"])
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_all_files_of_a_column_have_a_dictionary_or_none(tmp_path, is_coded, depth, mode, caplog):
    """pyiceberg merges no dictionaries with other texts."""
    wrap, *types = CODED[depth]
    texts = [f"c{number}" for number in range(300 if is_coded else 3)]

    def rows(texts, with_dictionary):
        values = pa.array(list(map(wrap, texts)), types[0])
        return pa.table({"k": texts, "x": values.cast(types[with_dictionary])})

    store, url = published(tmp_path, rows(["a", "b"], is_coded))
    for new in (rows(texts, not is_coded), rows(["d"], True)):
        store.write_table("t", new, mode, key=["k"] if mode == "merge" else [])
    store.table("t").delete("k = 'a'")
    wanted = sorted(str(wrap(text)) for text in [*texts, "b", "d"])
    for name, read in READERS.items():
        if depth not in READ_OTHERWISE.get(name, ()):
            assert sorted(map(str, read(url)["x"].to_pylist())) == wanted, name
    assert "not published" not in caplog.text


def test_files_of_two_widths_read_as_the_wider(tmp_path):
    narrow = {"x": pa.array([1], pa.int32()), "f": pa.array([0.5], pa.float32())}
    store, url = published(tmp_path, pa.table(narrow))
    ids = [field.field_id for field in fields_of(url)]
    store.write_table("t", pa.table({"x": pa.array([2**40]), "f": pa.array([0.1])}))
    ours = store.table("t").query().to_arrow(engine="local")
    for name, read in READERS.items():
        assert in_order(read(url)) == in_order(ours), name
    assert [field.field_id for field in fields_of(url)] == ids
    assert [str(field.field_type) for field in fields_of(url)] == ["long", "double"]
    for name, rows in filtered(url, "x", 1).items():
        assert rows.num_rows == 1, name


def test_ids_stay_and_are_not_given_again(tmp_path):
    store, url = published(tmp_path, pa.table({"a": [1], "b": ["x"], "s": [{"u": 1}]}))

    def ids():
        return {field.name: field.field_id for field in fields_of(url)}

    first = ids()
    store.write_table("t", pa.table({"c": [0.5], "a": [2], "s": [{"u": 1, "w": 2}]}), "overwrite")
    second = ids()
    assert (second["a"], second["s"]) == (first["a"], first["s"])
    assert second["c"] not in {*first.values(), first["a"]}
    store.write_table("t", pa.table({"b": [1], "a": [2]}), "overwrite")
    assert ids()["a"] == first["a"]
    assert ids()["b"] not in {*first.values(), *second.values()}  # another column by that name
    store.table("t").restore(version=1)
    assert ids()["a"] == first["a"]
    for name, read in READERS.items():
        assert read(url)["b"].to_pylist() == ["x"], name


def test_bounds_are_cut_and_never_too_narrow(tmp_path):
    texts = ["b" * 40, "a\U0010ffff" + "\U0010ffff" * 20]
    _, url = published(tmp_path, pa.table({"s": texts, "n": [1, None]}))
    [task] = table_of(url).scan().plan_files()
    ids = {field.name: field.field_id for field in fields_of(url)}
    lower, upper = task.file.lower_bounds[ids["s"]], task.file.upper_bounds[ids["s"]]
    assert len(lower.decode()) <= 16 and len(upper.decode()) <= 16
    assert lower <= min(texts).encode() and upper > max(texts).encode()
    assert task.file.null_value_counts[ids["n"]] == 1
    for text in texts:
        for name, rows in filtered(url, "s", text).items():
            assert rows.num_rows == 1, name
    assert len(files(url)) == 1


def test_files_with_ids_of_another_program_are_refused(tmp_path):
    """Readers would look for other columns by them, as in files that Iceberg's writers made."""
    store, _ = published(tmp_path, pa.table({"x": [1], "s": [{"a": 1}], "own": [1]}))
    known, wrong = snapshot_of(store._store, "t"), {"PARQUET:field_id": "7"}
    fields = {field.name: field for field in known.physical_schemas[0]}
    nested = pa.struct([fields["s"].type.field("a").with_metadata(wrong)])
    fields |= {"x": fields["x"].with_metadata(wrong), "s": fields["s"].with_type(nested)}
    foreign = replace(known, physical_schemas=(pa.schema(list(fields.values())),))
    with pytest.raises(PublishError, match=r"^column x: another .*; column s: another [^;]*$"):
        ICEBERG.check(store._store, foreign)
