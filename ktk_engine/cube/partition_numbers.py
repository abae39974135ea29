"""Numbers partitions: equal values in all their columns give equal numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def partition_numbers(values: Sequence[pa.Array], count: int) -> pa.Array:
    """Number the partition of each file from 0; null and NaN are values.

    There is one array per partition column. Without any, all files share one partition.
    """
    numbers = pa.repeat(pa.scalar(0, pa.int32()), count)
    for position, column in enumerate(values):
        if position == 0 and _is_ascending(column):
            numbers = pa.array(np.arange(count, dtype=np.int32))
            continue
        codes = pc.dictionary_encode(column, null_encoding="encode")
        if position == 0:
            numbers = codes.indices
            continue
        both = pc.add(
            pc.multiply(numbers.cast(pa.int64()), len(codes.dictionary) + 1),
            codes.indices.cast(pa.int64()),
        )
        numbers = pc.dictionary_encode(both).indices  # keep the numbers small
    return numbers


def _is_ascending(values: pa.Array) -> bool:
    """Whether each value is above the one before, as with one compacted file per partition."""
    if values.null_count or len(values) < 2:
        return False
    try:
        return bool(pc.all(pc.less(values[:-1], values[1:])).as_py())
    except pa.ArrowNotImplementedError:  # a type without an order
        return False
