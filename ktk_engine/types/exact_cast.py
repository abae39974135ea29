"""Casts that change no value, and the values that a type of the same class cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.types.arrow_cast import cast_values, list_elements
from ktk_engine.types.type_class import is_list


def cast_exactly(
    values: pa.Array, target: pa.DataType
) -> tuple[pa.Array | None, pa.Array | None, str]:
    """Cast values within their class, or give a mask of the misfits with Arrow's message."""
    error = ""
    cast = None
    try:
        cast = cast_values(values, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as problem:
        error = str(problem)
    if cast is not None and not _may_round(values.type, target):
        return cast, None, ""
    mask = misfits(values, target)
    if cast is not None and not pc.any(mask).as_py():
        return cast, None, ""
    return None, mask, error


def misfits(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Flag the values that do not survive a cast within their class; nested ones as a whole."""
    if is_list(values.type) and is_list(target):
        return _list_misfits(values, target)
    if pat.is_map(values.type) and pat.is_map(target):
        keys = _list_misfits(_map_part(values, "keys"), pa.list_(target.key_type))
        return pc.or_(keys, _list_misfits(_map_part(values, "items"), pa.list_(target.item_type)))
    if pat.is_struct(values.type) and pat.is_struct(target):
        mask = _nothing(values)
        for field, part in zip(values.type, values.flatten(), strict=True):
            if target.get_field_index(field.name) >= 0:
                mask = pc.or_(mask, misfits(part, target.field(field.name).type))
        return mask
    if _may_round(values.type, target):
        back = values.cast(target, safe=False).cast(values.type, safe=False)
        differs = pc.fill_null(pc.not_equal(back, values), False)
        return pc.and_not(differs, pc.fill_null(pc.is_nan(values), False))
    return _flat_misfits(values, target)


def _may_round(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast that Arrow considers safe may change a float, at any depth."""
    if pat.is_floating(source) and pat.is_floating(target):
        return bool(source.bit_width > target.bit_width)
    if is_list(source) and is_list(target):
        return _may_round(source.value_type, target.value_type)
    if pat.is_map(source) and pat.is_map(target):
        return _may_round(source.key_type, target.key_type) or _may_round(
            source.item_type, target.item_type
        )
    if pat.is_struct(source) and pat.is_struct(target):
        return any(
            target.get_field_index(f.name) >= 0 and _may_round(f.type, target.field(f.name).type)
            for f in source
        )
    return False


def _flat_misfits(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Try each distinct value; needed only after a cast of all has failed."""
    try:
        values.cast(target, safe=True)
        return _nothing(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        encoded = values.dictionary_encode()
    flags = []
    for index in range(len(encoded.dictionary)):
        try:
            encoded.dictionary.slice(index, 1).cast(target, safe=True)
            flags.append(False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            flags.append(True)
    return pc.fill_null(pc.take(pa.array(flags, pa.bool_()), encoded.indices), False)


def _list_misfits(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Flag lists with a misfit, or of another than the fixed size."""
    elements, parents = list_elements(values)
    wrong = parents.filter(misfits(elements, target.value_type))
    rows = pa.array(range(len(values)), parents.type)
    mask = pc.is_in(rows, value_set=pc.unique(wrong))
    if pat.is_fixed_size_list(target):
        other = pc.not_equal(pc.list_value_length(values), target.list_size)
        mask = pc.or_(mask, pc.fill_null(other, False))
    return mask


def _map_part(values: pa.MapArray, part: str) -> pa.Array:
    """Give the keys or items of maps as lists."""
    whole = values.take(pa.array(range(len(values)), pa.int64()))  # drops the offset
    return pa.ListArray.from_arrays(whole.offsets, getattr(whole, part))


def _nothing(values: pa.Array) -> pa.Array:
    """A mask without any misfit."""
    return pa.repeat(pa.scalar(False), len(values))
