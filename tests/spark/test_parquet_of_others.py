"""Files of other writers, as sources and tables: pyarrow's rows, or a refusal that names them.

A file for each type is written by pyarrow, pandas 2, Polars and DuckDB; those of pandas 3 are
stored (`parquet_writers.py` made them). Files of apache/parquet-testing are read too, if
KTK_PARQUET_TESTING names a copy. docs/reliability.md has the counts.
"""

from __future__ import annotations

import os
import re
import tarfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.spark.arrow_types import seen_by_spark
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.session.spark_job import spark_job
from tests.spark.parquet_writers import WRITERS
from tests.support.queries import FileAddress, to_container

PARQUET_TESTING = os.environ.get("KTK_PARQUET_TESTING")
# Its years do not fit into nanoseconds, of which pyarrow makes microseconds; Spark reads them.
OVERFLOWN = "int96_from_spark.parquet"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folders of files by their writer."""
    root = tmp_path_factory.mktemp("written")
    for library, write in WRITERS.items():
        if find_spec(library):
            (root / library).mkdir()
            write(root / library)
    # Python 3.11.2, which Debian 12 has, knows no filter; the archive is the project's own.
    known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(Path(__file__).with_name("written_by_pandas_3.tar.xz")) as archive:
        archive.extractall(root / "pandas 3", **known)
    return root


def read_by_pyarrow(path: Path) -> pa.Table:
    """What pyarrow reads; 96 bits are an instant in microseconds, as Spark has it."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        table, described = file.read(), file.metadata.schema
    for number in range(len(described)):
        column = described.column(number)
        if column.physical_type == "INT96" and column.path in table.column_names:
            at = table.schema.get_field_index(column.path)
            values = table[column.path].cast(pa.timestamp("us", "UTC"))
            table = table.set_column(at, column.path, values)
    return table


def shown(column: pa.ChunkedArray) -> str:
    """All values as text, in which NaN is equal to NaN."""
    try:
        return str(column.to_pylist())
    except (OverflowError, ValueError):  # Python has no dates as far from now as Arrow
        return column.combine_chunks().to_string(window=10**6, container_window=10**6)


def differences(found: pa.Table, expected: pa.Table) -> list[str]:
    if found.column_names != expected.column_names:
        return [f"columns {found.column_names}"]
    return [
        f"{name}: {shown(found[name])[:200]} != {shown(expected[name])[:200]}"
        for name in expected.column_names
        if shown(found[name].cast(expected[name].type)) != shown(expected[name])
    ]


def names_column(text: str, table: pa.Table) -> bool:
    return any(re.search(rf"(?<![\w']){re.escape(c)}\b", text) for c in table.column_names)


def outcome(ask, table: pa.Table, file: str) -> str:
    """`same` or `refused`; anything else says what is wrong."""
    try:
        with spark_job():
            found = ask()
    except (KtkError, PySparkException, Py4JError) as error:
        text = str(error).partition("\n")[0]
        named = file in text or names_column(text, table)
        return "refused" if named else f"refused without a name: {text[:300]}"
    columns = {n: to_container(c) for n, c in zip(table.column_names, table.columns, strict=True)}
    expected = seen_by_spark(pa.table(columns))
    return "; ".join(differences(found, expected)) or "same"


def outcomes(sql, store, folder: Path) -> dict[str, dict[str, str]]:
    """What became of each file that pyarrow reads, by way."""
    found: dict[str, dict[str, str]] = {"source": {}, "table, here": {}, "table, Spark": {}}
    opened = Store(store.url)

    def by_spark(relation: str) -> pa.Table:
        return collect_table(sql.sql(f"select * from {relation}"))

    def here() -> pa.Table:
        return seen_by_spark(opened.table("t").query().to_arrow(engine="local"))

    for path in sorted(folder.rglob("*.parquet")):
        name = path.relative_to(folder).as_posix()
        try:
            table = read_by_pyarrow(path)
        except (pa.ArrowException, OSError):
            continue
        if name == OVERFLOWN:
            continue
        source = f"`{FileAddress(str(path), 'parquet')}`.raw.t"
        found["source"][name] = outcome(partial(by_spark, source), table, path.name)
        try:
            opened.write_table("t", table, "overwrite")
        except KtkError as error:
            named = names_column(str(error), table)
            said = "refused" if named else f"refused without a column: {error}"
            found["table, here"][name] = found["table, Spark"][name] = said
            continue
        found["table, here"][name] = outcome(here, table, "t")
        found["table, Spark"][name] = outcome(partial(by_spark, "an.t"), table, "t")
        opened.drop("t")
    return found


def wrong(found: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    return [
        (way, name, said)
        for way, results in found.items()
        for name, said in results.items()
        if said not in ("same", "refused")
    ]


# Files, and of these the same rows as a source, as a table here, and as a table in Spark.
COUNTS = {
    "pyarrow": (64, 58, 56, 56),
    "pandas": (27, 24, 24, 24),
    "pandas 3": (27, 24, 24, 24),
    "polars": (27, 26, 26, 26),
    "duckdb": (35, 35, 34, 34),
    "data": (72, 70, 71, 71),
    "shredded_variant": (137, 133, 133, 133),
}


def counts(found: dict[str, dict[str, str]]) -> tuple[int, ...]:
    same = [list(results.values()).count("same") for results in found.values()]
    return (len(found["source"]), *same)


@pytest.mark.parametrize("library", [*WRITERS, "pandas 3"])
def test_types_of_a_writer(sql, store, written, library):
    folder = written / library
    if not folder.exists():
        pytest.skip(f"{library} is not installed")
    found = outcomes(sql, store, folder)
    assert wrong(found) == []
    assert counts(found) == COUNTS[library]


@pytest.mark.skipif(not PARQUET_TESTING, reason="KTK_PARQUET_TESTING names no copy")
@pytest.mark.parametrize("part", ["data", "shredded_variant", "bad_data"])
def test_parquet_testing(sql, store, part):
    found = outcomes(sql, store, Path(PARQUET_TESTING) / part)
    assert wrong(found) == []
    assert counts(found) == COUNTS.get(part, counts(found))
