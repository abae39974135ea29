"""Where the rows of a cube lie, by partition, and what its enrichments lack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ktk_engine.snapshot.snapshot import PARTITION_PREFIX

MAXIMUM_BINS = 60  # columns of the map; more could not be told apart
_MEASURES = ("rows", "bytes", "files")


@dataclass(frozen=True)
class Partitions:
    """The partitions of one dataset.

    Attributes:
        keys: its partition columns.
        sizes: values of the partition columns -> rows, bytes and files.
    """

    keys: tuple[str, ...]
    sizes: Mapping[tuple[Any, ...], tuple[int, int, int]]


@dataclass(frozen=True)
class MapCell:
    """One dataset in one partition, or in several that lie beside each other.

    Attributes:
        dataset: the dataset's id.
        label: the partition's values, or the first and the last of several.
        partitions: how many partitions of the seed dataset these are.
        missing: how many of them the dataset does not have.
        rows: stored rows.
        bytes: size of the files.
        files: number of files.
    """

    dataset: str
    label: str
    partitions: int
    missing: int
    rows: int
    bytes: int
    files: int


@dataclass(frozen=True)
class PartitionMap:
    """All datasets over the partitions of the seed dataset.

    Attributes:
        keys: the partition columns.
        labels: the columns of the map, in order.
        cells: its cells.
        left_out: datasets that have not all of these partition columns.
        missing: dataset -> partitions of the seed dataset that it lacks.
        partitions: how many partitions the seed dataset has.
    """

    keys: tuple[str, ...]
    labels: tuple[str, ...]
    cells: tuple[MapCell, ...]
    left_out: tuple[str, ...]
    missing: Mapping[str, int]
    partitions: int


def partitions_of(keys: Sequence[str], files: pa.Table) -> Partitions:
    """Add up the files of a dataset by partition.

    Args:
        keys: its partition columns.
        files: its files as a snapshot has them, with rows and bytes.
    """
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
    """Put all datasets over the partitions of the seed dataset.

    Args:
        datasets: by id, the seed dataset among them.
        seed: its id.
    """
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
    """Sizes by the seed dataset's partition columns alone."""
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
    """Values of one column have one type, but for nulls."""
    return ("", "") if value is None else ("value", value)
