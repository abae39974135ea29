"""Collected rows as the frames of other libraries, which are installed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.errors import QueryError
from ktk_engine.extras import need
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


def check_for_polars(schema: pa.Schema) -> None:
    """Refuse columns that Polars has no type for, with a sentence where it would panic.

    Raises:
        QueryError: with their names.
    """
    wide = [field.name for field in schema if _has_wide_decimal(field.type)]
    if wide:
        raise QueryError(
            f"Polars has no decimals of more than {MAX_DECIMAL_PRECISION} digits: "
            f"{', '.join(f'`{name}`' for name in wide)}. Query.to_arrow gives them."
        )


def _has_wide_decimal(t: pa.DataType) -> bool:
    within = (t.field(number).type for number in range(t.num_fields))
    return pa.types.is_decimal256(t) or any(map(_has_wide_decimal, within))


def pandas_frame(collect: Callable[[], pa.Table]) -> pd.DataFrame:
    """Collect rows for pandas; types are Arrow types, so integers stay integers."""
    need("pandas", "A pandas DataFrame", "pandas")
    import pandas as pd

    frame: pd.DataFrame = collect().to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def polars_frame(schema: pa.Schema, collect: Callable[[], pa.Table]) -> pl.DataFrame:
    """Collect rows for Polars."""
    need("polars", "A DataFrame of Polars", "polars")
    import polars as pl

    check_for_polars(schema)
    frame = pl.from_arrow(collect())
    assert isinstance(frame, pl.DataFrame), "of a table Polars makes a frame"
    return frame


def duckdb_relation(
    collect: Callable[[], pa.Table], connection: DuckDBPyConnection | None
) -> DuckDBPyRelation:
    """Collect rows for DuckDB, on a connection or its default one."""
    need("duckdb", "A relation of DuckDB", "duckdb")
    import duckdb

    relation: DuckDBPyRelation = (connection or duckdb).from_arrow(collect())
    return relation
