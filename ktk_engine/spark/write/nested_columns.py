"""Nested columns as a dataset has them: the order of fields, and types of always empty parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.frames import with_types
from ktk_engine.types.type_class import is_list, unwrap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NESTED = (st.ArrayType, st.MapType, st.StructType)


def with_known_parts(frame: DataFrame, known: Mapping[str, pa.DataType]) -> DataFrame:
    """Put the fields of structs into the known order, since Spark matches them by position.

    All parts may be null then (decision 32): PySpark refuses a null struct whose fields may not,
    and Arrow a null type that may not. The keys of `map()`, which have no type, get the known one,
    or text.
    """
    types = {}
    for field in frame.schema.fields:
        if isinstance(field.dataType, _NESTED):
            wanted = _like(field.dataType, known.get(field.name, pa.null()))
            if wanted != field.dataType:
                types[field.name] = wanted
    return with_types(frame, types)


def _like(given: st.DataType, known: pa.DataType) -> st.DataType:
    """A type with fields in the known order, nullable, and with a type for keys."""
    known = unwrap(known)
    if isinstance(given, st.ArrayType):
        element = _like(given.elementType, known.value_type if is_list(known) else pa.null())
        return st.ArrayType(element)
    if isinstance(given, st.MapType):
        parts = (known.key_type, known.item_type) if pat.is_map(known) else (pa.null(), pa.null())
        key, value = _like(given.keyType, parts[0]), _like(given.valueType, parts[1])
        if isinstance(key, st.NullType):
            key = st.StringType() if pat.is_null(parts[0]) else spark_type(parts[0])
        return st.MapType(key, value)
    if isinstance(given, st.StructType):
        fields = {field.name: field for field in given.fields}
        order, types = list(fields), {}
        if pat.is_struct(known):
            types = {field.name: field.type for field in known}
            if set(types) == set(fields) and len(fields) == len(given.fields):
                order = list(types)
        if len(fields) < len(given.fields):
            return given  # a repeated name is refused
        null = pa.null()
        return st.StructType(
            [st.StructField(n, _like(fields[n].dataType, types.get(n, null))) for n in order]
        )
    return given
