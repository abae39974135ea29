"""Checks every committed file of a cube or table against the schema; reads footers, no rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.errors import ConsistencyError, FormatError, KtkError, ObjectNotFoundError
from ktk_engine.format.index_file import VALUE, flatten_index, read_index
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.operations.find_scope import find_scope
from ktk_engine.operations.gate import CubeCheck
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.counted import counted
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name

_THREADS = 16


@dataclass(frozen=True)
class Problem:
    """Something that contradicts the committed schema.

    Attributes:
        dataset: the dataset's id; empty for the cube as a whole.
        file: key of the file; empty for the dataset as a whole.
        column: the column; empty for the file as a whole.
        expected: what the schema or the snapshot says.
        found: what is there.
        reason: why that is wrong.
    """

    dataset: str
    file: str
    column: str
    expected: str
    found: str
    reason: str


@dataclass(frozen=True)
class Checked:
    """The outcome of a check.

    Attributes:
        name: the cube or table.
        version: version of its log.
        datasets: number of datasets.
        files: number of data files whose footer was read.
        indices: number of index files that were read.
        problems: what was found.
    """

    name: str
    version: int
    datasets: int
    files: int
    indices: int
    problems: tuple[Problem, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the outcome as data for JSON."""
        return asdict(self)


def check(store: ObjectStore, name: str, only: Collection[str] | None = None) -> Checked:
    """Check a cube or a table.

    Args:
        store: where it lives.
        name: the cube or the table.
        only: ids of the datasets to check; None for all, and how they fit together.

    Returns:
        The outcome: files whose columns are of another class than committed (columns without
        any value are fine, and so are columns that a file lacks where they may be null), files
        that are missing, damaged or of another size, index files of another class or with
        labels that do not exist, and datasets that do not fit together.

    Raises:
        DatasetNotFoundError: there is nothing of this name.
    """
    state = find_scope(store, name)
    problems: list[Problem] = []
    snapshots: dict[str, Snapshot] = {}
    id_of = state.scope.dataset_id
    chosen = {u: item for u, item in state.datasets.items() if only is None or id_of(u) in only}
    for uuid, item in chosen.items():
        dataset = id_of(uuid)
        try:
            snapshots[uuid] = state.snapshot(uuid)
        except KtkError as error:
            problems.append(Problem(dataset, "", "", "", "", item.problem or str(error)))
    for uuid, snapshot in snapshots.items():
        problems += _dataset_problems(store, state.scope.dataset_id(uuid), snapshot)
    if len(snapshots) == len(chosen):
        problems += _cube_problems(state, snapshots)
    return Checked(
        name=state.scope.name,
        version=state.version,
        datasets=len(chosen),
        files=sum(snapshot.files.num_rows for snapshot in snapshots.values()),
        indices=sum(len(snapshot.indices) for snapshot in snapshots.values()),
        problems=tuple(problems),
    )


def _cube_problems(state: State, snapshots: Mapping[str, Snapshot]) -> Iterator[Problem]:
    if state.scope.kind != "cube":
        return
    try:
        CubeCheck(state.scope.name)(snapshots)
    except ConsistencyError as error:
        yield Problem("", "", "", "", "", str(error))


def _dataset_problems(store: ObjectStore, dataset: str, snapshot: Snapshot) -> list[Problem]:
    keys = snapshot.files["key"].to_pylist()
    sizes = snapshot.files["bytes"].to_pylist()
    rows = snapshot.files["rows"].to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        found = [
            *pool.map(
                lambda item: list(_file_problems(store, dataset, snapshot, *item)),
                zip(keys, sizes, rows, strict=True),
            ),
            *pool.map(
                lambda item: list(_index_problems(store, dataset, snapshot, *item)),
                snapshot.indices.items(),
            ),
        ]
    return [problem for part in found for problem in part]


def _file_problems(
    store: ObjectStore,
    dataset: str,
    snapshot: Snapshot,
    key: str,
    size: int | None,
    rows: int | None,
) -> Iterator[Problem]:
    """Check one data file by its footer."""
    try:
        with store.open_read(key) as file:
            actual = file.size()
            metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
    except ObjectNotFoundError:
        yield Problem(dataset, key, "", "a file", "none", "the file is missing")
        return
    except (pa.ArrowException, OSError, KtkError) as error:
        yield Problem(dataset, key, "", "a parquet file", "", f"the file is damaged: {error}")
        return
    if size is not None and size != actual:
        reason = "the size differs from the committed one"
        yield Problem(dataset, key, "", counted(size, "byte"), counted(actual, "byte"), reason)
    if rows is not None and rows != metadata.num_rows:
        reason = "the number of rows differs from the committed one"
        yield Problem(
            dataset, key, "", counted(rows, "row"), counted(metadata.num_rows, "row"), reason
        )
    for name, expected, found, reason in _column_problems(snapshot, schema, metadata):
        yield Problem(dataset, key, name, expected, found, reason)


def _column_problems(
    snapshot: Snapshot, schema: pa.Schema, metadata: pq.FileMetaData
) -> Iterator[tuple[str, str, str, str]]:
    """Compare a file's columns with the committed ones: column, expected, found, reason."""
    empty = _columns_without_values(metadata)
    for field in schema:
        if field.name not in snapshot.schema.names:
            found = f"{class_name(field.type)} ({field.type})"
            yield field.name, "no such column", found, "the committed schema lacks the column"
            continue
        committed = snapshot.schema.field(field.name).type
        differs = mismatch(committed, field.type, field.name)
        if differs is not None and field.name not in empty:
            where = f"{differs.path}: " if differs.path != field.name else ""
            yield (
                field.name,
                f"{class_name(committed)} ({committed})",
                f"{class_name(field.type)} ({field.type})",
                where + differs.reason,
            )
    required = {*snapshot.dimension_columns, *snapshot.indices} - set(snapshot.partition_keys)
    for name in sorted(required - set(schema.names)):
        if name in snapshot.schema.names:
            expected = class_name(snapshot.schema.field(name).type)
            yield name, expected, "missing", "a dimension or index column must not be null"


def _columns_without_values(metadata: pq.FileMetaData) -> frozenset[str]:
    """Flat columns that are null in every row, by the file's statistics."""
    nulls: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            statistics = column.statistics
            if statistics is not None and statistics.has_null_count:
                path = column.path_in_schema
                nulls[path] = nulls.get(path, 0) + statistics.null_count
    return frozenset(name for name, count in nulls.items() if count == metadata.num_rows)


def _index_problems(
    store: ObjectStore, dataset: str, snapshot: Snapshot, column: str, key: str
) -> Iterator[Problem]:
    """Check one index file: its class, and that its labels exist."""
    try:
        index = read_index(store.get(key))
    except ObjectNotFoundError:
        yield Problem(dataset, key, column, "an index file", "none", "the file is missing")
        return
    except (FormatError, pa.ArrowException) as error:
        yield Problem(dataset, key, column, "an index file", "", f"the file is damaged: {error}")
        return
    if column not in snapshot.schema.names:
        yield Problem(dataset, key, column, "no index", "", "the schema lacks the column")
        return
    committed, found = snapshot.schema.field(column).type, index.schema.field(VALUE).type
    differs = mismatch(committed, found)
    if differs is not None:
        yield Problem(dataset, key, column, str(committed), str(found), differs.reason)
    labels = set(flatten_index(index)["label"].to_pylist())
    unknown = labels - set(snapshot.labels)
    if unknown:
        names = counted(len(unknown), "file that is", "files that are")
        reason = f"the index names {names} not committed: {min(unknown)}"
        yield Problem(dataset, key, column, "committed labels", "others", reason)
