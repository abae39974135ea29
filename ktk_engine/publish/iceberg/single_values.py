"""Values of partitions and bounds as manifests have them.

See https://iceberg.apache.org/spec/, Appendix D.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.may_match import beyond

_EPOCH = date(1970, 1, 1).toordinal()
_KEPT = 16  # characters or bytes of a bound, as in Iceberg
_PACKED = {
    "int": "<i",
    "date": "<i",
    "long": "<q",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "boolean": "<?",
    "float": "<f",
    "double": "<d",
}


def plain_values(column: pa.Array | pa.ChunkedArray, kind: str) -> list[Any]:
    """Values of an Iceberg type as numbers, texts, bytes and decimals."""
    if kind == "date":
        column = pc.cast(column, pa.int32())
    elif kind in ("timestamp", "timestamptz"):
        column = pc.cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif kind == "time":
        column = pc.cast(column, pa.time64("us")).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    if kind.startswith("decimal"):
        return [None if value is None else Decimal(value) for value in values]
    return values


def plain_value(value: Any) -> Any:
    """A value that was read from a manifest, in the form of `plain_values`."""
    if isinstance(value, datetime):
        days = value.toordinal() - _EPOCH
        return days * 86_400_000_000 + _microseconds(value.time())
    if isinstance(value, date):
        return value.toordinal() - _EPOCH
    return _microseconds(value) if isinstance(value, time) else value


def _microseconds(moment: time) -> int:
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return seconds * 1_000_000 + moment.microsecond


def single_value(kind: str, value: Any) -> bytes:
    """The binary form of a value of `plain_values`."""
    if kind in _PACKED:
        return struct.pack(_PACKED[kind], value)
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)
    return value.encode() if isinstance(value, str) else bytes(value)


def bounds(kind: str, values: Sequence[Any], is_upper: bool) -> list[bytes | None]:
    """Bounds of files in binary form, never narrower than given; None if they have none."""
    if kind in ("float", "double"):  # some engines order zeros
        zero = 0.0 if is_upper else -0.0
        values = [zero if value == 0 else value for value in values]
    cut = _shortened_upper if is_upper else _shortened
    shortened = (None if value is None else cut(value) for value in values)
    return [None if value is None else single_value(kind, value) for value in shortened]


def _shortened(value: Any) -> Any:
    return value[:_KEPT] if isinstance(value, str | bytes) else value


def _shortened_upper(value: Any) -> Any:
    """The least short value above a long one; None if there is none."""
    is_long = isinstance(value, str | bytes) and len(value) > _KEPT
    return beyond(value[:_KEPT]) if is_long else value


def summary(kind: str, values: Iterable[Any]) -> dict[str, Any]:
    """A manifest list's summary of one partition column in the files of a manifest."""
    known = list(values)
    found = [value for value in known if value is not None]
    return {
        "contains_null": len(found) < len(known),
        "contains_nan": False,  # floats do not partition
        "lower_bound": single_value(kind, min(found)) if found else None,
        "upper_bound": single_value(kind, max(found)) if found else None,
    }
