"""Which columns Polars can hold."""

from __future__ import annotations

import pyarrow as pa

from ktk_engine.errors import QueryError
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION


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
