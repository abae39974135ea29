"""One parquet file for each type of a program that writes them; also a program by itself.

`python tests/spark/parquet_writers.py FOLDER` writes those of the libraries that it finds.
"""

from __future__ import annotations

import datetime
import decimal
import sys
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

MOMENT = datetime.datetime(2024, 5, 21, 12, 30, 0, 123456)
DAY, TIME = MOMENT.date(), MOMENT.time()
CENTS = decimal.Decimal("1.50")
_NUMBERS = [1, None, 0]


def by_pyarrow(folder: Path) -> None:
    """Every type of Arrow's that parquet can hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, values in _of_arrow(pa):
        pq.write_table(
            pa.table({"id": range(len(values)), "v": values}), folder / f"{name}.parquet"
        )


def _of_arrow(pa) -> Iterator[tuple[str, object]]:
    integers = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    integers += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    for t in [*integers, pa.float16(), pa.float32(), pa.float64()]:
        values = [1.5, None, float("nan"), -0.0] if pa.types.is_floating(t) else _NUMBERS
        yield (
            str(t),
            pa.array(values, pa.float64()).cast(t)
            if values is not _NUMBERS
            else pa.array(values, t),
        )
    for name, t in _moments(pa):
        yield name, pa.array([MOMENT, None], pa.timestamp("us")).cast(t, safe=False)
    for unit in ("s", "ms"):
        yield f"time32 {unit}", pa.array([TIME.replace(microsecond=0), None], pa.time32(unit))
    for unit in ("us", "ns"):
        yield f"time64 {unit}", pa.array([TIME, None], pa.time64(unit))
    for unit in ("s", "ms", "us", "ns"):
        yield f"duration {unit}", pa.array([1, None], pa.duration(unit))
    yield "ns finer", pa.array([1, None], pa.timestamp("ns"))
    yield "date32", pa.array([DAY, None], pa.date32())
    yield "date64", pa.array([DAY, None], pa.date64())
    yield "date long ago", pa.array([-800_000, 5_000_000], pa.int32()).cast(pa.date32())
    for t in (pa.decimal32(5, 2), pa.decimal64(15, 2), pa.decimal128(38, 2), pa.decimal256(50, 2)):
        yield str(t), pa.array([CENTS, None], t)
    yield "decimal beyond", pa.array([decimal.Decimal(10) ** 60, None], pa.decimal256(61, 0))
    for t in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(t), pa.array(["a", None, "", "\u00fc"], t)
    for t in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(t), pa.array([b"a", None, b"", b"\xff"], t)
    yield "fixed", pa.array([b"ab", None], pa.binary(2))
    yield "uuid", pa.array([uuid.UUID(int=7).bytes, None], pa.uuid())
    yield "json", pa.array(['{"a": 1}', None], pa.json_())
    yield "bool", pa.array([True, None, False])
    yield "null", pa.nulls(2)
    yield "dictionary", pa.array(["a", None, "a"]).dictionary_encode()
    yield "dictionary of numbers", pa.array([7, None, 7]).dictionary_encode()
    lists = [[1, None], None, []]
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        yield name, pa.array(lists, getattr(pa, name)(pa.int32()))
    yield "fixed list", pa.array([[1, 2], None], pa.list_(pa.int32(), 2))
    yield "list of ns", pa.array([[MOMENT], None], pa.list_(pa.timestamp("ns")))
    yield "list of lists", pa.array([[[1], None], None], pa.list_(pa.list_(pa.int64())))
    yield (
        "struct",
        pa.array([{"b": 1, "a": "x"}, None], pa.struct([("b", pa.int8()), ("a", pa.string())])),
    )
    yield "struct of time", pa.array([{"t": TIME}, None], pa.struct([("t", pa.time64("us"))]))
    yield "map", pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    yield "map of float16", pa.array([[("a", 1.5)], None], pa.map_(pa.string(), pa.float16()))


def _moments(pa) -> Iterator[tuple[str, object]]:
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            yield (
                f"timestamp {unit} {(zone or 'local').replace('/', ' ')}",
                pa.timestamp(unit, zone),
            )


def by_pandas(folder: Path) -> None:
    """Every type of pandas' own."""
    import pandas as pd

    moments = pd.Series(pd.to_datetime([MOMENT, None]))
    columns = {
        "int64": pd.Series([1, 2]),
        "float64": pd.Series([1.5, None]),
        "float32": pd.Series([1.5, None], dtype="float32"),
        "uint8": pd.Series([1, 2], dtype="uint8"),
        "bool": pd.Series([True, False]),
        "text": pd.Series(["a", None]),
        "empty object": pd.Series([None, None], dtype="object"),
        "string": pd.Series(["a", None], dtype="string"),
        "nullable int": pd.Series([1, None], dtype="Int32"),
        "nullable bool": pd.Series([True, None], dtype="boolean"),
        "category": pd.Series(["a", None]).astype("category"),
        "category of int": pd.Series([1, 2]).astype("category"),
        "moment": moments,
        "moment ns": moments.astype("datetime64[ns]"),
        "moment s": moments.astype("datetime64[s]"),
        "moment zone": moments.dt.tz_localize("Europe/Berlin"),
        "delta": pd.Series(pd.to_timedelta([1, None], unit="s")),
        "date": pd.Series([DAY, None], dtype="object"),
        "time": pd.Series([TIME, None], dtype="object"),
        "decimal": pd.Series([CENTS, None], dtype="object"),
        "bytes": pd.Series([b"a", None], dtype="object"),
        "list": pd.Series([[1], None], dtype="object"),
        "struct": pd.Series([{"a": 1}, None], dtype="object"),
        "period": pd.Series(pd.period_range("2024-01", periods=2, freq="M")),
        "interval": pd.Series(pd.interval_range(0, 2)),
        "sparse": pd.Series([0, 1]),
    }
    for name, values in columns.items():
        pd.DataFrame({"id": [0, 1], "v": values}).to_parquet(folder / f"{name}.parquet")
    indexed = pd.DataFrame({"v": [1, 2]}, index=pd.Index(["a", "b"], name="k"))
    indexed.to_parquet(folder / "index.parquet")


def by_polars(folder: Path) -> None:
    """Every type of Polars'."""
    import polars as pl

    columns = {
        **{str(t): pl.Series([1, None], dtype=t) for t in (pl.Int8, pl.Int16, pl.Int32, pl.Int64)},
        **{
            str(t): pl.Series([1, None], dtype=t)
            for t in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
        },
        **{str(t): pl.Series([1.5, None, float("nan")], dtype=t) for t in (pl.Float32, pl.Float64)},
        "Int128": pl.Series([1, None], dtype=pl.Int128),
        "String": pl.Series(["a", None]),
        "Binary": pl.Series([b"a", None]),
        "Boolean": pl.Series([True, None]),
        "Date": pl.Series([DAY, None]),
        "Time": pl.Series([TIME, None]),
        **{
            f"Datetime {u}": pl.Series([MOMENT, None], dtype=pl.Datetime(u))
            for u in ("ms", "us", "ns")
        },
        "Datetime zone": pl.Series([MOMENT, None]).dt.replace_time_zone("Europe/Berlin"),
        "Duration": pl.Series([datetime.timedelta(seconds=1), None]),
        "Decimal": pl.Series([CENTS, None], dtype=pl.Decimal(38, 2)),
        "Categorical": pl.Series(["a", None], dtype=pl.Categorical),
        "Enum": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
        "List": pl.Series([[1], None]),
        "Array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int64, 2)),
        "Struct": pl.Series([{"b": 1, "a": "x"}, None]),
        "Null": pl.Series([None, None]),
    }
    for name, values in columns.items():
        frame = pl.DataFrame({"id": range(len(values)), "v": values})
        frame.write_parquet(folder / f"{name}.parquet")


def by_duckdb(folder: Path) -> None:
    """Every type of DuckDB's."""
    import duckdb

    values = {
        **dict.fromkeys(("tinyint", "smallint", "integer", "bigint", "hugeint"), "1"),
        **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"), "1"),
        **dict.fromkeys(("float", "double", "decimal(4,1)", "decimal(18,3)"), "1.5"),
        "decimal(38,2)": "1.5",
        "varchar": "'a'",
        "blob": r"'\xFF'",
        "boolean": "true",
        "bit": "'101'",
        "date": "'2024-05-21'",
        "time": "'12:30:00.123456'",
        "timetz": "'12:30:00+02'",
        **{f"timestamp{u}": "'2024-05-21 12:30:00'" for u in ("", "_s", "_ms", "_ns")},
        "timestamptz": "'2024-05-21 12:30:00+02'",
        "interval": "interval 1 month",
        "uuid": "'12345678-1234-5678-1234-567812345678'",
        "enum('a', 'b')": "'a'",
        "json": """'{"a": 1}'""",
        "integer[]": "[1, null]",
        "integer[2]": "[1, 2]",
        "struct(b integer, a varchar)": "{b: 1, a: 'x'}",
        "map(varchar, integer)": "map {'a': 1}",
    }
    cells = {t: f"cast({value} as {t})" for t, value in values.items()}
    cells["infinite date"] = "'infinity'::date"
    for number, (t, cell) in enumerate(cells.items()):
        name = "".join(c if c.isalnum() else " " for c in t)
        rows = f"select 0 as id, {cell} as v union all select 1, null"
        target = folder / f"{number:02} {name}.parquet"
        duckdb.sql(f"copy (select * from ({rows}) order by id) to '{target}' (format parquet)")


WRITERS: dict[str, Callable[[Path], None]] = {
    "pyarrow": by_pyarrow,
    "pandas": by_pandas,
    "polars": by_polars,
    "duckdb": by_duckdb,
}


if __name__ == "__main__":
    for library, write in WRITERS.items():
        if find_spec(library):
            into = Path(sys.argv[1]) / library
            into.mkdir(parents=True, exist_ok=True)
            write(into)
