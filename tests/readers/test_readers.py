"""What other engines read of published tables: all rows, by each filter, from as few files."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from tests.readers.engines import INSTALLED, OPERATORS, Filter

DAY, MOMENT = date(2020, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 456789)
NUMBERS = range(10)
# Values that are apart, one for each of ten files.
APART = {
    "int8": pa.array(NUMBERS, pa.int8()),
    "int32": pa.array([n - 5 for n in NUMBERS], pa.int32()),
    "int64": pa.array([n << 40 for n in NUMBERS]),
    "uint16": pa.array(NUMBERS, pa.uint16()),
    "uint32": pa.array(NUMBERS, pa.uint32()),
    "float32": pa.array([n / 10 for n in NUMBERS], pa.float32()),
    "float64": pa.array([n / 10 - 0.5 for n in NUMBERS]),
    "decimal": pa.array([Decimal(n) / 100 for n in NUMBERS], pa.decimal128(5, 2)),
    "wide": pa.array([Decimal(n * 10**30 + 1) / 10**4 for n in NUMBERS], pa.decimal128(38, 4)),
    "text": pa.array([f"{n}" * 30 for n in NUMBERS]),
    "day": pa.array([DAY + timedelta(n) for n in NUMBERS]),
    "instant": pa.array(
        [(MOMENT + timedelta(n)).replace(tzinfo=UTC) for n in NUMBERS], pa.timestamp("us", "UTC")
    ),
    "local": pa.array([MOMENT + timedelta(n) for n in NUMBERS], pa.timestamp("us")),
}
# Types that Delta and Iceberg have, in the place of others.
SIGNED = {"int8": pa.int32(), "uint16": pa.int32(), "uint32": pa.int64()}
# A file each of usual values, of nulls, and of values at the ends of what a type has.
ENDS = {
    "bool": (pa.bool_(), [[False, False, None], [True, True, True]]),
    "int8": (pa.int8(), [[1, 2, None], [-128, 127, 0]]),
    "int64": (pa.int64(), [[1, 2, None], [-(2**63), 2**63 - 1, 0]]),
    "uint32": (pa.uint32(), [[1, 2, None], [0, 2**31 - 1, 5]]),
    "float32": (pa.float32(), [[0.5, 0.25, None], [-0.0, 0.0, 1.5]]),
    "float64": (pa.float64(), [[0.5, 0.25, None], [-0.0, 0.0, 1e300]]),
    "infinite": (pa.float64(), [[0.5, 0.25, None], [-inf, inf, 0.0]]),
    "nan": (pa.float64(), [[0.5, 0.25, None], [nan, 7.0, -7.0]]),
    "decimal": (
        pa.decimal128(5, 2),
        [[Decimal("1.50"), Decimal("2.50"), None], [Decimal("-999.99"), Decimal("999.99"), 0]],
    ),
    "wide": (
        pa.decimal128(38, 2),
        [
            [Decimal("1.50"), Decimal("1234567890123456789.01"), None],
            [Decimal("-" + "9" * 36 + ".99"), Decimal("9" * 36 + ".99"), Decimal(0)],
        ],
    ),
    "text": (pa.string(), [["a", "b", None], ["", "ü" * 100, "\U0010ffff" * 20]]),
    "large": (pa.large_string(), [["a", "b", None], ["", "c" * 100, "d\"\\'\n"]]),
    "day": (
        pa.date32(),
        [[DAY, DAY + timedelta(1), None], [date(1, 1, 1), date(9999, 12, 31), DAY]],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [
            [MOMENT.replace(tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None],
            [
                datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
                datetime(2261, 1, 1, 0, 0, 0, 999, UTC),
                datetime(1901, 1, 1, 0, 0, 0, 1001, UTC),
            ],
        ],
    ),
    "local": (
        pa.timestamp("us"),
        [
            [MOMENT, datetime(1969, 12, 31, 23, 59, 59, 999_999), None],
            [
                datetime(1970, 1, 1),
                datetime(2261, 1, 1, 0, 0, 0, 999),
                datetime(1901, 1, 1, 0, 0, 1),
            ],
        ],
    ),
}


def published(root, tables):
    store = Store(root)
    for table in tables:
        store.write_table("t", table)
    store.table("t").publish(["delta", "iceberg"])
    return str(root / "t")


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """The address of a table, and its rows."""
    tables = []
    for number in range(3):
        columns = {"n": pa.array(range(3 * number, 3 * number + 3))}
        for name, (t, values) in ENDS.items():
            columns[name] = pa.array([None] * 3 if number == 1 else values[number // 2], t)
        tables.append(pa.table(columns))
    return published(tmp_path_factory.mktemp("ends"), tables), pa.concat_tables(tables)


@pytest.mark.parametrize("column", ENDS)
@pytest.mark.parametrize("engine", INSTALLED)
def test_a_filter_finds_all_its_rows(ends, engine, column):
    url, rows = ends
    read, values = INSTALLED[engine], rows[column].to_pylist()
    given = [value for value in dict.fromkeys(values) if value is not None and value == value]
    filters = [Filter(column, "=", value) for value in given if _comparable(value)]
    filters += [Filter(column, "<=", min(given)), Filter(column, ">=", max(given))]
    filters += [Filter(column, "<", max(given)), Filter(column, ">", given[0])]
    problems = []
    for only in [*filters, Filter(column, "is null"), Filter(column, "is not null")]:
        right = {n for n, value in enumerate(values) if _holds(only, value)}
        # Engines order NaN, and zeros of two signs, in their own ways.
        unclear = {n for n, v in enumerate(values) if v != v or (only.value == 0 == v)}
        found = set(read(url, only)["n"].to_pylist())
        if found - unclear != right - unclear:
            problems.append((only, sorted(found), sorted(right)))
    assert not problems


def _comparable(value):
    return value not in (inf, -inf) if isinstance(value, float) else True


def _holds(only, value):
    if only.op.startswith("is"):
        return (value is None) == (only.op == "is null")
    return value is not None and OPERATORS[only.op](value, only.value)


def apart_rows():
    """The rows of ten files."""
    for n in NUMBERS:
        values = {name: values.slice(n, 1) for name, values in APART.items()}
        yield pa.table({"n": [n], "bool": [n == 5], **values})


def keep_one_file(folder):
    """Take away all files but the one with number 5."""
    for file in folder.rglob("*.parquet"):
        if pq.read_table(file, columns=["n"])["n"].to_pylist() != [5]:
            file.unlink()


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """The address of a table of ten files, of which only one is still there."""
    root = tmp_path_factory.mktemp("apart")
    url = published(root, apart_rows())
    keep_one_file(root / "t" / "table")
    return url


@pytest.fixture(scope="module")
def apart_by_others(tmp_path_factory):
    """The address of the same rows in a table of delta-rs, and in one of pyiceberg."""
    import deltalake
    from pyiceberg.catalog.sql import SqlCatalog

    folder = tmp_path_factory.mktemp("others") / "t"
    catalog = SqlCatalog("c", uri="sqlite://", warehouse=str(folder))
    catalog.create_namespace("n")
    table = None
    for rows in apart_rows():
        fields = [field.with_type(SIGNED.get(field.name, field.type)) for field in rows.schema]
        rows = rows.cast(pa.schema(fields))
        deltalake.write_deltalake(str(folder), rows, mode="append")
        table = table or catalog.create_table("n.t", rows.schema, f"file://{folder}/iceberg")
        table.append(rows)
    newest = table.metadata_location.rpartition("/")[2]
    (folder / "iceberg/metadata/version-hint.text").write_text(newest)
    keep_one_file(folder)
    return str(folder)


# Engines open all files of any writer for a filter on these columns.
DO_NOT_PRUNE_BY = {
    "Daft, Delta": [*APART, "bool"],
    "iceberg-rust": [*APART, "bool"],
    "delta-rs": ["bool"],
    "DuckDB over delta-rs": ["decimal"],
    "DuckDB, Delta": ["instant", "local"],
    "ClickHouse, Delta": ["float32", "float64", "decimal", "wide", "instant", "local"],
    "ClickHouse, Iceberg": ["decimal"],
    "Daft, Iceberg": ["bool"],
}


def finds_by(engine, url, column):
    """Whether an engine finds the one file by a filter on a column, and opens no other."""
    value = True if column == "bool" else APART[column][5].as_py()
    value = np.float32(value) if column == "float32" else value
    try:
        return INSTALLED[engine](url, Filter(column, "=", value))["n"].to_pylist() == [5]
    except Exception as error:  # noqa: BLE001 - each engine has its own for a file that is missing
        return error


@pytest.mark.parametrize("column", [*APART, "bool"])
@pytest.mark.parametrize("engine", INSTALLED)
def test_of_ten_files_one_is_opened(apart, apart_by_others, engine, column):
    if column in DO_NOT_PRUNE_BY.get(engine, ()):
        assert finds_by(engine, apart_by_others, column) is not True
    else:
        assert finds_by(engine, apart, column) is True
