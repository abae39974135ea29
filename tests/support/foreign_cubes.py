"""Random cubes as other programs write them: any physical type, any order, small row groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.support.dataset_builder import DbtNode
from tests.support.documents import (
    CubeSpecification,
    DatasetDocument,
    common_metadata_key,
    document_key,
    render_common_metadata,
    render_document,
)
from tests.support.queries import dataset_schema, sorted_indices
from tests.support.random_cubes import RandomDataset, Row
from tests.support.stores import ObjectStore

PHYSICAL: dict[pa.DataType, list[pa.DataType]] = {
    pa.int64(): [pa.int64()],
    pa.uint64(): [pa.uint64()],
    pa.float64(): [pa.float64()],
    pa.string(): [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    pa.binary(): [pa.binary(), pa.large_binary()],
    pa.date32(): [pa.date32(), pa.date64()],
    pa.timestamp("us"): [pa.timestamp("us"), pa.timestamp("ns")],
    pa.timestamp("us", "UTC"): [pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")],
    pa.time64("us"): [pa.time64("us"), pa.time64("ns")],
    pa.decimal128(38, 2): [pa.decimal128(5, 2), pa.decimal128(38, 2)],
    pa.list_(pa.int64()): [pa.list_(pa.int64()), pa.large_list(pa.int32())],
}
# What narrower types hold only some of the values of a class.
NARROW = {
    pa.int64(): [pa.int8(), pa.int32()],
    pa.uint64(): [pa.uint8(), pa.uint16()],
    pa.float64(): [pa.float16(), pa.float32()],
}


@st.composite
def physical(draw: st.DrawFn, table: pa.Table, sorting: Sequence[str]) -> pa.Table:
    """The same rows in another order, or sorted, and in other types of the same classes."""
    if draw(st.booleans()):
        order = sorted_indices(table, sorting)
    else:
        order = pa.array(draw(st.permutations(range(table.num_rows))), pa.int64())
    table = table.take(order)
    columns = {}
    for field, values in zip(table.schema, table.columns, strict=True):
        offered = list(PHYSICAL.get(field.type, [field.type]))
        offered += [t for t in NARROW.get(field.type, ()) if _holds(t, values)]
        columns[field.name] = values.cast(draw(st.sampled_from(offered)))
    return pa.table(columns)


def _holds(t: pa.DataType, values: pa.ChunkedArray) -> bool:
    try:
        back = values.cast(t).cast(values.type)
    except pa.ArrowInvalid:
        return False
    return values.to_pylist() == back.to_pylist() or not pc.any(pc.not_equal(values, back)).as_py()


def write_foreign(store: ObjectStore, cube: list[RandomDataset], data: st.DataObject) -> None:
    """Write a cube without a log, each part of a dataset as files of its own."""
    seed = cube[0]
    specification = CubeSpecification("c", tuple(seed.dimensions), tuple(seed.partitions), "seed")
    for dataset in cube:
        parts = [
            data.draw(physical(dataset.table(part), dataset.dimensions)) for part in dataset.parts
        ]
        rows = data.draw(st.integers(1, 4))
        write_files(store, specification, dataset.name, parts, dataset.partitions, rows)


def write_files(
    store: ObjectStore,
    specification: CubeSpecification,
    name: str,
    parts: Sequence[pa.Table],
    partitions: Sequence[str] = (),
    row_group_rows: int | None = None,
) -> None:
    """Write a dataset of a cube without a log, each table as files of its own."""
    uuid = specification.uuid(name)
    builder = DbtNode(store, uuid, tuple(partitions), row_group_rows=row_group_rows)
    files: dict[str, str] = {}
    for number, part in enumerate(parts):
        found, _, _ = builder.files(part, f"part{number}")
        files.update(zip(found["label"].to_pylist(), found["key"].to_pylist(), strict=True))
    schema = dataset_schema(parts[0].schema, partitions)
    store.put(common_metadata_key(uuid, "table"), render_common_metadata(schema, partitions))
    metadata = specification.metadata(name)
    document = DatasetDocument(uuid, tuple(partitions), files, {}, metadata)
    store.put(document_key(uuid), render_document(document))


def joined_with_nulls(cube: list[RandomDataset]) -> list[Row]:
    """Join as SQL does: a cell with a null is a cell, but nothing is equal to it."""
    seed, *others = cube
    rows = [dict(row) for row in _last(seed)]
    for other in others:
        cells = {_cell(row, other): row for row in _last(other) if not _has_null(row, other)}
        for row in rows:
            found = None if _has_null(row, other) else cells.get(_cell(row, other))
            row[other.payload] = found[other.payload] if found else None
    return rows


def _last(dataset: RandomDataset) -> Iterator[Row]:
    yield from {_cell(row, dataset): row for part in dataset.parts for row in part}.values()


def _has_null(row: Row, dataset: RandomDataset) -> bool:
    return any(row[c] is None for c in dataset.address)


def _cell(row: Row, dataset: RandomDataset) -> tuple[Any, ...]:
    values = [row[c] for c in dataset.address]
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in values)
