"""What to write instead: the cast of a column to a class."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.messages import Remedy
from ktk_engine.types.arrow_name import arrow_name, sql_name
from ktk_engine.types.mismatch import family, mismatch
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.type_class import is_list, normalize, unwrap

_NUMBERS = frozenset({"bool", "signed", "unsigned", "float", "decimal"})


def cast_to(column: str, model: pa.DataType, committed: pa.DataType) -> Remedy:
    """Say how to bring a column to the committed class.

    That is the cast in SQL and Arrow, else the type to give. For zones other than UTC, which SQL
    lacks (decision 7), it is the type to declare.
    """
    committed, model = unwrap(committed), unwrap(model)
    arrow = _arrow_cast(column, model, committed)
    if pat.is_timestamp(committed) and committed.tz not in (None, "UTC"):
        return Remedy("give_zone", declared=arrow_name(normalize(committed)), arrow=arrow)
    target = _in_the_order_of(model, committed)
    if target is None or not _castable(model, committed):
        sql, arrow = sql_name(committed), _arrow_type(committed)
        return Remedy("give_type", column=readable_identifier(column), sql=sql, arrow=arrow)
    sql = f"cast({readable_identifier(column)} as {sql_name(target)})"
    return Remedy("cast", sql=sql, arrow=_arrow_cast(column, model, target))


def cast_of(column: str, target: pa.DataType) -> Remedy:
    """Say how to cast a column of any type."""
    sql = f"cast({readable_identifier(column)} as {sql_name(target)})"
    return Remedy("cast", sql=sql, arrow=_arrow_cast(column, pa.null(), target))


def renamed(column: str, wanted: str) -> Remedy:
    """Say that a column has another name."""
    sql = f"{readable_identifier(column)} as {readable_identifier(wanted)}"
    return Remedy("as_column", sql=sql, column=column, wanted=wanted)


def null_column(column: str, committed: pa.DataType) -> Remedy:
    """Say how to add a column of nulls."""
    sql = f"cast(null as {sql_name(committed)}) as {readable_identifier(column)}"
    arrow = f"table.append_column({column!r}, pa.nulls(len(table), {_arrow_type(committed)}))"
    return Remedy("null_column", sql=sql, arrow=arrow)


def let_column_come(column: str, given: pa.DataType, dataset: str) -> Remedy:
    """Say how to add an unknown column to a dataset; of a cube, with its id."""
    of, arrow = _first_argument(dataset), _arrow_type(given)
    return Remedy("let_column_come", column=column, of=of, arrow=arrow)


def let_column_go(column: str, dataset: str) -> Remedy:
    """Say how to drop a column from a dataset; of a cube, with its id."""
    return Remedy("let_column_go", column=column, of=_first_argument(dataset))


def _first_argument(dataset: str) -> str:
    return f"{dataset!r}, " if dataset else ""


def _arrow_cast(column: str, model: pa.DataType, target: pa.DataType) -> str:
    """The cast of an Arrow column in Python."""
    given, wanted = f"table[{column!r}]", _arrow_type(target)
    if pat.is_timestamp(target) and pat.is_timestamp(model) and bool(model.tz) != bool(target.tz):
        if target.tz:
            return f"pc.assume_timezone({given}, {target.tz!r})"
        return f"pc.local_timestamp({given})"
    if pat.is_date(target) and pat.is_timestamp(model):
        return f"{given}.cast({wanted}, safe=False)"
    return f"{given}.cast({wanted})"


def _arrow_type(t: pa.DataType) -> str:
    """A type in Python: `pa.int64()`."""
    t = normalize(unwrap(t))
    if pat.is_decimal(t):
        return f"pa.decimal{t.bit_width}({t.precision}, {t.scale})"
    if pat.is_timestamp(t):
        return f"pa.timestamp({t.unit!r}, {t.tz!r})" if t.tz else f"pa.timestamp({t.unit!r})"
    if pat.is_time(t):
        return f"pa.time{t.bit_width}({t.unit!r})"
    if pat.is_duration(t):
        return f"pa.duration({t.unit!r})"
    if is_list(t):
        return f"pa.list_({_arrow_type(t.value_type)})"
    if pat.is_map(t):
        return f"pa.map_({_arrow_type(t.key_type)}, {_arrow_type(t.item_type)})"
    if pat.is_struct(t):
        return f"pa.struct({{{', '.join(f'{f.name!r}: {_arrow_type(f.type)}' for f in t)}}})"
    named = {"bool": "bool_", "double": "float64", "float": "float32", "halffloat": "float16"}
    name = str(t).partition("[")[0]
    return f"pa.{named.get(name, name)}()"


def _castable(model: pa.DataType, committed: pa.DataType) -> bool:
    """Whether Spark can cast between two types, in ANSI mode."""
    if pat.is_nested(model) or pat.is_nested(committed):
        return True
    families = {family(model), family(committed)}
    return (
        len(families) == 1
        or "null" in families
        or "string" in families
        or families <= _NUMBERS
        or families == {"date", "timestamp"}
    )


def _in_the_order_of(model: pa.DataType, committed: pa.DataType) -> pa.DataType | None:
    """The committed type with the fields of structs in the model's order; None for another shape.

    Spark casts structs by position, so a cast to another order would swap values.
    """
    model, committed = unwrap(model), unwrap(committed)
    if not pat.is_nested(model) and not pat.is_nested(committed):
        return committed if _castable(model, committed) else None
    if mismatch(model, committed) is None:
        return model
    if is_list(model) and is_list(committed):
        item = _in_the_order_of(model.value_type, committed.value_type)
        return None if item is None else pa.list_(item)
    if pat.is_map(model) and pat.is_map(committed):
        key = _in_the_order_of(model.key_type, committed.key_type)
        value = _in_the_order_of(model.item_type, committed.item_type)
        return None if key is None or value is None else pa.map_(key, value)
    if pat.is_struct(model) and pat.is_struct(committed):
        return _struct_in_the_order_of(model, committed)
    return None


def _struct_in_the_order_of(model: pa.StructType, committed: pa.StructType) -> pa.DataType | None:
    """The committed struct in the given order; None if the fields differ."""
    if {f.name for f in model} != {f.name for f in committed}:
        return None
    fields: list[pa.Field] = []
    for ours in model:
        target = _in_the_order_of(ours.type, committed.field(ours.name).type)
        if target is None:
            return None
        fields.append(pa.field(ours.name, target))
    return pa.struct(fields)
