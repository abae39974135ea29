"""Cohorts: files of one dataset that Spark reads alike.

A type class allows several physical types in one column, and Spark's reader not all of them under
the class's Spark type. Files are sorted by what has to be done for their columns; each cohort is a
relation of its own with its own casts.

See docs/design/reading.md, Cohorts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import physical_schemas
from ktk_engine.log.snapshot import Snapshot, is_own
from ktk_engine.spark.arrow_types import MAXIMUM_DECIMAL_PRECISION, spark_type
from ktk_engine.spark.compatibility import widens_when_reading
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import is_list, normalize, unwrap

_NARROW: tuple[tuple[pa.DataType, st.DataType], ...] = (
    (pa.int8(), st.ByteType()),
    (pa.int16(), st.ShortType()),
    (pa.int32(), st.IntegerType()),
    (pa.uint8(), st.ShortType()),
    (pa.uint16(), st.IntegerType()),
    (pa.uint32(), st.LongType()),
    (pa.float32(), st.FloatType()),
)


@dataclass(frozen=True)
class Cohort:
    """Files that are read alike.

    Attributes:
        files: rows of the snapshot's table of files.
        own: whether this library wrote them; bounds of others decide nothing.
        read_as: column -> the Spark type to read it with, where that is not the class's own.
        absent: columns that none of the files has, or only as nulls: null is given for them.
        by_arrow: columns that Spark cannot read at all; if there is one, pyarrow reads the files.
    """

    files: pa.Table
    own: bool
    read_as: dict[str, st.DataType]
    absent: frozenset[str]
    by_arrow: frozenset[str]


def cohorts(
    store: ObjectStore,
    footers: FooterCache,
    snapshot: Snapshot,
    files: pa.Table,
    columns: Sequence[str],
) -> list[Cohort]:
    """Sort files by what has to be done to read some columns.

    Args:
        store: where they lie.
        footers: what is known of files of other writers.
        snapshot: the dataset.
        files: rows of `snapshot.files`.
        columns: data columns, no partition columns.

    Returns:
        At least one cohort; the files keep their order within each.
    """
    schemas, at = physical_schemas(store, footers, snapshot, files)
    kinds: dict[tuple[object, ...], list[int]] = {}
    for number, schema in enumerate(schemas):
        kinds.setdefault(_kind(snapshot.schema, schema, columns), []).append(number)
    own, found = is_own(files), []
    for numbers in kinds.values():
        alike = pc.is_in(at, value_set=pa.array(numbers, at.type))
        for wrote in (True, False):
            chosen = files.filter(pc.and_(alike, own if wrote else pc.invert(own)))
            if chosen.num_rows:
                schema = schemas[numbers[0]]
                found.append(_cohort(snapshot.schema, schema, columns, chosen, wrote))
    return found


def _kind(schema: pa.Schema, physical: pa.Schema, columns: Sequence[str]) -> tuple[object, ...]:
    """What has to be done for the columns, as a key."""
    known = {field.name: field.type for field in physical}
    return tuple(
        treatment(schema.field(name).type, known[name]) if name in known else "absent"
        for name in columns
    )


def _cohort(
    schema: pa.Schema, physical: pa.Schema, columns: Sequence[str], files: pa.Table, own: bool
) -> Cohort:
    kinds = dict(zip(columns, _kind(schema, physical, columns), strict=True))
    return Cohort(
        files,
        own,
        {name: kind for name, kind in kinds.items() if isinstance(kind, st.DataType)},
        frozenset(name for name, kind in kinds.items() if kind == "absent"),
        frozenset(name for name, kind in kinds.items() if kind == "arrow"),
    )


def treatment(t: pa.DataType, physical: pa.DataType) -> object:
    """Say how Spark reads a column of a class from one physical type.

    Args:
        t: a type of the class.
        physical: the type that the column has in a file.

    Returns:
        None: as the class's own Spark type; a Spark type: as that; `absent`: there are only nulls;
        `arrow`: Spark cannot.
    """
    if pat.is_null(unwrap(physical)) or pat.is_null(normalize(t)):
        return "absent"
    if _is_unreadable(physical) or mismatch(t, physical) is not None:
        return "arrow"  # which also casts between classes, exactly or not at all
    if not widens_when_reading():
        found = _own_type(physical)
        return None if found == spark_type(t) else found
    return _read_type(physical) if _has_narrow_unsigned(physical) else None


def _is_unreadable(t: pa.DataType) -> bool:
    """Whether Spark's reader has no way to read a type."""
    if isinstance(t, pa.BaseExtensionType) and t.extension_name == "arrow.uuid":
        return True
    t = unwrap(t)
    if is_list(t):
        return _is_unreadable(t.value_type)
    if pat.is_map(t):
        return _is_unreadable(t.key_type) or _is_unreadable(t.item_type)
    if pat.is_struct(t):
        return any(_is_unreadable(field.type) for field in t)
    nanoseconds = pat.is_timestamp(t) and t.unit == "ns"
    wide = pat.is_decimal(t) and t.precision > MAXIMUM_DECIMAL_PRECISION
    return bool(pat.is_float16(t) or pat.is_time(t) or nanoseconds or wide or pat.is_null(t))


def _has_narrow_unsigned(t: pa.DataType) -> bool:
    """Whether there is an unsigned type that Spark reads as a signed one."""
    t = unwrap(t)
    if is_list(t):
        return _has_narrow_unsigned(t.value_type)
    if pat.is_map(t):
        return _has_narrow_unsigned(t.key_type) or _has_narrow_unsigned(t.item_type)
    if pat.is_struct(t):
        return any(_has_narrow_unsigned(field.type) for field in t)
    return bool(pat.is_unsigned_integer(t) and not pat.is_uint64(t))


def _read_type(t: pa.DataType) -> st.DataType:
    """The Spark type with which a physical type is read and loses nothing."""
    return _nested(t, lambda t: st.LongType() if _has_narrow_unsigned(t) else spark_type(t))


def _own_type(t: pa.DataType) -> st.DataType:
    """The Spark type that is nearest to a physical type: all that Spark 3.5 reads it with."""

    def own(leaf: pa.DataType) -> st.DataType:
        if pat.is_decimal(leaf) and leaf.precision <= MAXIMUM_DECIMAL_PRECISION:
            return st.DecimalType(leaf.precision, leaf.scale)
        return next((spark for arrow, spark in _NARROW if leaf.equals(arrow)), spark_type(leaf))

    return _nested(t, own)


def _nested(t: pa.DataType, of_leaf: Callable[[pa.DataType], st.DataType]) -> st.DataType:
    """The Spark type of a physical type, whose leaves a function gives."""
    t = unwrap(t)
    if is_list(t):
        return st.ArrayType(_nested(t.value_type, of_leaf))
    if pat.is_map(t):
        return st.MapType(_nested(t.key_type, of_leaf), _nested(t.item_type, of_leaf))
    if pat.is_struct(t):
        fields = sorted(t, key=lambda field: field.name)
        return st.StructType([st.StructField(f.name, _nested(f.type, of_leaf)) for f in fields])
    return of_leaf(t)
