"""The gate: every write passes it before a file exists (type-system.txt, architecture.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ktk_engine.cube.consistency import check_cube
from ktk_engine.cube.discovery import discover_cube, find_seed
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConfigurationError
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.operations.target import Target
from ktk_engine.types.finding import Finding, raise_findings
from ktk_engine.types.schema import (
    adopt_unsigned,
    check_roles,
    check_shared,
    check_storable,
    compare_schemas,
    dataset_schema,
    merge_schemas,
)
from ktk_engine.types.suggestion import did_you_mean


@dataclass(frozen=True)
class Passed:
    """What a write has to store, after the gate.

    Attributes:
        physical: the types of the files' columns; payload keeps the model's width.
        committed: the schema that holds after the write, in normal form.
        indexes: columns that get a secondary index.
        specification: the cube's specification with this dataset; None without a seed dataset.
    """

    physical: pa.Schema
    committed: pa.Schema
    indexes: tuple[str, ...]
    specification: CubeSpecification | None


def pass_gate(
    target: Target,
    model: pa.Schema,
    datasets: Mapping[str, Snapshot],
    full_refresh: bool = False,
) -> Passed:
    """Check a model's schema against its dataset, its cube and its roles.

    Costs no Spark job and reads no data. All findings are raised at once.

    Args:
        target: what is to be written.
        model: the schema as Spark hands rows over.
        datasets: the committed datasets of the scope, by id.
        full_refresh: the dataset is built anew; only the other datasets bind it.

    Raises:
        TypeClassError: with all findings.
        ConfigurationError: a configured column is not in the model.
        ConsistencyError: the cube's datasets would not fit together.
    """
    where = f"dataset {target.uuid}"
    _check_configured(target, model)
    committed = datasets.get(target.dataset)
    bound = committed is not None and target.role != "table" and not full_refresh
    if committed is not None and bound:
        model = adopt_unsigned(committed.schema, model)
    others = {name: item for name, item in datasets.items() if name != target.dataset}
    findings = [*check_storable(model), *_alike_names(model)]
    if not findings:
        findings += check_roles(model, target.dimension_columns, target.partition_by, ())
        findings += check_roles(model, (), (), target.indexes)
        if committed is not None and bound:
            findings += compare_schemas(committed.schema, model)
        found = {finding.column for finding in findings}
        schemas = {name: item.schema for name, item in others.items()}
        shared = _shared_columns(target, others)
        findings += [
            finding
            for finding in check_shared(target.dataset, model, schemas, shared)
            if finding.column not in found
        ]
    if findings:
        raise_findings(findings, where, len(model.names))
    schema = dataset_schema(model, target.partition_by)
    if committed is not None and bound:
        merged = merge_schemas(committed.schema, model)
        schema = dataset_schema(merged, target.partition_by)
        model = _without_null_types(model, schema)
    # SQL shows the columns in the model's order; only published files need Kartothek's.
    order = dict.fromkeys([*model.names, *schema.names])
    schema = pa.schema([schema.field(name) for name in order])
    candidate = _candidate(target, schema, others)
    specification = _specification(target, candidate, others)
    if target.cube:
        check_cube(target.cube, {**others, target.dataset: candidate}, specification)
    return Passed(model, schema, tuple(sorted(candidate.indices)), specification)


@dataclass(frozen=True)
class CubeCheck:
    """Checks the snapshots of a scope as they would be after a commit.

    Attributes:
        cube: the cube's name; empty for a plain table, which has nothing to check.
    """

    cube: str

    def __call__(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Check snapshots by uuid.

        Raises:
            ConsistencyError: they do not fit together.
        """
        if not self.cube:
            return
        datasets = {uuid.partition("++")[2]: item for uuid, item in snapshots.items()}
        seed = find_seed(self.cube, datasets)
        specification = discover_cube(self.cube, datasets) if seed else None
        check_cube(self.cube, datasets, specification)


def _check_configured(target: Target, model: pa.Schema) -> None:
    """Every column that the configuration names must be in the model."""
    for key in ("dimension_columns", "partition_by", "indexes"):
        for name in getattr(target, key):
            if name not in model.names:
                nearest = did_you_mean(name, model.names)
                hint = f" Did you mean `{nearest}`?" if nearest else ""
                raise ConfigurationError(
                    f"Dataset {target.uuid}: {key} names `{name}`, but the model has no such "
                    f"column.{hint} It has: {', '.join(model.names)}. Nothing was written."
                )
    if set(model.names) == set(target.partition_by):
        raise ConfigurationError(
            f"Dataset {target.uuid}: all columns are partition columns, so its files would be "
            "empty. Nothing was written."
        )


def _alike_names(model: pa.Schema) -> list[Finding]:
    """Columns that Spark cannot tell apart, since it ignores letter case."""
    first: dict[str, str] = {}
    findings = []
    for field in model:
        other = first.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            reason = f"differs from `{other}` in letter case only, which Spark ignores"
            fix = f"rename {field.name}"
            findings.append(Finding(field.name, None, field.type, reason, fix, "duplicate"))
    return findings


def _shared_columns(target: Target, others: Mapping[str, Snapshot]) -> frozenset[str]:
    """Columns that several datasets may have: dimensions and partition columns."""
    shared = set(target.dimension_columns) | set(target.partition_by)
    for item in others.values():
        shared |= set(item.metadata.get("ktk_cube_dimension_columns", ()))
        shared |= set(item.partition_keys)
    return frozenset(shared)


def _candidate(target: Target, schema: pa.Schema, others: Mapping[str, Snapshot]) -> Snapshot:
    """The dataset as it would be, without files."""
    indexes = set(target.indexes) - set(target.partition_by)
    if target.role == "seed":
        indexes |= set(target.dimension_columns) - set(target.suppress_index_on)
    partitions: tuple[str, ...] = target.partition_by if target.role == "seed" else ()
    suppressed: list[str] = sorted(target.suppress_index_on)
    metadata = {
        "ktk_cube_is_seed": target.role == "seed",
        "ktk_cube_dimension_columns": list(target.dimension_columns),
        "ktk_cube_partition_columns": list(partitions),
        "ktk_cube_suppress_index_on": suppressed,
    }
    return Snapshot(
        uuid=target.uuid,
        schema=schema,
        partition_keys=target.partition_by,
        files=pa.table({}),
        indices=dict.fromkeys(indexes - set(target.partition_by), ""),
        metadata=metadata if target.cube else {},
    )


def _specification(
    target: Target, candidate: Snapshot, others: Mapping[str, Snapshot]
) -> CubeSpecification | None:
    if not target.cube:
        return None
    datasets = {**others, target.dataset: candidate}
    if find_seed(target.cube, datasets) is None:
        return None
    return discover_cube(target.cube, datasets)


def _without_null_types(model: pa.Schema, committed: pa.Schema) -> pa.Schema:
    """An all-null column takes the committed type (decisions.md 11)."""
    fields = [
        field.with_type(committed.field(field.name).type) if pa.types.is_null(field.type) else field
        for field in model
    ]
    return pa.schema(fields)
