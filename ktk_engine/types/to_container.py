"""Converts values to the container type of their class, for exact comparison (decision 21)."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import DataError
from ktk_engine.types.arrow_cast import cast_values, plain_values
from ktk_engine.types.type_class import normalize, unwrap

Rounding = Literal["exact", "floor", "ceil"]


def to_container(
    values: pa.Array | pa.ChunkedArray,
    container: pa.DataType | None = None,
    rounding: Rounding = "exact",
) -> pa.Array:
    """Convert values to the container type of their class, as one array.

    Null values take any `container`. Nanoseconds, which containers do not have, are refused, or
    rounded down or up to microseconds. Raises a `DataError` for a value finer than microseconds if
    rounding is "exact".
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks)
    container = container or normalize(values.type)
    try:
        values = plain_values(values)
        if values.type.equals(container):
            return values
        if rounding != "exact" and has_nanoseconds(values.type):
            values = _rounded(values, rounding)
        return cast_values(values, container)
    except pa.ArrowInvalid as error:
        raise DataError(f"A {values.type} does not fit into {container}: {error}") from error
    except pa.ArrowNotImplementedError as error:  # for views, before Arrow 18
        raise DataError(
            f"Arrow {pa.__version__} cannot convert {values.type} to {container}. Install a newer "
            "pyarrow, or convert the column before it comes here."
        ) from error


def has_nanoseconds(t: pa.DataType) -> bool:
    """Whether it is a timestamp or time in nanoseconds, finer than its container."""
    t = unwrap(t)
    return bool((pat.is_timestamp(t) or pat.is_time64(t)) and t.unit == "ns")


def _rounded(values: pa.Array, rounding: Rounding) -> pa.Array:
    """Round nanoseconds to whole microseconds."""
    if rounding == "floor":
        return pc.floor_temporal(values, unit="microsecond")
    return pc.ceil_temporal(values, unit="microsecond")
