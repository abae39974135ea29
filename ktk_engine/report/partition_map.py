"""The rows of a cube by partition, and what its enrichments lack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ktk_engine.snapshot.snapshot import PARTITION_PREFIX

MAXIMUM_BINS = 60  # columns of the map; more would be indistinguishable
_MEASURES = ("rows", "bytes", "files")


@dataclass(frozen=True)
class Partitions:
    """The partitions of a dataset."""

    keys: tuple[str, ...]  # its partition columns
    # partition values -> rows, bytes and files
    sizes: Mapping[tuple[Any, ...], tuple[int, int, int]]


@dataclass(frozen=True)
class MapCell:
    """One dataset in one partition, or in several adjacent ones."""

    dataset: str
    label: str  # the partition's values, or the first and the last of several
    partitions: int  # their number in the seed dataset
    missing: int  # how many of them the dataset lacks
    rows: int
    bytes: int
    files: int


@dataclass(frozen=True)
class PartitionMap:
    """All datasets over the partitions of the seed dataset."""

    keys: tuple[str, ...]
    labels: tuple[str, ...]  # the columns of the map, in order
    cells: tuple[MapCell, ...]
    left_out: tuple[str, ...]  # datasets that lack some of the partition columns
    missing: Mapping[str, int]  # dataset -> number of partitions that it lacks
    partitions: int  # of the seed dataset


def partitions_of(keys: Sequence[str], files: pa.Table) -> Partitions:
    """Sum up the files of a snapshot by partition."""
    columns = {name: files[PARTITION_PREFIX + name] for name in keys}
    table = pa.table({**columns, " rows": files["rows"], " bytes": files["bytes"]})
    if not keys:
        rows, size = sum(files["rows"].to_pylist()), sum(files["bytes"].to_pylist())
        return Partitions((), {(): (rows, size, files.num_rows)} if files.num_rows else {})
    found = table.group_by(list(keys)).aggregate(
        [(" rows", "sum"), (" bytes", "sum"), (" rows", "count")]
    )
    values = zip(*(found[name].to_pylist() for name in keys), strict=True)
    sizes = zip(
        *(found[n].to_pylist() for n in (" rows_sum", " bytes_sum", " rows_count")), strict=True
    )
    return Partitions(tuple(keys), dict(zip(values, sizes, strict=True)))


def partition_map(datasets: Mapping[str, Partitions], seed: str) -> PartitionMap:
    """Map all datasets to the partitions of the seed dataset."""
    keys = datasets[seed].keys
    order = sorted(datasets[seed].sizes, key=lambda values: [_sortable(v) for v in values])
    width = max(1, math.ceil(len(order) / MAXIMUM_BINS))
    bins = [order[start : start + width] for start in range(0, len(order), width)]
    shown = {name: item for name, item in datasets.items() if set(keys) <= set(item.keys)}
    cells: list[MapCell] = []
    missing = {}
    for name, item in shown.items():
        sizes = _by_keys(item, keys)
        found = [_cell(name, values, sizes) for values in bins]
        missing[name] = sum(cell.missing for cell in found)
        cells += found
    left_out = tuple(name for name in datasets if name not in shown)
    labels = tuple(_label(values) for values in bins)
    return PartitionMap(keys, labels, tuple(cells), left_out, missing, len(order))


def _by_keys(item: Partitions, keys: Sequence[str]) -> Mapping[tuple[Any, ...], Sequence[int]]:
    """Sizes by only the seed dataset's partition columns."""
    if item.keys == tuple(keys):
        return item.sizes
    places = [item.keys.index(name) for name in keys]
    found: dict[tuple[Any, ...], Sequence[int]] = {}
    for values, sizes in item.sizes.items():
        address = tuple(values[place] for place in places)
        before = found.get(address, (0, 0, 0))
        found[address] = [a + b for a, b in zip(before, sizes, strict=True)]
    return found


def _cell(
    name: str,
    values: Sequence[tuple[Any, ...]],
    sizes: Mapping[tuple[Any, ...], Sequence[int]],
) -> MapCell:
    there = [sizes[address] for address in values if address in sizes]
    rows, size, files = (sum(item[place] for item in there) for place in range(len(_MEASURES)))
    return MapCell(name, _label(values), len(values), len(values) - len(there), rows, size, files)


def _label(values: Sequence[tuple[Any, ...]]) -> str:
    first, last = (" / ".join(map(str, values[place])) or "all" for place in (0, -1))
    return first if len(values) == 1 else f"{first} … {last}"


def _sortable(value: Any) -> tuple[str, Any]:
    """Values of one column have one type, except for nulls."""
    return ("", "") if value is None else ("value", value)
