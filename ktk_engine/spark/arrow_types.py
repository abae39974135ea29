"""Maps Arrow types to Spark's and back.

See docs/types.md, Classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.types as pt
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.errors import DataError, TypeClassError
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.compatibility import spark_version, time_type, to_arrow_type
from ktk_engine.types.type_class import TypeWithoutClass, is_list, normalize, unwrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

MAXIMUM_DECIMAL_PRECISION = 38

# By name, since not every version has them: why they have no class, and what to use instead.
_BYTES = "Arrow has no such type, and the bytes alone do not say what they mean"
_UNIT = "store a number together with its unit"
_WITHOUT_CLASS = {
    "VariantType": (_BYTES, "to_json({})"),
    "GeometryType": (_BYTES, "st_asbinary({})"),
    "GeographyType": (_BYTES, "st_asbinary({})"),
    "DayTimeIntervalType": (_UNIT, "cast({} as string)"),
    "YearMonthIntervalType": (_UNIT, "cast({} as string)"),
    "CalendarIntervalType": (_UNIT, "cast({} as string)"),
}

_SIMPLE: tuple[tuple[object, st.DataType], ...] = (
    (pa.bool_(), st.BooleanType()),
    (pa.int64(), st.LongType()),
    (pa.uint64(), st.DecimalType(20, 0)),
    (pa.float64(), st.DoubleType()),
    (pa.string(), st.StringType()),
    (pa.binary(), st.BinaryType()),
    (pa.date32(), st.DateType()),
    (pa.timestamp("us"), st.TimestampNTZType()),
    (pa.null(), st.NullType()),
)


def spark_type(arrow: pa.DataType) -> st.DataType:
    """The Spark type of a type class: the class decides, not the width of the Arrow type.

    So every signed integer is bigint and every unsigned one decimal(20,0). Raises a
    `TypeClassError` if Spark has no type.
    """
    return nested_type(normalize(arrow), _flat_type)


def nested_type(t: pa.DataType, of_leaf: Callable[[pa.DataType], st.DataType]) -> st.DataType:
    """The Spark type of an Arrow type, whose leaves a function gives; fields by name."""
    t = unwrap(t)
    if is_list(t):
        return st.ArrayType(nested_type(t.value_type, of_leaf))
    if pt.is_map(t):
        return st.MapType(nested_type(t.key_type, of_leaf), nested_type(t.item_type, of_leaf))
    if pt.is_struct(t):
        fields = sorted(t, key=lambda field: field.name)
        return st.StructType([st.StructField(f.name, nested_type(f.type, of_leaf)) for f in fields])
    return of_leaf(t)


def _flat_type(normal: pa.DataType) -> st.DataType:
    for candidate, spark in _SIMPLE:
        if normal.equals(candidate):
            return spark
    if pt.is_time(normal):
        return _time_type()
    if pt.is_decimal(normal):
        return st.DecimalType(min(normal.precision, MAXIMUM_DECIMAL_PRECISION), normal.scale)
    if pt.is_timestamp(normal):
        return st.TimestampType()  # an instant: Spark stores no zone
    raise TypeClassError(f"Spark has no type for Arrow's {normal}.")


def _time_type() -> st.DataType:
    found = time_type()
    if found is None:
        major, minor = spark_version()
        raise TypeClassError(
            Message(
                f"Spark {major}.{minor} has no type for times of day (the class time). Use Spark "
                "4.1 or newer, read these columns without Spark (",
                Remedy("answer_here"),
                "), or ask for other columns only.",
            )
        )
    return found


def spark_schema(fields: Iterable[pa.Field]) -> st.StructType:
    """The Spark schema in which columns are read, all of them nullable."""
    return st.StructType([_spark_field(field) for field in fields])


def _spark_field(field: pa.Field) -> st.StructField:
    try:
        return st.StructField(field.name, spark_type(field.type))
    except TypeClassError as error:
        raise TypeClassError(Message(f"Column `{field.name}`: ", error)) from error


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """The Arrow schema in which Spark passes rows to Python, in a session in UTC.

    Types that no file can hold are in it as `TypeWithoutClass`, for the gate to refuse. The key of
    a map that is always empty is text.
    """
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in schema.fields])


def type_in_sql(session: SparkSession, text: str) -> pa.DataType | None:
    """Give the Arrow type of a type name in Spark's SQL (see `arrow_schema`); None if unknown."""
    from pyspark.errors import AnalysisException

    try:
        schema = session.sql(f"select cast(null as {text}) as x").schema
    except AnalysisException:
        return None
    return arrow_schema(schema).field(0).type


def _arrow_type(spark: st.DataType) -> pa.DataType:
    """The Arrow type of a Spark type; all its parts may be null (decision 32)."""
    if isinstance(spark, st.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(spark.elementType)))
    if isinstance(spark, st.MapType):
        key = st.StringType() if isinstance(spark.keyType, st.NullType) else spark.keyType
        return pa.map_(_arrow_type(key), _arrow_type(spark.valueType))
    if isinstance(spark, st.StructType):
        return pa.struct([(field.name, _arrow_type(field.dataType)) for field in spark.fields])
    return _without_class(spark) or to_arrow_type(spark)


def _without_class(spark: st.DataType) -> TypeWithoutClass | None:
    """A placeholder for a type that Arrow does not know, or confuses with another one."""
    from pyspark.errors import PySparkTypeError

    name = spark.simpleString()
    if isinstance(spark, st.UserDefinedType):
        problem = "only the program that made it knows what its values mean"
        return TypeWithoutClass(name, problem, "get numbers, strings, arrays or structs from {}")
    if isinstance(spark, st.StringType) and " collate " in name:
        problem = "files hold its letters, and not by which rule they are compared"
        return TypeWithoutClass(name, problem, "cast({} as string)")
    found = _WITHOUT_CLASS.get(type(spark).__name__)
    if found is not None:
        return TypeWithoutClass(name, *found)
    try:
        to_arrow_type(spark)
    except PySparkTypeError:
        return TypeWithoutClass(name, "no file can hold it", "cast {} to another type")
    return None


def seen_by_spark(table: pa.Table) -> pa.Table:
    """Give rows in container types the types that they have after a round trip through Spark.

    Raises a `TypeClassError` if Spark has no type for a column, or a `DataError` if its type does
    not hold a value.
    """
    target = arrow_schema(spark_schema(table.schema))
    return pa.Table.from_arrays(
        [cast_for_spark(c, f) for c, f in zip(table.columns, target, strict=True)], schema=target
    )


_Values = TypeVar("_Values", pa.Array, pa.ChunkedArray)


def cast_for_spark(values: _Values, target: pa.Field) -> _Values:
    """Cast a column from its container to Spark's type; a `DataError` if a value does not fit."""
    if values.type.equals(target.type):
        return values
    try:
        return values.cast(target.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            Message(
                f"Column `{target.name}` has a value that Spark cannot hold: {error}. Leave the "
                "column out, or read it without Spark (",
                Remedy("answer_here"),
                ").",
            )
        ) from error


def type_names(schema: st.StructType) -> dict[str, str]:
    """Name the types of a query's columns, in order."""
    return {field.name: field.dataType.simpleString() for field in schema.fields}
