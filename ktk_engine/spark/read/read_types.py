"""The types in which Spark's reader reads columns of parquet files correctly, if any.

See docs/design/reading.md, Which way is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.spark.arrow_types import MAXIMUM_DECIMAL_PRECISION, nested_type, spark_type
from ktk_engine.spark.compatibility import widens_when_reading
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import is_list, unwrap

_NARROW: tuple[tuple[pa.DataType, st.DataType], ...] = (
    (pa.int8(), st.ByteType()),
    (pa.int16(), st.ShortType()),
    (pa.int32(), st.IntegerType()),
    (pa.uint8(), st.ShortType()),
    (pa.uint16(), st.IntegerType()),
    (pa.uint32(), st.LongType()),
    (pa.float32(), st.FloatType()),
)


def read_types(
    schema: pa.Schema, physical: pa.Schema, columns: Sequence[str]
) -> tuple[st.DataType, ...] | None:
    """Give the Spark type in which to read each column of a file, for a cast to its class's type.

    None if Spark reads one wrong. A column that the file lacks is null.
    """
    known, found = {field.name: field.type for field in physical}, list[st.DataType]()
    for name in columns:
        t = schema.field(name).type
        one = read_type(t, known.get(name, t))
        if one is None:
            return None
        found.append(one)
    return tuple(found)


def read_type(t: pa.DataType, physical: pa.DataType) -> st.DataType | None:
    """Give the Spark type in which to read a column; None if Spark cannot read it as this class."""
    leaves = [*_leaves(t), *_leaves(physical)]
    if any(map(_is_unreadable, leaves)) or mismatch(t, physical) is not None:
        return None
    if not widens_when_reading():
        return nested_type(physical, _own_type)
    if any(pat.is_unsigned_integer(leaf) and not pat.is_uint64(leaf) for leaf in _leaves(physical)):
        return nested_type(physical, _wide_type)
    return spark_type(t)


def _leaves(t: pa.DataType) -> Iterator[pa.DataType]:
    """The leaf types of a type."""
    bare = unwrap(t)
    if is_list(bare) or pat.is_map(bare) or pat.is_struct(bare):
        for number in range(bare.num_fields):
            yield from _leaves(bare.field(number).type)
    else:
        yield t if isinstance(t, pa.BaseExtensionType) else bare


def _is_unreadable(leaf: pa.DataType) -> bool:
    """Whether Spark's reader cannot read a type."""
    uuid = isinstance(leaf, pa.BaseExtensionType) and leaf.extension_name == "arrow.uuid"
    nanoseconds = pat.is_timestamp(leaf) and leaf.unit == "ns"
    wide = pat.is_decimal(leaf) and leaf.precision > MAXIMUM_DECIMAL_PRECISION
    without_class = pat.is_float16(leaf) or pat.is_time(leaf) or pat.is_null(leaf)
    return bool(uuid or nanoseconds or wide or without_class)


def _wide_type(leaf: pa.DataType) -> st.DataType:
    """The Spark type that holds all of a type's values; signed for narrow unsigned ones."""
    unsigned = pat.is_unsigned_integer(leaf) and not pat.is_uint64(leaf)
    return st.LongType() if unsigned else spark_type(leaf)


def _own_type(leaf: pa.DataType) -> st.DataType:
    """The Spark type closest to a type: Spark 3.5 reads it only with this one."""
    if pat.is_decimal(leaf):
        return st.DecimalType(leaf.precision, leaf.scale)
    return next((spark for arrow, spark in _NARROW if leaf.equals(arrow)), spark_type(leaf))
