"""Fits a statement's clauses to the columns that exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ktk_engine.errors import ConfigurationError
from ktk_engine.sql.dialect import Dialect
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.quote import quote_identifier


def fit_clauses(
    change: RowChange, uuid: str, columns: Collection[str], given: Collection[str], dialect: Dialect
) -> RowChange:
    """Spell the columns of assignments as the dataset does, and expand `*`.

    Raises a `ConfigurationError` for a column that the dataset lacks, or for `*` the source.
    """
    clauses = []
    for clause in change.clauses:
        values = clause.values
        if values is None:
            values = _all_values(change, clause, uuid, columns, given, dialect)
        else:
            values = _known_values(values, uuid, columns, dialect)
        clauses.append(replace(clause, values=values))
    return replace(change, clauses=tuple(clauses))


def _known_values(
    values: Mapping[str, str], uuid: str, columns: Collection[str], dialect: Dialect
) -> Mapping[str, str]:
    find = dialect.finder(columns)
    found = {name: find(name) for name in values}
    for name, spelled in found.items():
        if spelled is None:
            raise ConfigurationError(
                f"Dataset {uuid} has no column `{name}`.{did_you_mean(name, columns)} It has: "
                f"{', '.join(columns)}. Nothing was written."
            )
    return {found[name] or name: value for name, value in values.items()}


def _all_values(
    change: RowChange,
    clause: Clause,
    uuid: str,
    columns: Collection[str],
    given: Collection[str],
    dialect: Dialect,
) -> Mapping[str, str]:
    find = dialect.finder(given)
    found = {name: find(name) for name in columns}
    missing = [name for name, spelled in found.items() if spelled is None]
    if missing:
        raise ConfigurationError(
            f"Dataset {uuid}: `{clause.action} *` needs all of its columns, and the source lacks "
            f"{', '.join(missing)}. It has: {', '.join(given)}. Name the columns to {clause.action}"
            ". Nothing was written."
        )
    side = f"{quote_identifier(change.source)}." if change.source else ""
    return {name: side + quote_identifier(found[name] or name) for name in columns}
