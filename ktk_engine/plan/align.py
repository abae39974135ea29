"""Aligns the datasets of a cube by physical partition.

See docs/design/reading.md, Align.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.log.snapshot import PARTITION_PREFIX


def semi_join(files: pa.Table, other: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Keep the files whose partition the other dataset has as well.

    Args:
        files: a table of files.
        other: the other dataset's files.
        columns: the partition columns that both have.

    Returns:
        The files, in order of position; all of them if the two share no partition column and the
        other dataset has any file. Files with a partition value that nobody can read stay, and
        keep all others, so that anyone who needs the value is told.
    """
    if not columns:
        return files if other.num_rows else files.slice(0, 0)
    names = [PARTITION_PREFIX + column for column in columns]
    if any(other[name].null_count for name in names):
        return files
    # Numbered together: as one column, or several.
    both = [pa.concat_arrays([t[name].combine_chunks() for t in (files, other)]) for name in names]
    numbers = partition_numbers(both, files.num_rows + other.num_rows)
    mine, others = numbers.slice(0, files.num_rows), numbers.slice(files.num_rows)
    wanted = pc.is_in(mine, value_set=pc.unique(others))
    for name in names:
        wanted = pc.or_(wanted, pc.is_null(files[name].combine_chunks()))
    return files if wanted.true_count == len(wanted) else files.filter(wanted)
