"""Casts that not every version of Arrow can do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.types.type_class import is_list, plain_type

_FINDS_FIELDS_BY_NAME = int(pa.__version__.split(".")[0]) >= 20


def cast_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values to another type, safely; fields of structs go by their names.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    if _has_list_view(values.type):
        values = _with_lists(values)
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


def _has_list_view(t: pa.DataType) -> bool:
    """Whether there is a view of lists at any depth."""
    if pat.is_list_view(t) or pat.is_large_list_view(t):
        return True
    children = [t.field(number).type for number in range(t.num_fields)] if pat.is_nested(t) else []
    return any(map(_has_list_view, children))


def _with_lists(values: pa.Array) -> pa.Array:
    """Lists in the place of their views, of which Arrow's own cast makes arrays without an end."""
    t = values.type
    if not (pat.is_list_view(t) or pat.is_large_list_view(t)):
        return pa.array(values.to_pylist(), plain_type(t)) if _has_list_view(t) else values
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    items = _with_lists(pc.list_flatten(values))
    missing = values.is_null() if values.null_count else None
    return pa.LargeListArray.from_arrays(offsets, items, mask=missing)


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
