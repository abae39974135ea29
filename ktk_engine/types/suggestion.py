"""What to write instead: the cast that brings a column to a class."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.types.arrow_name import arrow_name, sql_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.type_class import class_name, is_list, normalize, unwrap

_NUMBERS = frozenset({"bool", "signed", "unsigned", "float", "decimal"})


def cast_to(column: str, model: pa.DataType, committed: pa.DataType) -> str:
    """Say how a model brings a column to the committed class.

    Args:
        column: the column's name.
        model: the type that the model gives.
        committed: the type of the class to reach.

    Returns:
        The cast in Spark SQL; a `data_type` for the model's YAML where SQL has no word for
        the class (zones other than UTC, decision 7); else the type to give.
    """
    committed, model = unwrap(committed), unwrap(model)
    if pat.is_timestamp(committed) and committed.tz not in (None, "UTC"):
        return f"data_type: {arrow_name(normalize(committed))}"
    target = _in_the_order_of(model, committed)
    if target is None or not _castable(model, committed):
        return f"give {readable_identifier(column)} as {sql_name(committed)}"
    return f"cast({readable_identifier(column)} as {sql_name(target)})"


def _castable(model: pa.DataType, committed: pa.DataType) -> bool:
    """Tell whether Spark can cast between two types, in ANSI mode."""
    if pat.is_nested(model) or pat.is_nested(committed):
        return True
    families = {_family(model), _family(committed)}
    return (
        len(families) == 1
        or "null" in families
        or "string" in families
        or families <= _NUMBERS
        or families == {"date", "timestamp"}
    )


def _family(t: pa.DataType) -> str:
    """Name the kind of class of a flat type."""
    return re.split(r"[ \[(]", class_name(t), maxsplit=1)[0]


def _in_the_order_of(model: pa.DataType, committed: pa.DataType) -> pa.DataType | None:
    """Build the committed type with the fields of structs in the model's order.

    Spark casts structs by position, so that a cast to another order would exchange values.

    Returns:
        None where the two have another shape, so that no cast leads from one to the other.
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
    """Build the committed struct in the model's order, None if the fields differ."""
    if {f.name for f in model} != {f.name for f in committed}:
        return None
    fields: list[pa.Field] = []
    for ours in model:
        target = _in_the_order_of(ours.type, committed.field(ours.name).type)
        if target is None:
            return None
        fields.append(pa.field(ours.name, target))
    return pa.struct(fields)
