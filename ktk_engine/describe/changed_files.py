"""Finds the files that two versions of a dataset do not have in common, and the cells in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    Comparison,
    Condition,
    Or,
    TrueCondition,
    conjunction,
)
from ktk_engine.files.read_rows import read_rows
from ktk_engine.local.cell_codes import Codes, cell_codes, surplus
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, key_conditions
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    NULLS_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
    is_own,
)
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.to_container import to_container

Flags = npt.NDArray[np.bool_]

# The bounds of more files are one.
_MOST_BOXES = 32
# The cells of changed files are read if the other files have this many times as many rows.
_FEW = 4


@dataclass(frozen=True)
class DatasetVersion:
    """A dataset at one version, and which of its files the other version lacks."""

    store: ObjectStore
    snapshot: Snapshot
    changed: Flags  # one per file, in their order

    @property
    def files(self) -> pa.Table:
        """The files that the other version lacks."""
        return self.snapshot.of_files(pa.array(self.changed)).files

    @property
    def changed_rows(self) -> int | None:
        """How many rows these files have; None if that of one is unknown."""
        rows = self.snapshot.file_column("rows").filter(pa.array(self.changed))
        return None if rows.null_count else int(pc.sum(rows).as_py() or 0)

    def partitions(self, names: Sequence[str]) -> pa.Table:
        """The values of some partition columns, for each file."""
        if not names:  # a table without columns loses its number of rows
            return pa.table({"": pa.nulls(self.snapshot.file_table.num_rows)})
        found = self.snapshot.file_table.select([PARTITION_PREFIX + name for name in names])
        return found.combine_chunks()


def all_changed(store: ObjectStore, snapshot: Snapshot) -> DatasetVersion:
    """A dataset that the other version does not have, or in another form."""
    return DatasetVersion(store, snapshot, np.ones(snapshot.file_table.num_rows, np.bool_))


def compare_files(
    before: DatasetVersion, after: DatasetVersion, within: Sequence[str] | None
) -> tuple[DatasetVersion, DatasetVersion]:
    """Tell which files of two versions of a dataset only one of them has.

    Files are the same if they have the same partition and digest; a file without a digest, of
    another program, is only itself. `within` are the partition columns within which later files
    replace rows of earlier ones, so that their order counts; None for a table, without such files.
    """
    sides = (before, after)
    snapshots = [side.snapshot for side in sides]
    keys = snapshots[0].partition_keys
    same = {*keys} == {*snapshots[1].partition_keys} and all(
        snapshots[0].schema.field(name).type == snapshots[1].schema.field(name).type
        for name in keys
    )
    if not same:
        return all_changed(before.store, snapshots[0]), all_changed(after.store, snapshots[1])
    files = [
        side.partitions(keys).append_column("digest", _digests(side)).combine_chunks()
        for side in sides
    ]
    codes = cell_codes(files).parts
    changed = [surplus(*codes), surplus(*codes[::-1])]
    if within is not None:
        groups = partition_codes(sides, within)
        flags = zip(groups, codes, changed, strict=True)
        moved = _moved(*(_in_groups(*(a[~out] for a in (g, c))) for g, c, out in flags))
        changed = [out | np.isin(g, moved) for out, g in zip(changed, groups, strict=True)]
    return (
        DatasetVersion(before.store, snapshots[0], changed[0]),
        DatasetVersion(after.store, snapshots[1], changed[1]),
    )


def partition_codes(sides: Sequence[DatasetVersion], names: Sequence[str]) -> Sequence[Codes]:
    """Number the partitions of all files, equal ones of different versions alike."""
    return cell_codes([side.partitions(names) for side in sides]).parts


def _digests(side: DatasetVersion) -> pa.Array:
    """What identifies each file."""
    known = side.snapshot.file_table.select(["digest", "key"])
    places = pc.binary_join_element_wise(known["key"], side.store.url, "\n").cast(pa.binary())
    return pc.coalesce(known["digest"], places).combine_chunks()


def _in_groups(groups: Codes, codes: Codes) -> tuple[Codes, Codes]:
    """Files by partition, in their order there."""
    order = np.argsort(groups, kind="stable")
    return groups[order], codes[order]


def _moved(before: tuple[Codes, Codes], after: tuple[Codes, Codes]) -> Codes:
    """The partitions in which the same files have another order."""
    return np.unique(before[0][before[1] != after[1]])


@dataclass(frozen=True)
class ChangedCells:
    """The cells in files that only one of two versions of a dataset has."""

    sides: tuple[DatasetVersion, ...]  # one if only one version has the dataset
    within: tuple[str, ...]  # the partition columns that are part of a cell
    dimensions: tuple[str, ...]

    def partitions(self) -> pa.Table:
        """The partitions of these files."""
        parts = [s.partitions(self.within).filter(pa.array(s.changed)) for s in self.sides]
        return pa.concat_tables(parts).combine_chunks()

    def condition(self, whole: pa.Table, rows: int) -> tuple[Condition, bool] | None:
        """A condition on dimensions that holds for all of these cells in some partitions.

        It comes with whether it holds for few other cells. None if there are no such cells. `whole`
        has the partitions, and `rows` says how many rows are stored there.
        """
        chosen = [self._among(side, whole) for side in self.sides]
        found = [side for side in chosen if side.changed.any()]
        if not found:
            return None
        counts = [side.changed_rows for side in found]
        known = sum(count or 0 for count in counts)
        if None not in counts and known <= MAXIMUM_KEYS and known * _FEW <= rows:
            return self._of_cells(found), True
        boxes = [box for side in found for box in self._boxes(side)]
        return any_of(boxes), False

    def _among(self, side: DatasetVersion, whole: pa.Table) -> DatasetVersion:
        if not self.within:
            return side
        wanted = whole.select([PARTITION_PREFIX + name for name in self.within])
        mine, others = cell_codes([side.partitions(self.within), wanted.combine_chunks()]).parts
        return DatasetVersion(side.store, side.snapshot, side.changed & np.isin(mine, others))

    def _of_cells(self, sides: Iterable[DatasetVersion]) -> Condition:
        """Each cell by itself, which is worth reading the few files."""
        names = list(self.dimensions)
        cells = [read_rows(s.store, s.snapshot, s.files, names) for s in sides] if names else []
        if not cells:
            return TrueCondition()
        keys = pa.concat_tables(cells)
        if any(column.null_count for column in keys.columns):
            return TrueCondition()
        exact = [name for name in names if not pat.is_floating(keys[name].type)]
        return conjunction(key_conditions(keys.schema, keys.select(exact)))

    def _boxes(self, side: DatasetVersion) -> list[Condition]:
        """The bounds of files, or one bound for many files."""
        files = side.files
        if not pc.all(is_own(files)).as_py():
            return [TrueCondition()]  # bounds of other programs may be wrong
        many = files.num_rows > _MOST_BOXES
        boxes = [files] if many else [files.slice(at, 1) for at in range(files.num_rows)]
        fields = [side.snapshot.schema.field(name) for name in self.dimensions]
        return [conjunction(part for f in fields for part in _bounds(box, f)) for box in boxes]


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Join conditions, at least one, with OR."""
    if len(conditions) == 1 or any(isinstance(item, TrueCondition) for item in conditions):
        return conditions[0] if len(conditions) == 1 else TrueCondition()
    return Or(tuple(conditions))


def _bounds(files: pa.Table, field: pa.Field) -> list[Condition]:
    """Conditions that each value of a column in some files fulfils; none if none is known."""
    name, t = field.name, field.type
    if pat.is_floating(t) or pat.is_boolean(t):
        return []  # bounds of floats leave out NaN
    names = [prefix + name for prefix in (MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX)]
    if not {*names} <= {*files.column_names}:
        return []
    low, high, nulls = (files[known] for known in names)
    if any(column.null_count for column in (low, high, nulls)) or pc.max(nulls).as_py():
        return []
    least = pc.min(to_container(low, t, "floor"))
    most = pc.max(to_container(high, t, "ceil"))
    return [Comparison(name, ">=", least), Comparison(name, "<=", most)]
