"""All checks of the columns to be written, one after the other.

Every refusal of a column starts here; see docs/design/writing.md, The gate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ktk_engine.cube.discovery import is_hidden
from ktk_engine.formatting import noun
from ktk_engine.gate.write_request import OnSchemaChange, WriteRequest
from ktk_engine.types.declared import apply_declared, with_known_classes
from ktk_engine.types.finding import Finding
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.reserved_name import name_problem, own_name_problem
from ktk_engine.types.schema import (
    check_nesting,
    check_roles,
    check_storable,
    compare_schemas,
    fields_alike,
)
from ktk_engine.types.type_class import ColumnRole


@dataclass(frozen=True)
class CheckedColumns:
    """The outcome of the checks."""

    model: pa.Schema  # the schema to store, without ignored columns
    committed: pa.Schema | None  # the dataset's schema, without dropped columns
    findings: tuple[Finding, ...]  # refusals, at most one per column
    notes: tuple[str, ...] = ()  # accepted differences, for the run's message
    storable: bool = True  # whether files can hold the columns; if not, nothing else was checked


def check_columns(
    target: WriteRequest, model: pa.Schema, shared: Iterable[pa.Field], committed: pa.Schema | None
) -> CheckedColumns:
    """Check declarations, storability, roles and names, and the committed schema.

    `shared` are columns that other datasets also have, which settle classes that Spark lacks
    (decision 12). `committed` is the dataset's schema, if it binds the write.
    """
    if deep := check_nesting(model):
        return CheckedColumns(model, committed, tuple(deep), storable=False)
    model, findings = apply_declared(model, target.declared, contract=target.contract)
    model = with_known_classes(model, [*shared, *(committed or ())], target.declared)
    unstorable = [*check_storable(model), *find_alike(model)]
    if unstorable:
        found = (*unless_found(findings, unstorable), *unstorable)
        return CheckedColumns(model, committed, found, storable=False)
    findings += check_roles(model, target.dimension_columns, target.partition_by, ())
    findings += check_roles(model, (), (), target.indexes)
    findings += unless_found(_reserved_names(model, target), findings)
    findings += unless_found(_hidden_columns(model, target), findings)
    if committed is None:
        return CheckedColumns(model, None, tuple(findings))
    configured = {*target.dimension_columns, *target.partition_by, *target.indexes}
    policy, keeps_rows = target.on_schema_change, target.mode is not None
    dataset = target.dataset if target.cube else ""
    change = change_schema(committed, model, policy, configured, keeps_rows, dataset)
    findings += unless_found(change.findings, findings)
    return replace(change, findings=tuple(findings))


def unless_found(new: Iterable[Finding], found: Iterable[Finding]) -> list[Finding]:
    """Give new findings on columns without one: one reason per column is enough."""
    columns = {finding.column for finding in found}
    return [finding for finding in new if finding.column not in columns]


def change_schema(
    committed: pa.Schema,
    model: pa.Schema,
    policy: OnSchemaChange,
    configured: Collection[str] = (),
    keeps_rows: bool = False,
    dataset: str = "",
) -> CheckedColumns:
    """Decide about the differences between a model and its dataset.

    `fail` refuses them all, and so does `full_refresh`, whose caller rebuilds. `append_new_columns`
    adds new columns, which old files read as null.
    `sync_all_columns` also drops columns. `ignore` leaves the model's new columns out, except for
    `configured` ones. Only `sync_all_columns` accepts missing columns, since a rebuild would lose
    their values. If rows stay, their values do too, and `append_new_columns` accepts them as well:
    new rows have null, as in dbt.
    """
    findings = compare_schemas(committed, model, dataset)
    unknown = [item.column for item in findings if item.rule == "unknown"]
    missing = [item.column for item in findings if item.rule == "missing"]
    accepted: set[str] = set()
    notes: list[str] = []
    if policy in ("append_new_columns", "sync_all_columns"):
        accepted.update(unknown)
        notes += _note("new", unknown)
    if policy == "sync_all_columns":
        accepted.update(missing)
        notes += _note("removed", missing)
        committed = _without(committed, missing)
    if policy == "append_new_columns" and keeps_rows:
        accepted.update(name for name in missing if name not in configured)
    if policy == "ignore":
        ignored = [name for name in unknown if name not in configured]
        accepted.update(ignored)
        notes += _note("ignored new", ignored)
        model = _without(model, ignored)
    refused = tuple(
        item
        for item in findings
        if not (item.rule in ("unknown", "missing") and item.column in accepted)
    )
    return CheckedColumns(model, committed, refused, tuple(notes))


def find_alike(model: pa.Schema) -> list[Finding]:
    """Columns, and fields of a struct, that differ only by case, which Spark ignores."""
    first: dict[Identifier, str] = {}
    findings = []
    for item in model:
        other = first.setdefault(Identifier(item.name), item.name)
        pair = (other, item.name) if other != item.name else fields_alike(item.type, item.name)
        if pair is not None:
            reason = f"`{pair[1]}` differs from `{pair[0]}` in letter case only, which SQL ignores"
            fix = f"rename {pair[1]}"
            findings.append(Finding(item.name, None, item.type, reason, fix, "duplicate"))
    return findings


def _reserved_names(model: pa.Schema, target: WriteRequest) -> Iterator[Finding]:
    """Columns whose name is reserved, or unfit for their role."""
    for item in model:
        problem = own_name_problem(item.name)
        if problem is not None:
            yield Finding(item.name, None, item.type, problem, "rename it", "role")
    roles: dict[str, ColumnRole] = dict.fromkeys(target.indexes, "index")
    roles |= dict.fromkeys(target.dimension_columns, "dimension")
    roles |= dict.fromkeys(target.partition_by, "partition")
    for name, role in roles.items():
        problem = name_problem(name, role)
        if problem is not None:
            yield Finding(name, None, model.field(name).type, problem, "rename it", "role")


def _hidden_columns(model: pa.Schema, target: WriteRequest) -> Iterator[Finding]:
    """Payload columns that cubes do not show; in other roles they have a finding already."""
    for item in model:
        if target.cube and is_hidden(item.name):
            reason = "a cube does not show columns of this name, which Kartothek keeps for itself"
            yield Finding(item.name, None, item.type, reason, "rename it", "role")


def _without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def _note(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {noun(len(names), 'column')}: {', '.join(names)}"] if names else []
