"""Finds new files that are equal to those whose place they take, which then stay instead.

See docs/design/files-and-commits.md, The same bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.format.file_digest import FileDigest, verify_whole
from ktk_engine.local.cell_codes import occurrences
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot, concat_files, digests_of
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore

_Numbers = npt.NDArray[np.int64]


def equal_files(
    store: ObjectStore, base: Snapshot, gone: pa.Table, came: pa.Table, *, whole: bool
) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Flag the files of `gone` that stay, and those of `came` that are not needed for that.

    Both are tables of files in order of position. Files of a partition stay if its lists of digests
    are equal, as those of a cube always have to be: an old file among new ones would make the
    partition overlaid. Without `whole`, single files of a table stay. A file that stays is read and
    verified, since new rows are how damage is mended.
    """
    if not gone.num_rows or not came.num_rows:
        none = [pa.repeat(pa.scalar(False), files.num_rows) for files in (gone, came)]
        return none[0], none[1]
    is_cube = bool(base.dimension_columns)
    keys = address_partitions(base) if is_cube else base.partition_keys
    names = [*(PARTITION_PREFIX + key for key in keys), "digest", "commit"]
    both, count = concat_files([gone.select(names), came.select(names)]), gone.num_rows
    values = [both[PARTITION_PREFIX + key].combine_chunks() for key in keys]
    groups = partition_numbers(values, both.num_rows).to_numpy().astype(np.int64)
    digests = _numbers(both["digest"])
    if not (is_cube or whole):
        both_numbers = _joined(groups, digests)
        nth = np.concatenate([occurrences(both_numbers[:count]), occurrences(both_numbers[count:])])
        groups = _joined(both_numbers, nth)
    equal = _equal_groups(groups, digests, count)
    if is_cube:
        equal[_mixed(groups[:count], _numbers(both["commit"])[:count])] = False
    same = np.flatnonzero(equal[groups[:count]])
    kept = gone.take(same)
    items = zip(kept["key"].to_pylist(), digests_of(kept), strict=True)
    found = np.array(ask_all(store, lambda item: _is_as_written(store, *item), items), np.bool_)
    equal[groups[same[~found]]] = False
    stays = equal[groups]
    return pa.array(stays[:count]), pa.array(stays[count:])


def _is_as_written(store: ObjectStore, key: str, digest: FileDigest | None) -> bool:
    try:
        if digest is not None:
            verify_whole(store, key, digest)
    except (FormatError, ObjectNotFoundError):
        return False
    return digest is not None


def _numbers(column: pa.ChunkedArray) -> _Numbers:
    """Number the values from 0; each null is like no other value."""
    found = pc.dictionary_encode(column.combine_chunks()).indices.cast(pa.int64())
    numbers: _Numbers = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
    return np.where(numbers < 0, -1 - np.arange(len(numbers)), numbers)


def _joined(first: _Numbers, second: _Numbers) -> _Numbers:
    """Number the pairs of values from 0."""
    pairs = np.stack([first, second], axis=1)
    numbers: _Numbers = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers


def _equal_groups(groups: _Numbers, values: _Numbers, count: int) -> npt.NDArray[np.bool_]:
    """Flag the groups whose first `count` rows have the values of the others, in this order."""
    least = int(groups.max(initial=-1)) + 1
    sides = (groups[:count], values[:count]), (groups[count:], values[count:])
    before, after = (np.bincount(numbers, minlength=least) for numbers, _ in sides)
    equal: npt.NDArray[np.bool_] = np.equal(before, after)
    (old, old_values), (new_groups, new_values) = (
        (numbers[order], found[order])
        for numbers, found in sides
        for order in (np.argsort(numbers, kind="stable"),)
    )
    old, old_values = old[equal[old]], old_values[equal[old]]
    equal[old[old_values != new_values[equal[new_groups]]]] = False
    return equal


def _mixed(groups: _Numbers, commits: _Numbers) -> _Numbers:
    """The groups with rows of several commits."""
    order = np.lexsort((commits, groups))
    groups, commits = groups[order], commits[order]
    other = (groups[1:] == groups[:-1]) & (commits[1:] != commits[:-1])
    found: _Numbers = groups[1:][other]
    return found
