"""Collected rows as the frames of other libraries, which are installed or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.errors import QueryError
from ktk_engine.extras import need
from ktk_engine.types.arrow_cast import plain_values
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION, plain_type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


def check_for_polars(schema: pa.Schema) -> None:
    """Refuse columns that Polars has no type for, with a sentence where it would panic.

    Raises:
        QueryError: with their names.
    """
    what = f"Polars has no decimals of more than {MAX_DECIMAL_PRECISION} digits"
    _refuse(schema, pa.types.is_decimal256, what)


def _refuse(schema: pa.Schema, is_unknown: Callable[[pa.DataType], bool], what: str) -> None:
    if unknown := [field.name for field in schema if _has(field.type, is_unknown)]:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise QueryError(f"{what}: {names}. Query.to_arrow gives them.")


def _has(t: pa.DataType, is_such: Callable[[pa.DataType], bool]) -> bool:
    """Whether it is such a type, or has one within."""
    within = (t.field(number).type for number in range(t.num_fields))
    return is_such(t) or any(_has(item, is_such) for item in within)


def _is_view(t: pa.DataType) -> bool:
    views = (pa.types.is_string_view, pa.types.is_binary_view)
    return any(
        is_such(t) for is_such in (*views, pa.types.is_list_view, pa.types.is_large_list_view)
    )


def pandas_frame(collect: Callable[[], pa.Table]) -> pd.DataFrame:
    """Collect rows for pandas; types are Arrow types, so integers stay integers."""
    need("pandas", "A pandas DataFrame", "pandas")
    import pandas as pd

    table = collect()
    for number, field in enumerate(table.schema):
        if _has(field.type, _is_view):  # pandas can neither sort nor compare them
            plain = field.with_type(plain_type(field.type))
            parts = [plain_values(part) for part in table[number].chunks]
            table = table.set_column(number, plain, pa.chunked_array(parts, plain.type))
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
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

    table = collect()
    _refuse(table.schema, pa.types.is_float16, "DuckDB has no floats of 16 bits")
    relation: DuckDBPyRelation = (connection or duckdb).from_arrow(table)
    return relation


class LocalRows(ABC):
    """Rows that are read in this process, also as the frames of other libraries."""

    @property
    @abstractmethod
    def _schema(self) -> pa.Schema:
        """The columns of the rows."""

    @abstractmethod
    def to_arrow(self, *, memory_limit: int | str | None = None) -> pa.Table:
        """Collect the rows."""

    @abstractmethod
    def to_batches(self, *, memory_limit: int | str | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows piece by piece."""

    def to_reader(self, *, memory_limit: int | str | None = None) -> pa.RecordBatchReader:
        """Give the rows as `to_batches` does, with their schema.

        Args:
            memory_limit: as for `Query.to_arrow`.
        """
        batches = self.to_batches(memory_limit=memory_limit)
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def to_pandas(self, *, memory_limit: int | str | None = None) -> pd.DataFrame:
        """Collect the rows as `to_arrow` does, for pandas, in Arrow types.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return pandas_frame(lambda: self.to_arrow(memory_limit=memory_limit))

    def to_polars(self, *, memory_limit: int | str | None = None) -> pl.DataFrame:
        """Collect the rows as `to_arrow` does, for Polars.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Raises:
            ConfigurationError: Polars is not installed.
        """
        return polars_frame(self._schema, lambda: self.to_arrow(memory_limit=memory_limit))

    def to_duckdb(
        self,
        connection: DuckDBPyConnection | None = None,
        *,
        memory_limit: int | str | None = None,
    ) -> DuckDBPyRelation:
        """Collect the rows as `to_arrow` does, as a relation of DuckDB.

        Args:
            connection: DuckDB's connection that the relation belongs to; None means its default.
            memory_limit: as for `Query.to_arrow`.

        Raises:
            ConfigurationError: DuckDB is not installed.
        """
        return duckdb_relation(lambda: self.to_arrow(memory_limit=memory_limit), connection)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to another library (Arrow's PyCapsule interface), as `to_batches` does."""
        return self.to_reader().__arrow_c_stream__(requested_schema)
