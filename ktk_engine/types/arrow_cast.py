"""Casts of Arrow that older versions of it do not have."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.types.type_class import class_name

_FINDS_FIELDS_BY_NAME = int(pa.__version__.split(".")[0]) >= 20


def cast_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values to another type of their class, safely.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    try:
        return values.cast(target, safe=True)
    except pa.ArrowTypeError:
        # Before Arrow 20 the fields of structs have to be in one order.
        if _FINDS_FIELDS_BY_NAME or not pat.is_nested(target):
            raise
        if class_name(values.type) != class_name(target):
            raise
        return pa.array(values.to_pylist(), target)
