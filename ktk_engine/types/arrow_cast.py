"""Casts that some versions of Arrow lack."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.types.type_class import is_list, plain_type

_FINDS_FIELDS_BY_NAME = int(pa.__version__.split(".")[0]) >= 20


def cast_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values safely; fields of structs are matched by name.

    Raises a `pa.ArrowInvalid` if a value does not fit.
    """
    values = plain_values(values)
    try:
        return values.cast(target, safe=True)
    except pa.ArrowTypeError:
        # Before Arrow 20 the fields must be in the same order.
        if _FINDS_FIELDS_BY_NAME or not _same_fields(values.type, target):
            raise
    except pa.ArrowIndexError:
        pass  # under a null struct, Arrow's arrays have indices beyond the dictionary
    try:
        return pa.array(values.to_pylist(), target)
    except (OverflowError, ValueError) as error:
        raise pa.ArrowInvalid(str(error)) from error


def plain_values(values: pa.Array) -> pa.Array:
    """Give the same values in the `plain_type` of their type.

    Raises a `pa.ArrowNotImplementedError` if this version of Arrow cannot convert views, and a
    `pa.ArrowInvalid` if a list would have too many elements.
    """
    t, plain = values.type, plain_type(values.type)
    if t.equals(plain):
        return values
    if isinstance(t, pa.BaseExtensionType):
        return plain_values(values.storage)
    if pat.is_run_end_encoded(t):
        return plain_values(pc.run_end_decode(values))
    if pat.is_dictionary(t):
        # Arrow cannot take from views, so the few distinct values are converted first.
        return pc.take(plain_values(values.dictionary), values.indices)
    if pat.is_struct(t):
        # Flattened: under a null struct, indices may be beyond the end of a dictionary.
        parts = [plain_values(part) for part in values.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(plain), mask=values.is_null())
    if pat.is_map(t):
        start, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys = plain_values(values.keys.slice(start, stop - start))
        items = plain_values(values.items.slice(start, stop - start))
        lengths = pc.subtract(values.offsets[1:], values.offsets[:-1])
        return pa.MapArray.from_arrays(_offsets(values, lengths), keys, items, plain)
    if pat.is_fixed_size_list(plain):
        start, size = values.offset * t.list_size, len(values) * t.list_size
        parts_ = plain_values(values.values.slice(start, size))
        return pa.FixedSizeListArray.from_arrays(parts_, type=plain, mask=values.is_null())
    if is_list(t):  # Arrow's cast of list views gives wrong offsets
        made = pa.LargeListArray if pat.is_large_list(t) else pa.ListArray
        elements = plain_values(pc.list_flatten(values))
        return made.from_arrays(
            _offsets(values, pc.list_value_length(values)), elements, type=plain
        )
    return values.cast(plain)


def list_elements(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Give the elements of lists, and for each one the number of its list.

    Those below a null list, which Arrow keeps in lists of a fixed size, are left out.
    """
    there = values.is_valid()
    lists = values.filter(there)
    numbers = pa.array(range(len(values)), pa.int64()).filter(there)
    return pc.list_flatten(lists), numbers.take(pc.list_parent_indices(lists))


def _offsets(values: pa.Array, lengths: pa.Array) -> pa.Array:
    """The start of each list and the end of the last; null where the list is null."""
    ends = pc.cumulative_sum_checked(pc.fill_null(lengths, 0))
    starts = pa.concat_arrays([pa.array([0], ends.type), ends])
    absent = pa.concat_arrays([values.is_null(), pa.array([False])])
    return pc.if_else(absent, None, starts)


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
