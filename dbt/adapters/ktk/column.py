"""Columns with Spark's type names."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from dbt.adapters.spark import SparkColumn

from ktk_engine.types.arrow_name import sql_name
from ktk_engine.types.quote import quote_identifier

_STRINGS = frozenset({"string", "char", "varchar"})
_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"})
_FLOATS = frozenset({"float", "real", "double"})
_DECIMALS = frozenset({"decimal", "dec", "numeric"})


@dataclass(repr=False)
class KtkColumn(SparkColumn):
    """A column that knows the kind of its type; dbt's base class knows only Postgres's names."""

    def is_string(self) -> bool:
        """Whether it holds text."""
        return self._word in _STRINGS

    def is_integer(self) -> bool:
        """Whether it holds whole numbers."""
        return self._word in _INTEGERS

    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self._word in _FLOATS

    def is_numeric(self) -> bool:
        """Whether it holds decimals."""
        return self._word in _DECIMALS

    @property
    def quoted(self) -> str:
        """Its name in SQL."""
        return quote_identifier(self.column)

    @classmethod
    def string_type(cls, size: int) -> str:
        """Name the type of a text; Spark's has any length."""
        return "string"

    @property
    def _word(self) -> str:
        """The type's name without its parameters."""
        return str(self.dtype).partition("(")[0].strip().lower()


def columns_of(schema: pa.Schema) -> list[SparkColumn]:
    """Give the columns of a dataset or cube as dbt wants them, with Spark's names of types."""
    return [KtkColumn(column=field.name, dtype=sql_name(field.type)) for field in schema]
