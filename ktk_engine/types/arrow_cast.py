"""Casts that not every version of Arrow can do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.types.type_class import is_list

_FINDS_FIELDS_BY_NAME = int(pa.__version__.split(".")[0]) >= 20


def cast_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values to another type, safely; fields of structs go by their names.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    try:
        return values.cast(target, safe=True)
    except pa.ArrowTypeError:
        # Before Arrow 20 the fields have to be in one order.
        if _FINDS_FIELDS_BY_NAME or not _same_fields(values.type, target):
            raise
    except pa.ArrowIndexError:
        pass  # under a null struct, Arrow's own arrays have places beyond their dictionary's end
    try:
        return pa.array(values.to_pylist(), target)
    except (OverflowError, ValueError) as error:
        raise pa.ArrowInvalid(str(error)) from error


def _same_fields(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether all structs have the same fields, at any depth."""
    if pat.is_struct(left) and pat.is_struct(right):
        known = {field.name: field.type for field in right}
        return {field.name for field in left} == set(known) and all(
            _same_fields(field.type, known[field.name]) for field in left
        )
    if is_list(left) and is_list(right):
        return _same_fields(left.value_type, right.value_type)
    if pat.is_map(left) and pat.is_map(right):
        return _same_fields(left.item_type, right.item_type)
    return not pat.is_nested(left) and not pat.is_nested(right)
