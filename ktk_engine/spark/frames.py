"""Makes frames of Arrow tables, and names and casts columns; the active session stays the same."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from ktk_engine.errors import ConfigurationError
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.compatibility import create_frame, spark_errors, try_cast
from ktk_engine.types.identifier import name_finder
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    Cast = Callable[[Column, DataType], Column]


def frame_of_table(
    session: SparkSession, table: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """Give a table as a frame of a session in UTC; the default types are closest to Arrow's."""
    with client_of(session).keeping_active():
        return create_frame(session, table, schema)


def empty_frame(session: SparkSession, schema: StructType) -> DataFrame:
    """Give a frame without rows."""
    with client_of(session).keeping_active():
        return session.createDataFrame([], schema)


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Let a frame be computed once while a block runs, however often it is used."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        with suppress(*spark_errors()):  # a Spark that is gone keeps nothing
            kept.unpersist()


def column(name: str) -> Column:
    """Refer to a column of a frame by name, with any characters in the name."""
    return F.col(quote_identifier(name))


def with_types(frame: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    """Cast only columns whose type differs, because each cast costs a dozen calls of the JVM.

    Fields of structs are matched by name if both have the same names.
    """
    given = {field.name: field.dataType for field in frame.schema.fields} if types else {}
    changed = {name: t for name, t in types.items() if given.get(name) != t}
    if not changed:
        return frame
    cast = cast_in(frame.sparkSession)
    casts = {
        name: cast_by_name(column(name), given.get(name), t, cast) for name, t in changed.items()
    }
    return frame.withColumns(casts)


def cast_in(session: SparkSession) -> Cast:
    """How values are cast in a session: one that does not fit is an error, in ANSI mode or not."""
    is_ansi = str(session.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    return _plain_cast if is_ansi else _exact_cast


def _plain_cast(value: Column, wanted: DataType) -> Column:
    return value.cast(wanted)


def _exact_cast(value: Column, wanted: DataType) -> Column:
    found = try_cast(value, wanted)
    said = F.concat(F.lit("A value does not fit its column: "), value.cast("string"))
    problem = F.raise_error(said).cast(wanted)
    return F.when(value.isNotNull() & found.isNull(), problem).otherwise(found)


def cast_by_name(
    value: Column, given: DataType | None, wanted: DataType, cast: Cast = _plain_cast
) -> Column:
    """Cast a value; fields of structs in another order are matched by name.

    `given` is the type of the value; None if unknown.
    """
    if given is None or not _is_rearranged(given, wanted):
        return cast(value, wanted)
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        old, new = given.elementType, wanted.elementType
        return F.transform(value, lambda item: cast_by_name(item, old, new, cast)).cast(wanted)
    if isinstance(given, MapType) and isinstance(wanted, MapType):

        def entry(item: Column) -> Column:
            key = cast_by_name(item["key"], given.keyType, wanted.keyType, cast)
            return F.struct(
                key.alias("key"),
                cast_by_name(item["value"], given.valueType, wanted.valueType, cast).alias("value"),
            )

        return F.map_from_entries(F.transform(F.map_entries(value), entry)).cast(wanted)
    assert isinstance(given, StructType) and isinstance(wanted, StructType)
    types = {field.name: field.dataType for field in given.fields}
    fields = []
    for name, place in (_same_fields(given, wanted) or {}).items():
        field = cast_by_name(value.getField(place), types[place], wanted[name].dataType, cast)
        fields.append(field.alias(name))
    return F.when(value.isNotNull(), F.struct(*fields)).cast(wanted)


def _is_rearranged(given: DataType, wanted: DataType) -> bool:
    """Whether a cast, which goes by position, would put values of a struct into other fields."""
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _is_rearranged(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        keys = _is_rearranged(given.keyType, wanted.keyType)
        return keys or _is_rearranged(given.valueType, wanted.valueType)
    if not isinstance(given, StructType) or not isinstance(wanted, StructType):
        return False
    places = _same_fields(given, wanted)
    if places is None:
        return False
    if list(places.values()) != given.names:
        return True
    return any(
        _is_rearranged(old.dataType, new.dataType)
        for old, new in zip(given.fields, wanted.fields, strict=True)
    )


def _same_fields(given: StructType, wanted: StructType) -> dict[str, str] | None:
    """Field -> its name in the given struct; None if the two have other fields."""
    find = name_finder(given.names)
    places = {name: find(name) for name in wanted.names}
    found = {name: there for name, there in places.items() if there is not None}
    same = len(set(found.values())) == len(given.names) == len(wanted.names)
    return found if same else None


def check_fields(given: DataType, wanted: DataType, path: str) -> None:
    """Refuse structs whose fields do not match by name, with a `ConfigurationError` for `path`."""
    parts: list[tuple[DataType, DataType, str]] = []
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        parts = [(given.elementType, wanted.elementType, f"{path}[]")]
    elif isinstance(given, MapType) and isinstance(wanted, MapType):
        parts = [
            (given.keyType, wanted.keyType, f"{path}{{key}}"),
            (given.valueType, wanted.valueType, f"{path}{{value}}"),
        ]
    elif isinstance(given, StructType) and isinstance(wanted, StructType):
        places = _same_fields(given, wanted)
        if places is None:
            raise ConfigurationError(
                f"The struct `{path}` has the fields {', '.join(wanted.names)}, and the values "
                f"have {', '.join(given.names)}: fields go by their names, for instance "
                "named_struct('a', 1, 'b', 2). Nothing was written."
            )
        types = {field.name: field.dataType for field in given.fields}
        parts = [(types[places[f.name]], f.dataType, f"{path}.{f.name}") for f in wanted.fields]
    for part in parts:
        check_fields(*part)
