"""The gate: every write is validated before a file exists. See docs/design/writing.md, The gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from ktk_engine.cube.consistency import check_cube
from ktk_engine.cube.dataset_uuid import split_uuid
from ktk_engine.cube.discovery import find_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import DIMENSION_COLUMNS, cube_metadata, cube_value
from ktk_engine.errors import ConfigurationError, ConsistencyError
from ktk_engine.gate.breakage import breakage_text, broken_enrichments
from ktk_engine.gate.check_columns import CheckedColumns, check_columns, unless_found
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.declared import apply_declared, with_known_classes
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.finding import Finding, raise_findings
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.types.schema import (
    check_shared,
    dataset_schema,
    merge_schemas,
    replace_null_types,
)

_NO_REBUILD = "A snapshot is never rebuilt: cast the column in its query."


@dataclass(frozen=True)
class ValidatedWrite:
    """A write that has passed every check that needs no rows."""

    target: WriteRequest
    state: State  # what the rows were computed from; its store is written to
    physical: pa.Schema  # the types in files; payload keeps the model's width
    committed: pa.Schema  # the schema after the write, in normal form
    indexes: tuple[str, ...]  # columns with a secondary index
    # of the cube with this dataset; None without a seed dataset
    specification: CubeSpecification | None
    candidate: Snapshot = field(compare=False)  # the dataset after the write, without files
    leaving: tuple[str, ...] = ()  # enrichments that leave the cube in the same commit
    notes: tuple[str, ...] = ()  # accepted deviations, for the user
    claimed: str = ""  # whose dataset is taken over, as a note; else empty

    @cached_property
    def base(self) -> Snapshot | None:
        """The dataset that rows are added to; None if it is rebuilt."""
        return self.state.snapshot(self.target.uuid) if self.target.mode else None

    def of_rows(self, rows: pa.Schema) -> ValidatedWrite:
        """Validate rows that include the dataset's old ones.

        All their columns are committed, so only the contract is left to check: it allows no old
        column that the model lacks.
        """
        target = self.target
        model, findings = apply_declared(rows, target.declared, contract=target.contract)
        if findings:
            raise_findings(findings, f"dataset {target.uuid}", len(rows.names))
        model = with_known_classes(model, self.committed, target.declared)
        order = dict.fromkeys([*rows.names, *self.committed.names])
        committed = pa.schema([self.committed.field(name) for name in order])
        indexes = {*self.indexes, *target.indexes} - set(target.partition_by)
        return replace(
            self,
            physical=replace_null_types(model, committed),
            committed=committed,
            indexes=tuple(sorted(indexes)),
        )


def validate_write(
    target: WriteRequest,
    model: pa.Schema,
    state: State,
    datasets: Mapping[str, Snapshot] | None = None,
) -> ValidatedWrite:
    """Check a model's schema against its declaration, dataset, cube and roles; runs no Spark job.

    `datasets` are those of the scope that bind the write, by id: by default all of the state. In a
    full refresh only the others do, and a plain table only if it keeps rows. External datasets
    bind, and never leave the cube. Raises a `TypeClassError` with all findings, a
    `ConfigurationError` if a configured column is missing, or a `ConsistencyError` if the cube's
    datasets would not fit together.
    """
    check_configured(target, model)
    datasets = state.snapshots_by_id() if datasets is None else datasets
    datasets = {**target.external, **datasets}
    _check_one_seed(target, datasets)
    checked = _check(target, model, datasets)
    if checked.findings:
        raise_findings(
            checked.findings, f"dataset {target.uuid}", len(model.names), checked.remark(target)
        )
    if checked.breakage is not None:
        raise ConsistencyError(f"Dataset {target.uuid} was refused. ", checked.breakage)
    others = _remaining(target, datasets, checked.leaving)
    model, schema = checked.model, dataset_schema(checked.model, target.partition_by)
    if checked.committed is not None:
        merged = merge_schemas(checked.committed, model)
        schema = dataset_schema(merged, target.partition_by)
        model = replace_null_types(model, schema)
    # SQL shows columns in the model's order; only published files need Kartothek's order.
    order = dict.fromkeys([*model.names, *schema.names])
    schema = pa.schema([schema.field(name) for name in order])
    candidate = _candidate(target, schema)
    datasets = {**others, target.dataset: candidate}
    specification = find_cube(target.cube, datasets)
    if target.cube:
        check_cube(target.cube, datasets, specification)
    indexes = tuple(sorted(candidate.with_index))
    return ValidatedWrite(
        target,
        state,
        model,
        schema,
        indexes,
        specification,
        candidate,
        checked.leaving,
        checked.notes,
    )


def validate_view(name: str, model: pa.Schema, declared: Mapping[str, pa.DataType]) -> None:
    """Check the columns of a view that has a contract against its YAML; stores nothing."""
    _, findings = apply_declared(model, spelled_keys(declared, model.names), contract=True)
    if findings:
        raise_findings(findings, f"view {name}", len(model.names))


@dataclass(frozen=True)
class _Checked(CheckedColumns):
    """The outcome of all checks, before any error is raised."""

    breakage: Message | None = None
    leaving: tuple[str, ...] = ()

    def remark(self, target: WriteRequest) -> Message:
        """What follows the table of findings."""
        lines: list[object] = []
        if any(finding.rule == "class" for finding in self.findings):
            lines.append(_NO_REBUILD if target.keeps_versions else Remedy("change_class"))
        if self.breakage is not None:
            lines.append(self.breakage)
        return joined("\n", lines)


def _check(target: WriteRequest, model: pa.Schema, datasets: Mapping[str, Snapshot]) -> _Checked:
    """Check the columns by themselves, and then with the cube's other datasets."""
    own, others = datasets.get(target.dataset), _remaining(target, datasets, ())
    full_refresh, external = target.full_refresh, target.external
    shared = _shared_columns(target, others)
    fields = [
        item.schema.field(place)
        for item in others.values()
        for name in shared
        if (place := item.schema.get_field_index(name)) >= 0
    ]
    columns = check_columns(target, model, fields, own.schema if own and target.is_bound else None)
    model, committed, notes = columns.model, columns.committed, columns.notes
    findings = _with_fix_of_layout(target, own, columns.findings)
    if not columns.storable:
        return _Checked(model, committed, tuple(findings))
    broken: Mapping[str, tuple[str, ...]] = {}
    if target.role == "seed":
        broken = broken_enrichments(model, target.specification, others, own)
    may_leave = target.cascade and full_refresh and not external.keys() & broken
    leaving = tuple(broken) if may_leave else ()
    schemas = {name: item.schema for name, item in _remaining(target, datasets, leaving).items()}
    fix = _owner_fix(target)
    found = check_shared(target.dataset, model, schemas, shared, fix)
    owned = {item.column for item in found if item.rule == "owner"}
    findings = [i for i in findings if not (i.rule == "unknown" and i.column in owned)]
    findings += unless_found(found, findings)
    if leaving:
        notes = (*notes, f"taken out of the cube: {', '.join(leaving)}")
    text = None
    # Rows that keep the dataset's classes break nothing, so what the findings say comes first.
    if broken and not leaving and not (findings and target.mode is not None):
        text = breakage_text(target.cube, broken, full_refresh, external)
    return _Checked(model, committed, tuple(findings), notes, breakage=text, leaving=leaving)


def _remaining(
    target: WriteRequest, datasets: Mapping[str, Snapshot], leaving: Collection[str]
) -> dict[str, Snapshot]:
    """The cube's other datasets that stay in it."""
    return {
        name: item
        for name, item in datasets.items()
        if name != target.dataset and name not in leaving
    }


def check_scope(snapshots: Mapping[str, Snapshot]) -> None:
    """Check the snapshots of a scope, by uuid, as they will be after a commit.

    A plain table needs none. Raises a `ConsistencyError` if those of a cube do not fit together.
    """
    cube = next((split_uuid(uuid)[0] for uuid in snapshots), "")
    if cube:
        datasets = {split_uuid(uuid)[1]: item for uuid, item in snapshots.items()}
        check_cube(cube, datasets, find_cube(cube, datasets))


def check_configured(target: WriteRequest, model: pa.Schema) -> None:
    """Raise a `ConfigurationError` if a configured column is not in the model.

    If the YAML declares the column, it is a `TypeClassError` with everything that contradicts it.
    """
    for key in ("dimension_columns", "partition_by", "indexes"):
        for name in getattr(target, key):
            if name not in model.names:
                _check_declared(target, model, name)
                hint = did_you_mean(name, model.names)
                raise ConfigurationError(
                    f"Dataset {target.uuid}: {key} names `{name}`, but the rows have no such "
                    f"column.{hint} They have: {', '.join(model.names)}. Nothing was written."
                )
    if set(model.names) == set(target.partition_by):
        raise ConfigurationError(
            f"Dataset {target.uuid}: all columns are partition columns, so its files would be "
            "empty. Nothing was written."
        )


def _check_declared(target: WriteRequest, model: pa.Schema, missing: str) -> None:
    """Explain a missing column by the YAML's declarations, with their other contradictions."""
    _, findings = apply_declared(model, target.declared, contract=target.contract)
    if any(finding.column == missing for finding in findings):
        raise_findings(findings, f"dataset {target.uuid}", len(model.names))


def _with_fix_of_layout(
    target: WriteRequest, own: Snapshot | None, findings: Iterable[Finding]
) -> list[Finding]:
    """Replace the fix for missing partition or dimension columns, which cannot be null."""
    layout = {*own.partition_keys, *own.dimension_columns} if own is not None else set()
    fix: str | Remedy = Remedy("keep_column")
    if target.keeps_versions:
        fix = "keep the column: a snapshot is never rebuilt"
    return [
        replace(item, fix=fix) if item.rule == "missing" and item.column in layout else item
        for item in findings
    ]


def _shared_columns(target: WriteRequest, others: Mapping[str, Snapshot]) -> frozenset[str]:
    """Dimension and partition columns, which several datasets may have."""
    shared = set(target.dimension_columns) | set(target.partition_by)
    for item in others.values():
        shared |= set(cube_value(item.metadata, DIMENSION_COLUMNS) or ())
        shared |= set(item.partition_keys)
    return frozenset(shared)


def _candidate(target: WriteRequest, schema: pa.Schema) -> Snapshot:
    """The dataset after the write, without files."""
    indexes = set(target.indexes) - set(target.partition_by)
    if target.role == "seed":
        indexes |= set(target.dimension_columns) - set(target.suppress_index_on)
    metadata = cube_metadata(
        is_seed=target.role == "seed",
        dimension_columns=target.dimension_columns,
        partition_columns=target.partition_by if target.role == "seed" else (),
        suppress_index_on=target.suppress_index_on,
    )
    return Snapshot(
        uuid=target.uuid,
        schema=schema,
        partition_keys=target.partition_by,
        file_table=pa.table({}),
        indices=dict.fromkeys(indexes - set(target.partition_by), ""),
        metadata=metadata if target.cube else {},
    )


def _check_one_seed(target: WriteRequest, datasets: Mapping[str, Snapshot]) -> None:
    """Refuse a second seed dataset before its columns are compared, which would only confuse."""
    if target.role != "seed":
        return
    remaining = _remaining(target, datasets, ())
    known = next((name for name, item in remaining.items() if item.is_seed), None)
    if known is not None:
        problem = WriteProblem(
            f"Cube {target.cube} has the seed dataset {known}, and a cube has only one.",
            Message(
                Remedy("no_second_seed", dataset=known),
                f" To drop {known} and all that depends on it: ",
                Remedy("drop_seed", name=target.cube, dataset=known),
            ),
        )
        raise ConsistencyError(refusal(target.uuid, [problem]))


def _owner_fix(target: WriteRequest) -> Callable[[str, str], Remedy] | None:
    """Make a function of owner and column that gives the fix; None keeps the general one."""
    built_by, dataset = target.built_by, target.dataset
    if built_by is None:
        return None

    def fix(owner: str, column: str) -> Remedy:
        names = {"name": target.cube, "owner": owner, "dataset": dataset, "column": column}
        builder = built_by.get(owner)
        if owner in target.external:
            return Remedy("move_column_from_elsewhere", select=builder or owner, **names)
        if builder is None:
            return Remedy("take_owner_out", **names)
        return Remedy("move_column", select=f"{builder} {built_by.get(dataset, dataset)}", **names)

    return fix
