"""Cuts a plan into tasks: partitions, ranges of large ones, several small ones together.

It reads no data: snapshots and footers suffice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, TypeAlias

import pyarrow as pa

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.read_rows import KEY, values_by_file
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.ranges import ranges, worth_cutting
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.task import Task, TaskDataset, TaskFile, row_width
from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, digests_of
from ktk_engine.store.interface import ObjectStore

_TASK_ROWS = 1_000_000
# When partitions are combined, their partition columns have to be compared too.
_TOGETHER_ROWS = 524_288
_TASK_BYTES = 128 * 1024 * 1024
# Fewer rows are not worth a task of their own, even for an idle worker.
_SHARED_ROWS = 131_072
# Each file costs about a millisecond, whatever its size.
_TASK_FILES = 64
_SHARED_BYTES = 64 * 1024 * 1024

_Group: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class _Planned:
    """A dataset of a plan with all its files."""

    item: TaskDataset
    # for each file the partition values that it shares with the seed dataset
    groups: tuple[_Group, ...]
    rows: tuple[int, ...]  # of each file
    width: int  # approximate bytes per row in memory
    cells: tuple[bytes | None, ...]  # digest of the cells of each file

    @cached_property
    def places(self) -> dict[tuple[_Group, bytes | None], int]:
        """Numbers of files by partition and cells; partitions with null take part in no join."""
        return {
            (group, cells): number
            for number, (group, cells) in enumerate(zip(self.groups, self.cells, strict=True))
            if cells is not None and all(value is not None for _, value in group)
        }


@dataclass(frozen=True)
class _Piece:
    """What one task takes of the seed dataset."""

    files: list[int]  # their numbers
    range: CellRange
    rows: int  # approximate


def tasks(
    store: ObjectStore,
    footers: FooterCache,
    plan: Plan,
    names: Sequence[str] | None = None,
    workers: int = 1,
    uncut: int = 0,
    least: int = 0,
) -> list[Task]:
    """Cut a plan into tasks; their rows one after the other are the plan's.

    Tasks come in the order of partition values and then of the leading dimension. Footers are read
    only for files of other writers and for partitions to cut. There are at least `workers` tasks if
    there are many rows; up to `uncut` rows are not cut for the sake of workers, nor into tasks of
    fewer than `least` rows, if that is given.
    """
    output = tuple(plan.columns if names is None else names)
    distinct = tuple(dict.fromkeys([*plan.order_by, *plan.partition_by])) if plan.distinct else ()
    needed = {*output, *plan.condition.columns, *distinct}
    seed, *others = (_planned(store, footers, plan, item, needed) for item in plan.datasets)
    total = sum(seed.rows)
    share = total if total <= uncut else max(total // workers, least or _SHARED_ROWS)
    width = sum(item.width for item in (seed, *others))
    pieces = list(_pieces(store, plan, seed, share, _TASK_BYTES // width))
    found = []
    for piece in pieces:
        groups = {seed.groups[number] for number in piece.files}
        datasets = [_with_files(seed, piece.files)]
        for other in others:
            aligned = _aligned(seed, piece.files, other)
            datasets.append(aligned or _other(other, groups, many=len(pieces) > 1))
        found.append(
            Task(
                tuple(datasets),
                output,
                plan.condition,
                distinct,
                piece.range,
                piece.rows,
                plan.partial_aggregate,
            )
        )
    return found


def decoded_bytes(store: ObjectStore, footers: FooterCache, plan: Plan) -> int:
    """Approximate bytes in memory of the columns that a plan reads."""
    total = 0
    for item in plan.datasets:
        schema = pa.schema(plan.fields_of(item, item.columns))
        total += sum(_rows(store, footers, item.files)) * row_width(schema)
    return total


def _planned(
    store: ObjectStore, footers: FooterCache, plan: Plan, item: DatasetPlan, needed: set[str]
) -> _Planned:
    """A dataset with all its files, reduced to the needed columns."""
    seed = plan.datasets[0]
    own = {*needed, *item.on, *item.condition.columns, *item.distinct}
    if item.join == "seed":
        own |= {name for other in plan.datasets for name in other.on}
        own |= set(_cut_columns(plan))
    if item.overlaid:
        own |= set(item.cell_columns)
    names = [name for name in item.columns if name in own]
    keys = item.snapshot.partition_keys
    values = values_by_file(item.snapshot, item.files, names)
    digests = digests_of(item.files)
    rows = tuple(_rows(store, footers, item.files))
    files = tuple(
        TaskFile(row.pop(KEY), digest, row, count)
        for row, digest, count in zip(values.to_pylist(), digests, rows, strict=True)
    )
    within = [c for c in cell_partitions(seed) if c in keys and c in item.cell_columns]
    shared = item.files.select([PARTITION_PREFIX + name for name in within]).to_pylist()
    dataset = TaskDataset(
        dataset=item.dataset,
        files=files,
        schema=pa.schema(plan.fields_of(item, names)),
        join=item.join,
        on=item.on,
        condition=item.condition,
        overlaid=item.overlaid,
        cell_columns=item.cell_columns,
        distinct=item.distinct,
    )
    groups: tuple[_Group, ...] = tuple(
        tuple((name, _value(v)) for name, v in row.items()) for row in shared
    )
    if not within:
        groups = ((),) * len(files)
    addressed = set(item.snapshot.dimension_columns) == set(item.cell_columns).difference(keys)
    addressed = addressed and set(keys) <= set(item.cell_columns)  # else two files may be equal
    cells = tuple(item.files["cells"].to_pylist() if addressed else [None] * len(files))
    return _Planned(dataset, groups, rows, row_width(dataset.schema), cells)


def cell_partitions(seed: DatasetPlan) -> list[str]:
    """The partition columns of the seed dataset that are part of a cell's address."""
    return [name for name in seed.cell_columns if name in seed.snapshot.partition_keys]


def leading_columns(seed: DatasetPlan) -> list[str]:
    """What addresses the cells in a partition; its rows are sorted by the first column."""
    return [name for name in seed.cell_columns if name not in seed.snapshot.partition_keys]


def _value(value: Any) -> Any:
    """A partition value as joins compare it: NaN is one value, -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def _rows(store: ObjectStore, footers: FooterCache, files: pa.Table) -> list[int]:
    """Number of rows of each file, from the snapshot if known, otherwise from footers."""
    rows: list[int | None] = files["rows"].to_pylist()
    keys = files["key"].to_pylist()
    unknown = [key for key, count in zip(keys, rows, strict=True) if count is None]
    known = dict(zip(unknown, footers.read(store, unknown), strict=True)) if unknown else {}
    return [
        known[key].rows if count is None else count for key, count in zip(keys, rows, strict=True)
    ]


def _pieces(
    store: ObjectStore, plan: Plan, seed: _Planned, share: int, fitting: int
) -> Iterator[_Piece]:
    """Cut the seed dataset's files into the parts that tasks take.

    Partitions are combined up to `fitting` rows, which can be read in one piece with the columns of
    all datasets.
    """
    most = max(min(_TASK_ROWS, _TASK_BYTES // seed.width, share), 1)
    together = min(most, _TOGETHER_ROWS, fitting)
    cut_by = _cut_columns(plan)
    dimensions = pa.schema([seed.item.schema.field(name) for name in cut_by])
    whole = CellRange(cut_by)
    waiting = _Piece([], whole, 0)
    for chosen in _partition_groups(plan, seed):
        rows = sum(seed.rows[number] for number in chosen)
        many = len(waiting.files) + len(chosen) > _TASK_FILES
        if waiting.files and (many or waiting.rows + rows > together):
            yield waiting
            waiting = _Piece([], whole, 0)
        if cut_by and worth_cutting(rows, most):
            files = [seed.item.files[number] for number in chosen]
            for range_, count in ranges(store, files, dimensions, most):
                yield _Piece(chosen, range_, count)
        else:
            waiting = _Piece([*waiting.files, *chosen], whole, waiting.rows + rows)
    if waiting.files:
        yield waiting


def _cut_columns(plan: Plan) -> tuple[str, ...]:
    """The columns by whose values a partition may be cut, leading ones first.

    Rows that become one because dimensions are dropped have to stay together.
    """
    found = leading_columns(plan.datasets[0])
    if plan.distinct or plan.datasets[0].distinct:
        found = list(takewhile(plan.order_by.__contains__, found))
    return tuple(found)


def _partition_groups(plan: Plan, seed: _Planned) -> Iterator[list[int]]:
    """Numbers of the seed dataset's files by partition, in the order of the partition values.

    In a plain table, each file is a group.
    """
    if not plan.datasets[0].cell_columns:  # no rows have to be combined
        yield from ([number] for number in range(len(seed.groups)))
        return
    members: dict[_Group, list[int]] = defaultdict(list)
    for number, group in enumerate(seed.groups):
        members[group].append(number)
    found = list(members.values())
    names = [PARTITION_PREFIX + name for name in cell_partitions(plan.datasets[0])]
    if names and len(found) > 1:
        firsts = plan.datasets[0].files.select(names).take(pa.array([m[0] for m in found]))
        found = [found[at] for at in sorted_indices(firsts, names).to_pylist()]
    yield from found


def _with_files(planned: _Planned, chosen: Sequence[int]) -> TaskDataset:
    return replace(planned.item, files=tuple(planned.item.files[number] for number in chosen))


def _other(other: _Planned, groups: set[_Group], many: bool) -> TaskDataset:
    """The files of a dataset that may hold cells of some of the seed dataset's partitions."""
    names = [name for name, _ in other.groups[0]] if other.groups else []
    if not names:
        few = sum(other.rows) * other.width <= _SHARED_BYTES
        return replace(other.item, shared=many and few)
    wanted = {tuple((c, v) for c, v in group if c in names) for group in groups}
    return _with_files(other, [n for n, group in enumerate(other.groups) if group in wanted])


def _aligned(seed: _Planned, chosen: Sequence[int], other: _Planned) -> TaskDataset | None:
    """The files of a dataset that hold the same cells as some of the seed dataset's, one by one.

    None unless digests say so. A dataset holds a cell once, so its other files are not needed.
    """
    whole = set(other.item.on) == set(seed.item.cell_columns)
    reduced = seed.item.distinct or other.item.distinct
    overlaid = seed.item.overlaid or other.item.overlaid
    if not whole or reduced or overlaid or not other.item.condition.columns <= {*other.item.on}:
        return None
    places = other.places
    found = [places.get((seed.groups[number], seed.cells[number])) for number in chosen]
    numbers = [number for number in found if number is not None]
    return replace(_with_files(other, numbers), aligned=True) if numbers == found else None


def bytes_read(
    store: ObjectStore, footers: FooterCache, plan: Plan, tasks: Sequence[Task]
) -> tuple[float, float]:
    """Bytes in memory of a plan's columns, and of all that its tasks read of them; both estimated.

    There is at least one task.
    """
    sizes = [decoded_bytes(store, footers, replace(plan, datasets=(d,))) for d in plan.datasets]
    again = [size * times for size, times in zip(sizes, readings(tasks), strict=True)]
    return sum(sizes), sum(again)


def readings(tasks: Sequence[Task]) -> list[float]:
    """How often the files of each dataset are read, on average: one number per dataset.

    Tasks that cut one partition into ranges count once, since they read different row groups. What
    all tasks of a process share counts once as well. A dataset without files counts 1.
    """
    uses: list[set[tuple[int, str]]] = [set() for _ in tasks[0].datasets]
    partitions: dict[tuple[str, ...], int] = {}
    for task in tasks:
        seed = tuple(file.key for file in task.datasets[0].files)
        here = partitions.setdefault(seed, len(partitions))
        for found, item in zip(uses, task.datasets, strict=True):
            found.update((0 if item.shared else here, file.key) for file in item.files)
    return [len(found) / len({key for _, key in found}) if found else 1.0 for found in uses]
