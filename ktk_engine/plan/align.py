"""Aligns the datasets of a cube by physical partition.

See docs/design/reading.md, Align.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

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
    keys = other.select(names).group_by(names).aggregate([])
    # Arrow joins carry only plain columns: find the positions, then take the rows.
    found = files.select([*names, "position"]).join(keys, names, join_type="left semi")
    wanted = pa.compute.is_in(files["position"], value_set=found["position"].combine_chunks())
    for name in names:
        wanted = pa.compute.or_(wanted, pa.compute.is_null(files[name]))
    return files.filter(wanted)
