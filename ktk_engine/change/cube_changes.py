"""What Python programs do to the datasets of a cube, staged for one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ktk_engine.change.staged_rows import delete_rows
from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import check_user_metadata
from ktk_engine.errors import ConfigurationError, ConsistencyError, DatasetNotFoundError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.change.reads import any_dataset
from ktk_engine.log.state import State
from ktk_engine.messages import Remedy
from ktk_engine.types.identifier import find_name, find_names, first_pair_alike
from ktk_engine.write.check_write import check_writes
from ktk_engine.write.new_dataset import check_indexes, new_dataset
from ktk_engine.write.rows import (
    Rows,
    as_stored,
    check_constraints,
    names_of_columns,
    renamed,
)
from ktk_engine.write.staging import Staging

Metadata = Mapping[str, Mapping[str, Any]]
Layouts = Mapping[str, Sequence[str]]


def build_cube(
    staging: Staging,
    specification: CubeSpecification,
    rows: Mapping[str, Rows],
    partition_on: Layouts,
    metadata: Metadata,
    overwrite: bool,
) -> None:
    """Build all datasets of a cube from rows by id.

    `partition_on` has the layouts of enrichments that differ from the cube's. With `overwrite`,
    datasets that exist are replaced, and all of them have to be in `rows`. Raises a
    `ConsistencyError` if the cube exists or would lose datasets, and a `ConfigurationError` if
    there is no seed dataset or a column or layout does not fit.
    """
    name, known = specification.prefix, _ids(staging.state)
    if specification.seed_dataset in rows:
        columns = names_of_columns(rows[specification.seed_dataset])
        specification = specification.spelled(columns)
    if specification.seed_dataset not in rows:
        raise ConfigurationError(
            f"Cube {name} needs its seed dataset, {specification.seed_dataset}, which says which "
            f"cells exist. Given: {', '.join(rows) or 'nothing'}. {_named(rows)}Nothing was "
            "written."
        )
    if known and not overwrite:
        raise ConsistencyError(
            f"Cube {name} exists already, with {', '.join(known)}. Replace it with overwrite=True, "
            "or add to it: Store.cube(...).extend or .append. Nothing was written."
        )
    if left := [item for item in known if item not in rows]:
        raise ConsistencyError(
            f"Cube {name} also has {', '.join(left)}, which would not fit a new cube. Build them "
            f"together with it, or drop them first. Nothing was written."
        )
    staging.transaction.chose(any_dataset)  # others would not fit a new cube
    indexes = specification.index_columns
    _write_new(staging, specification, rows, partition_on, metadata, indexes)


def _named(rows: Mapping[str, object]) -> str:
    """How to say which of the given datasets is the seed dataset."""
    first = next(iter(rows), "")
    return f"If it is one of these, name it: seed={first!r}. " if first else ""


def extend_cube(
    staging: Staging,
    specification: CubeSpecification,
    rows: Mapping[str, Rows],
    partition_on: Layouts,
    metadata: Metadata,
    overwrite: bool,
    indexes: Collection[str] = (),
) -> None:
    """Add enrichments to a cube; see `build_cube`.

    `indexes` get a secondary index besides the cube's. Raises a `ConsistencyError` if a dataset
    exists or is the seed dataset.
    """
    known = _ids(staging.state)
    if specification.seed_dataset in rows:
        raise ConsistencyError(
            f"{specification.seed_dataset} is the seed dataset of cube {specification.prefix}: "
            "append to it, or rebuild the cube. Nothing was written."
        )
    if not overwrite and (there := [item for item in rows if item in known]):
        raise ConsistencyError(
            f"Cube {specification.prefix} has {', '.join(there)} already. Replace with "
            "overwrite=True, or add rows: Cube.append. Nothing was written."
        )
    both = replace(specification, index_columns=specification.index_columns | set(indexes))
    _write_new(staging, both, rows, partition_on, metadata, indexes)


def append_rows(staging: Staging, rows: Mapping[str, Rows], metadata: Metadata) -> None:
    """Add rows to datasets; a cell that exists already has the new row from now on."""
    state = staging.state
    check_datasets(state, rows)
    _check_named(rows, metadata, "metadata")
    writes = []
    stored = {}
    for name, item in rows.items():
        target = replace(_existing(state, name, metadata.get(name, {})), mode="append")
        stored[name], target = as_stored(item, target, state)
        writes.append(target)
    _write(staging, writes, stored)


def delete_cells(
    staging: Staging,
    condition: Condition,
    datasets: Collection[str],
    cache: MetadataCache,
) -> None:
    """Delete the rows of some datasets for which a condition is true.

    Raises a `ConfigurationError` if a dataset lacks a column of the condition.
    """
    state = staging.state
    check_datasets(state, datasets)
    for name in datasets:
        uuid = state.scope.uuid_of(name)
        lacking = sorted(condition.columns - set(state.snapshot(uuid).schema.names))
        if lacking:
            raise ConfigurationError(
                f"The condition needs {', '.join(lacking)}, which dataset {uuid} lacks, so the "
                "rows to delete are ambiguous. Name the datasets that have it. Nothing was deleted."
            )
    for name in datasets:
        delete_rows(staging, state.scope.uuid_of(name), condition, cache)


def choose_datasets(staging: Staging, condition: Condition) -> list[str]:
    """Choose the datasets whose rows a condition deletes; see `datasets_with`.

    The commit depends on the choice: another dataset with these columns is a conflict.
    """
    columns = condition.columns
    staging.transaction.chose(lambda snapshot: columns <= set(snapshot.schema.names))
    return datasets_with(staging.state, condition)


def datasets_with(state: State, condition: Condition) -> list[str]:
    """The datasets that have all columns of a condition, the seed dataset among them.

    Raises a `ConfigurationError` if the seed dataset lacks one: its cells would be unknown.
    """
    wanted, snapshots = condition.columns, state.snapshots_by_id()
    for name, snapshot in snapshots.items():
        lacking = sorted(wanted - set(snapshot.schema.names))
        if snapshot.is_seed and lacking:
            raise ConfigurationError(
                f"The condition needs {', '.join(lacking)}, which the seed dataset {name} lacks, "
                "so the cells to delete are ambiguous. Name the datasets whose rows to delete. "
                "Nothing was deleted."
            )
    return [name for name, item in snapshots.items() if wanted <= set(item.schema.names)]


def choose_partitioned_by(
    staging: Staging, condition: Condition, datasets: Collection[str] | None = None
) -> list[str]:
    """Choose the datasets of which a condition selects whole partitions, and give their ids.

    Without `datasets` it is about all that are partitioned by its columns, and the commit depends
    on the choice. Raises a `DatasetNotFoundError`, or a `ConfigurationError` if one of them or the
    seed dataset is not partitioned by its columns.
    """
    state, columns = staging.state, condition.columns
    check_datasets(state, datasets or ())
    if datasets is None:
        staging.transaction.chose(lambda snapshot: columns <= set(snapshot.partition_keys))
    fitting = []
    for name, snapshot in state.snapshots_by_id().items():
        others = sorted(columns - set(snapshot.partition_keys))
        if others and (snapshot.is_seed if datasets is None else name in datasets):
            raise ConfigurationError(
                f"Dataset {snapshot.uuid} is partitioned by "
                f"{', '.join(snapshot.partition_keys) or 'nothing'}, not by {', '.join(others)}, "
                "which the condition asks for. For single rows: Cube.delete. Nothing was deleted."
            )
        if not others and (datasets is None or name in datasets):
            fitting.append(name)
    return fitting


def drop_datasets(staging: Staging, names: Collection[str]) -> None:
    """Take datasets out of a cube.

    Raises a `ConsistencyError` if others depend on the seed dataset.
    """
    state = staging.state
    check_datasets(state, names)
    snapshots = state.snapshots_by_id()
    left = [name for name in snapshots if name not in names]
    seeds = [name for name in names if snapshots[name].is_seed]
    if seeds and left:
        raise ConsistencyError(
            f"{seeds[0]} is the seed dataset, without which {', '.join(left)} cannot be read. "
            "To drop the whole cube: ",
            Remedy.on("drop", state.scope.name),
            ". Nothing was removed.",
        )
    if seeds:  # nothing may come to depend on it meanwhile
        staging.transaction.chose(any_dataset)
    for name in names:
        staging.change(DatasetChange(snapshots[name].uuid, "remove", None))


def check_datasets(state: State, names: Collection[str]) -> None:
    """Raise a `DatasetNotFoundError`, which says what exists, for unknown datasets."""
    known = _ids(state)
    if unknown := sorted({str(name) for name in names} - set(known)):
        raise DatasetNotFoundError(
            f"{state.scope.name} of {state.store.url} has no dataset {', '.join(unknown)}; it has: "
            f"{', '.join(known)}. Nothing was written."
        )


def _ids(state: State) -> list[str]:
    return [state.scope.dataset_id(uuid) for uuid in state.datasets]


def _existing(state: State, name: str, metadata: Mapping[str, Any]) -> WriteRequest:
    snapshot = state.snapshot(state.scope.uuid_of(name))
    check_user_metadata(snapshot.uuid, metadata)
    return replace(WriteRequest.of(snapshot), metadata=dict(metadata))


def _write_new(
    staging: Staging,
    specification: CubeSpecification,
    rows: Mapping[str, Rows],
    partition_on: Layouts,
    metadata: Metadata,
    indexes: Collection[str],
) -> None:
    """Write datasets that are new, or replace others of their names."""
    _check_named(rows, partition_on, "partition_on")
    _check_named(rows, metadata, "metadata")
    _check_letter_case(staging.state, rows)
    shared = specification.shared_columns
    stored = {name: _with_shared_names(item, shared) for name, item in rows.items()}
    names = {name: names_of_columns(item) for name, item in stored.items()}
    columns = [column for found in names.values() for column in found]
    specification = specification.spelled(columns)
    indexes = find_names(indexes, columns)
    check_indexes(specification.prefix, indexes, columns)
    writes = []
    for name, item in stored.items():
        layout, noted = partition_on.get(name), metadata.get(name)
        if layout is not None and not isinstance(layout, str):
            layout = find_names(layout, names[name])
        target = new_dataset(specification, name, names[name], layout, noted)
        stored[name], target = as_stored(item, target, staging.state)
        writes.append(target)
    _write(staging, writes, stored)


def _check_letter_case(state: State, rows: Mapping[str, Rows]) -> None:
    """Refuse names of datasets that differ from another one's only in letter case."""
    found = first_pair_alike([*_ids(state), *(name for name in rows if name not in _ids(state))])
    if found is not None:
        raise ConsistencyError(
            f"Cube {state.scope.name}: the datasets {found[0]} and {found[1]} differ only in "
            "letter case, which SQL ignores. Give one of them another name. Nothing was written."
        )


def _with_shared_names(rows: Rows, shared: Collection[str]) -> Rows:
    """Spell columns of the cube as it does."""
    given = names_of_columns(rows)
    found = {name: find_name(name, shared) or name for name in given}
    return renamed(rows, {name: new for name, new in found.items() if new not in given})


def _check_named(rows: Mapping[str, Rows], others: Mapping[str, Any], argument: str) -> None:
    if not isinstance(others, Mapping):
        raise ConfigurationError(
            f"{argument} must be a mapping by datasets, but is {others!r}. Nothing was written."
        )
    if unknown := sorted(set(others) - set(rows)):
        raise ConfigurationError(
            f"{argument} names {', '.join(unknown)}, for which no rows are given. Given: "
            f"{', '.join(rows)}. Nothing was written."
        )


def _write(staging: Staging, writes: Sequence[WriteRequest], rows: Mapping[str, Rows]) -> None:
    """Check all writes, then write their files."""
    checked = check_writes(writes, rows, staging.state)
    for write in checked:
        check_constraints(write.target.constraints, rows[write.target.dataset])
    for write in checked:
        staging.write(write, rows[write.target.dataset])
