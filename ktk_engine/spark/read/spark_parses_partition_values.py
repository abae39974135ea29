"""Whether Spark itself restores a partition value from a path."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.format.partition_text import HIVE_NULL
from ktk_engine.format.percent_encoding import quote
from ktk_engine.types.type_class import normalize

_STRING = r"^(?:[^%/]|%[0-7][0-9A-Fa-f])+$"
_INTEGER = r"^[+-]?[0-9]+$"
_UNSIGNED = r"^[0-9]+$"
_FLOAT = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_BOOL = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?"
_ZONE = r"[+-][0-9]{2}:[0-9]{2}"
# The escaped characters in texts of timestamps. Spark decodes only texts and timestamps, and
# parses other values as they are in the path.
_ESCAPES = (("%20", " "), ("%3A", ":"), ("%3a", ":"), ("%2B", "+"), ("%2b", "+"))


def spark_parses_partition_values(
    texts: pa.Array | pa.ChunkedArray, t: pa.DataType
) -> pa.BooleanArray | pa.ChunkedArray:
    """Tell whether Spark certainly restores each partition value, given the column's type.

    Spark decodes `%XX` to the character of that number, which is wrong for UTF-8. It reads an empty
    value and `__HIVE_DEFAULT_PARTITION__` as null, and does not read NaN or infinity as Python
    writes them.

    Source: trials with Spark 4.3 and its partition reader. A decimal must have the digits of its
    scale, because Spark takes over its unscaled number.
    """
    if pat.is_string(normalize(t)):
        return pc.and_(
            pc.match_substring_regex(texts, r"(?s)" + _STRING), pc.not_equal(texts, HIVE_NULL)
        )
    plain = texts
    for escape, character in _ESCAPES if pat.is_timestamp(normalize(t)) else ():
        plain = pc.replace_substring(plain, escape, character)
    return pc.match_substring_regex(plain, _pattern(normalize(t)))


def name_restored_by_spark(name: str) -> bool:
    """Tell whether Spark restores the name of a partition column, which it decodes like a value."""
    return re.fullmatch(_STRING, quote(name)) is not None


def _pattern(t: pa.DataType) -> str:
    if pat.is_unsigned_integer(t):
        return _UNSIGNED
    if pat.is_integer(t):
        return _INTEGER
    if pat.is_floating(t):
        return _FLOAT
    if pat.is_boolean(t):
        return _BOOL
    if pat.is_date(t):
        return _DATE
    if pat.is_timestamp(t):
        return rf"^{_TIMESTAMP}{_ZONE if t.tz is not None else ''}$"
    if pat.is_decimal(t) and t.scale > 0:
        return rf"^[+-]?[0-9]+\.[0-9]{{{t.scale}}}$"
    if pat.is_decimal(t) and t.scale == 0:
        return _INTEGER
    return r"[^\s\S]"  # matches nothing: binary, time and nested values
