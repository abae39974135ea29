"""Plain parquet files of every kind as sources: the rows that pyarrow reads, or a refusal."""

from __future__ import annotations

import datetime
import decimal
import urllib.parse
import uuid
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, FormatError, KtkError, SourceWarning
from ktk_engine.spark.compatibility import time_type
from tests.support.queries import FileAddress

needs_times = pytest.mark.skipif(time_type() is None, reason="Spark before 4.1 has no times")


def relation(location, **options) -> str:
    address = FileAddress(str(location), "parquet", tuple(options.items()))
    return f"`{address}`.raw.t"


def rows(sql, location, text: str = "select * from {}", **options) -> list[tuple]:
    found = sql.sql(text.format(relation(location, **options)))
    return sorted((tuple(row) for row in found.collect()), key=repr)


def write(folder, **tables) -> None:
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path)


MOMENT = datetime.datetime(2024, 5, 21, 12, 30, 0, 123456)
UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
# What Spark's own reader refuses, or reads as something else.
ODD = {
    "ns": (pa.array([MOMENT, None], pa.timestamp("ns")), [MOMENT, None]),
    "float16": (pa.array([np.float16(1.5), None], pa.float16()), [1.5, None]),
    "uuid": (pa.array([UUID.bytes, None], pa.uuid()), [UUID.bytes, None]),
    "dictionary": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "large_string": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "large_list": (pa.array([["a"], None], pa.large_list(pa.string())), [["a"], None]),
    "fixed list": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    "fixed": (pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    "uint32": (pa.array([2**32 - 1, None], pa.uint32()), [2**32 - 1, None]),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    "decimal32": (
        pa.array([decimal.Decimal("1.50"), None], pa.decimal32(5, 2)),
        [decimal.Decimal("1.50"), None],
    ),
    "decimal64": (
        pa.array([decimal.Decimal("1.50"), None], pa.decimal64(15, 2)),
        [decimal.Decimal("1.50"), None],
    ),
    "decimal256": (
        pa.array([decimal.Decimal("1.50"), None], pa.decimal256(50, 2)),
        [decimal.Decimal("1.50"), None],
    ),
    "null": (pa.nulls(2), [None, None]),
    "ns in a struct": (
        pa.array([{"t": MOMENT}, None], pa.struct([("t", pa.timestamp("ns"))])),
        [(MOMENT,), None],
    ),
    "json": (pa.array(['{"a": 1}', None], pa.json_()), ['{"a": 1}', None]),
}
TIMES = {
    unit: pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    for unit in ("s", "ms", "us", "ns")
}


@pytest.mark.parametrize("kind", ODD)
def test_types(sql, tmp_path, kind):
    values, expected = ODD[kind]
    write(tmp_path, a={"id": [1, 2], "v": values})
    found = sql.sql(f"select id, v from {relation(tmp_path)} order by id").collect()
    assert [_plain(row.v) for row in found] == expected
    assert rows(sql, tmp_path, "select id from {} where v is null") in ([(2,)], [(1,), (2,)])


def _plain(value):
    return (
        tuple(value)
        if isinstance(value, tuple)
        else bytes(value)
        if isinstance(value, bytearray)
        else value
    )


@needs_times
@pytest.mark.parametrize("unit", TIMES)
def test_times(sql, tmp_path, unit):
    moment = datetime.time(12, 30, 15)
    write(tmp_path, a={"v": pa.array([moment, None], TIMES[unit])})
    assert rows(sql, tmp_path) == [(None,), (moment,)]


def test_pandas_default(sql, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"day": pd.to_datetime(["2024-05-21 12:30:00.123456", None]), "x": [1, 2]})
    frame["day"] = frame["day"].astype("datetime64[ns]")
    frame.to_parquet(tmp_path / "a.parquet")
    assert rows(sql, tmp_path, "select x, day from {}") == [(1, MOMENT), (2, None)]


def test_finer_than_microseconds_is_refused_where_it_is_asked_for(sql, tmp_path):
    write(tmp_path, a={"id": [1, 2], "t": pa.array([1, 1001], pa.timestamp("ns"))})
    assert rows(sql, tmp_path, "select id from {}") == [(1,), (2,)]
    with pytest.raises(KtkError, match=r"Column `t` of the file.*a\.parquet.*raw\.t"):
        rows(sql, tmp_path, "select t from {}")


def test_a_type_without_a_class_is_refused_where_it_is_asked_for(sql, tmp_path):
    write(tmp_path, a={"id": [1, 2], "d": pa.array([1, 2], pa.duration("us"))})
    assert rows(sql, tmp_path, "select id from {} where id > 1") == [(2,)]
    assert rows(sql, tmp_path, "select count(*) from {}") == [(2,)]
    for text in ("select * from {}", "select id from {} where d is not null"):
        with pytest.raises(
            Exception, match=r"Column `d` of source raw\.t.*a\.parquet.*duration\[us\]"
        ):
            rows(sql, tmp_path, text)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int32(), pa.int64()),
        (pa.int8(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.uint8(), pa.uint64()),
        (pa.decimal128(5, 0), pa.decimal128(20, 0)),
        (pa.date32(), pa.date64()),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.string(), pa.large_string()),
        (pa.null(), pa.int64()),
        (pa.int64(), pa.null()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_widths_within_a_class(sql, tmp_path, left, right):
    values = {n: _one(t) for n, t in ((1, left), (2, right))}
    write(tmp_path, **{f"f{n}": {"id": [n], "v": value} for n, value in values.items()})
    expected = {n: value[0].as_py() for n, value in values.items()}
    found = {row.id: row.v for row in sql.sql(f"select * from {relation(tmp_path)}").collect()}
    assert found == expected
    assert rows(sql, tmp_path, "select count(*) from {}") == [(2,)]


def _one(t: pa.DataType) -> pa.Array:
    """A value of each type that is the same in all of its class."""
    if pa.types.is_null(t):
        return pa.nulls(1)
    if pa.types.is_list(t):
        return pa.array([[1]], t)
    if pa.types.is_temporal(t):
        return pa.array([datetime.datetime(2024, 5, 21)]).cast(t)
    value = pa.array([1.5]) if pa.types.is_floating(t) else pa.array([7])
    return value.cast(pa.decimal128(19, 0)).cast(t) if pa.types.is_decimal(t) else value.cast(t)


def test_classes_that_differ_are_refused_with_both_files(sql, tmp_path):
    write(tmp_path, a={"id": [1], "v": [1]}, b={"id": [2], "v": ["x"]})
    with pytest.raises(
        ConfigurationError, match=r"`v` of source raw\.t.*a\.parquet.*b\.parquet"
    ) as caught:
        rows(sql, tmp_path)
    assert "damaged" not in str(caught.value)
    write(tmp_path, a={"v": [1]}, b={"v": [1.5]})
    with pytest.raises(ConfigurationError, match=r"an integer cannot hold 0\.5"):
        rows(sql, tmp_path)


def test_different_columns_are_a_union_by_name_and_said_once(sql, tmp_path):
    write(tmp_path, a={"id": [1], "x": ["a"]}, b={"y": [2.5], "id": [2]}, c={"id": [3]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            found = rows(sql, tmp_path, "select id, x, y from {}")
            assert found == [(1, "a", None), (2, None, 2.5), (3, None, None)]
    said = [str(w.message) for w in caught if issubclass(w.category, SourceWarning)]
    assert len(said) == 1
    assert "raw.t" in said[0]
    assert "`x`" in said[0]
    assert "`y`" in said[0]


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.SourceWarning")
def test_columns_in_other_letters(sql, tmp_path):
    write(tmp_path, a={"id": [1]}, b={"ID": [2]})
    assert rows(sql, tmp_path) == [(1,), (2,)]
    write(tmp_path / "one", a={"id": [1], "Id": [2]})
    with pytest.raises(ConfigurationError, match=r"a\.parquet.*raw\.t.*`id` and `Id`"):
        rows(sql, tmp_path / "one")


NAMES = ["größe", "p", "a b", "😀"]
VALUES = ["ü", "a", "x=y", "50%", "日本", "é", "Ã¼"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoded", [True, False])
def test_folders(sql, tmp_path, name, encoded):
    def quote(text):
        return (
            urllib.parse.quote(text, safe="")
            if encoded
            else text.replace("%", "%25").replace("=", "%3D")
        )

    for number, value in enumerate([*VALUES, None]):
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value)
        write(tmp_path / f"{quote(name)}={text}", a={"id": [number]})
    expected = dict(enumerate([*VALUES, None]))
    found = sql.sql(f"select * from {relation(tmp_path)}")
    assert found.columns == ["id", name]
    assert {row.id: row[1] for row in found.collect()} == expected
    assert rows(sql, tmp_path, f"select id from {{}} where `{name}` = 'ü'") == [(0,)]
    assert rows(sql, tmp_path, f"select id from {{}} where `{name}` is null") == [(7,)]
    assert rows(sql, tmp_path, f"select count(`{name}`), count(*) from {{}}") == [(7, 8)]


def test_folders_beside_odd_types(sql, tmp_path):
    for number, value in enumerate(("ü", "b", "__HIVE_DEFAULT_PARTITION__")):
        write(
            tmp_path / f"p={value}", a={"t": pa.array([MOMENT], pa.timestamp("ns")), "id": [number]}
        )
    assert rows(sql, tmp_path, "select id, p, t from {}") == [
        (0, "ü", MOMENT),
        (1, "b", MOMENT),
        (2, None, MOMENT),
    ]


def test_folders_without_names(sql, tmp_path):
    """What lies deeper is read too: nothing is left out in silence."""
    write(tmp_path, a={"id": [1]})
    write(tmp_path / "2024", b={"id": [2]})
    assert rows(sql, tmp_path) == [(1,), (2,)]


def test_folders_of_different_columns_are_refused(sql, tmp_path):
    write(tmp_path / "p=1", a={"id": [1]})
    write(tmp_path / "q=1", a={"id": [1]})
    with pytest.raises(ConfigurationError, match=r"raw\.t.*`p`.*`q`"):
        rows(sql, tmp_path)


def test_a_link_and_a_pattern(sql, tmp_path):
    write(tmp_path / "there", a={"t": pa.array([MOMENT], pa.timestamp("ns"))})
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert rows(sql, tmp_path / "link") == [(MOMENT,)]
    assert rows(sql, f"{tmp_path}/the*/{{a,b}}.parquet") == [(MOMENT,)]


def test_files_may_change_between_statements(sql, tmp_path):
    for number in (3, 5):
        write(
            tmp_path, a={"t": pa.array([MOMENT] * number, pa.timestamp("ns")), "i": range(number)}
        )
        assert len(rows(sql, tmp_path)) == number
        assert rows(sql, tmp_path, f"select i from {{}} where i = {number - 1}") == [(number - 1,)]


def test_what_is_no_parquet_file_is_named(sql, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(FormatError, match=r"a\.parquet.*raw\.t") as caught:
        rows(sql, tmp_path)
    for word in ("damaged", "--full-refresh", "backup"):
        assert word not in str(caught.value)


def test_options_of_sparks_reader_are_not_dropped(sql, tmp_path):
    write(tmp_path, a={"t": pa.array([MOMENT], pa.timestamp("ns"))})
    write(tmp_path, b={"t": pa.array([MOMENT], pa.timestamp("ns"))})
    assert rows(sql, tmp_path, pathGlobFilter="a*") == [(MOMENT,)]
    with pytest.raises(ConfigurationError, match=r"raw\.t.*datetimeRebaseMode.*`t`"):
        rows(sql, tmp_path, datetimeRebaseMode="LEGACY")


def test_a_file_whose_pages_lie_behind_its_end_is_no_empty_file(sql, tmp_path):
    """As apache/parquet-testing's ARROW-RS-GH-6229-DICTHEADER, of which Spark read no rows."""
    write(tmp_path, a={"id": list(range(1000)), "s": [str(n) for n in range(1000)]})
    path = tmp_path / "a.parquet"
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:100] + data[-footer:])
    with pytest.raises(FormatError, match=r"a\.parquet of source raw\.t.*column `id`.*of \d+"):
        rows(sql, tmp_path)


ONE = pa.table({"a": [1, 2]})


@pytest.mark.parametrize(
    ("files", "location", "found"),
    [
        (["_in.parquet"], "_in.parquet", 2),
        ([".in.parquet"], ".in.parquet", 2),
        (["_x/in.parquet"], "_x", 2),
        (["_x/in.parquet"], "_x/*.parquet", 2),
        (["_in1.parquet", "_in2.parquet"], "_in*.parquet", 4),
        (["_in.parquet", "a.parquet"], "*.parquet", 2),
        (["_in.parquet", "a.parquet"], "", 2),
        (["_in.parquet", "a.parquet"], "{_in,a}.parquet", 4),
        ([".x/in.parquet", "x/a.parquet"], "*/*.parquet", 2),
        (["_x/in.parquet", "x/a.parquet"], "*/*.parquet", 2),
        (["a:b.parquet"], "", 2),
        (["a:b.parquet"], "a:b.parquet", 2),
        (["10:30/a.parquet"], "", 2),
        (["a,b.parquet"], "a,b.parquet", 2),
        (["p=1/_in.parquet", "p=1/a.parquet"], "", 2),
        (["p=1/_in.parquet"], "p=1/_in.parquet", 2),
    ],
)
def test_a_file_has_the_rows_that_its_footer_says(sql, tmp_path, files, location, found):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(ONE, tmp_path / name)
    place = f"{tmp_path}/{location}".rstrip("/")
    assert rows(sql, place, "select count(*) from {}") == [(found,)]
    assert rows(sql, place, "select a from {} where a > 1") == [(2,)] * (found // 2)


def test_links_lead_to_files_under_any_name(sql, tmp_path):
    write(tmp_path, _real=ONE)
    (tmp_path / "link.parquet").symlink_to(tmp_path / "_real.parquet")
    (tmp_path / "_link.parquet").symlink_to(tmp_path / "_real.parquet")
    for name in ("link.parquet", "_link.parquet", ""):
        assert rows(sql, f"{tmp_path}/{name}".rstrip("/")) == [(1,), (2,)]


@pytest.mark.parametrize("location", ["t", "t/p=1", "t/p=1/a.parquet", "*", "t/*/*.parquet", ""])
@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (
            "t/_delta_log/00000000000000000000.json",
            "t is a Delta table.*by a reader of",
        ),
        ("t/metadata/00000-1.metadata.json", "t is an Iceberg table"),
        ("t/.hoodie/hoodie.properties", "t is a Hudi table"),
        (
            "t.by-dataset-metadata.json",
            "t is a dataset of Kartothek or of this library.*Store.*as t",
        ),
    ],
)
def test_files_of_a_table_are_no_plain_files(sql, tmp_path, location, mark, said):
    write(tmp_path, **{"t/p=1/a": ONE})
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).write_text("{}")
    with pytest.raises(ConfigurationError, match=said):
        rows(sql, f"{tmp_path}/{location}".rstrip("/"))


@pytest.mark.parametrize("documents", [True, False])
def test_a_dataset_of_ours_is_no_folder_of_files(sql, tmp_path, documents):
    store = Store(f"{tmp_path}/s")
    store.write_table("t", ONE)
    store.build("c", {"seed": ONE}, seed="seed", dimension_columns=["a"])
    for document in (tmp_path / "s").glob("*.by-dataset-metadata*"):
        if not documents:
            document.unlink()
    for place, name in (("s/t", "t"), ("s/t/table", "t"), ("s/c++seed", r"c\+\+seed"), ("s", "")):
        with pytest.raises(ConfigurationError, match=f"is a dataset of Kartothek.*as {name}"):
            rows(sql, tmp_path / place)


def test_what_is_no_data_is_named_with_the_way_to_leave_it_out(sql, tmp_path):
    write(tmp_path, **{"d/a": ONE, "e/b": pa.table({}), "f/a": ONE})
    (tmp_path / "d" / "README.txt").write_text("about these files")
    (tmp_path / "f" / "empty.parquet").write_bytes(b"")
    with pytest.raises(
        FormatError, match=r"README\.txt.*option pathGlobFilter, for instance \*\.pa"
    ):
        rows(sql, tmp_path / "d")
    assert rows(sql, tmp_path / "d", pathGlobFilter="*.parquet") == [(1,), (2,)]
    with pytest.raises(ConfigurationError, match=r"have no column, for instance .*/b\.parquet"):
        rows(sql, tmp_path / "e")
    with pytest.raises(FormatError, match=r"empty\.parquet"):
        rows(sql, tmp_path / "f")
