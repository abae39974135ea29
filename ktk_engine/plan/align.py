"""Aligns the datasets of a cube by physical partition. See docs/design/reading.md, Align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.plan.plan import DatasetPlan, prune_step
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX


def align(planned: Sequence[DatasetPlan], partition_columns: Sequence[str]) -> list[DatasetPlan]:
    """Drop partitions that cannot contribute, first of the seed dataset, `planned[0]`."""
    seed, *others = planned
    shared = [[c for c in partition_columns if c in o.snapshot.partition_keys] for o in others]
    files = seed.files
    for other, columns in zip(others, shared, strict=True):
        if other.join == "inner":
            files = semi_join(files, other.files, columns)
    aligned = [_with_files(seed, files)]
    for other, columns in zip(others, shared, strict=True):
        aligned.append(_with_files(other, semi_join(other.files, files, columns)))
    return aligned


def _with_files(item: DatasetPlan, files: pa.Table) -> DatasetPlan:
    step = prune_step("alignment", files)
    return replace(item, files=files, steps=(*item.steps, step))


def semi_join(files: pa.Table, other: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Keep the files whose partition the other dataset has as well, in order of position.

    Without a common partition column all stay, unless the other dataset has no file. Files with a
    partition value that cannot be parsed stay and keep all others, so that the scan reports the
    value if a query needs it.
    """
    if not columns:
        return files if other.num_rows else files.slice(0, 0)
    names = [PARTITION_PREFIX + column for column in columns]
    if any(other[name].null_count for name in names):
        return files
    if all(files[name].equals(other[name]) for name in names):
        return files
    # Numbered together: as one column, or several.
    both = [pa.concat_arrays([t[name].combine_chunks() for t in (files, other)]) for name in names]
    numbers = partition_numbers(both, files.num_rows + other.num_rows)
    mine, others = numbers.slice(0, files.num_rows), numbers.slice(files.num_rows)
    wanted = pc.is_in(mine, value_set=pc.unique(others))
    for name in names:
        wanted = pc.or_(wanted, pc.is_null(files[name].combine_chunks()))
    return files if wanted.true_count == len(wanted) else files.filter(wanted)
