"""`on_schema_change`: which differences between a model and its dataset a run accepts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from ktk_engine.formatting import noun
from ktk_engine.types.finding import Finding
from ktk_engine.types.schema import compare_schemas

OnSchemaChange = Literal["fail", "append_new_columns", "sync_all_columns", "ignore"]
ON_SCHEMA_CHANGE: tuple[str, ...] = get_args(OnSchemaChange)


@dataclass(frozen=True)
class SchemaChange:
    """What comes of the differences between a model and the committed schema.

    Attributes:
        model: the model's schema, without the columns that are left out.
        committed: the committed schema, without the columns that go.
        findings: the differences that are refused; a class never changes.
        notes: what was accepted, for the run's message.
    """

    model: pa.Schema
    committed: pa.Schema
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def change_schema(
    committed: pa.Schema,
    model: pa.Schema,
    policy: OnSchemaChange,
    configured: Collection[str] = (),
    keeps_rows: bool = False,
) -> SchemaChange:
    """Judge the differences between a model and its dataset.

    Args:
        committed: the dataset's schema.
        model: the schema of what is to be written.
        policy: `fail` refuses every difference; `append_new_columns` takes new columns, which
            old files read as null; `sync_all_columns` also lets columns go; `ignore` leaves
            the model's new columns out.
        configured: columns that the configuration names, which `ignore` cannot leave out.
        keeps_rows: whether rows of the dataset stay.

    Returns:
        The outcome. Columns that the model lacks are refused but by `sync_all_columns`: a
        rebuild would lose their values. Where rows stay, their values do as well, and with
        `append_new_columns` the new rows have null there, as dbt says.
    """
    findings = compare_schemas(committed, model)
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
        notes += _note("left out, as on_schema_change is ignore,", ignored)
        model = _without(model, ignored)
    refused = tuple(
        item
        for item in findings
        if not (item.rule in ("unknown", "missing") and item.column in accepted)
    )
    return SchemaChange(model, committed, refused, tuple(notes))


def _without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def _note(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {noun(len(names), 'column')}: {', '.join(names)}"] if names else []
