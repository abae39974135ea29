"""How a write spells columns: SQL ignores case, files do not, so the first spelling stays.

Everything after it, from the gate to files and documents, compares exact names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ktk_engine.cube.user_metadata import DIMENSION_COLUMNS, cube_value
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.identifier import Identifier, find_names, name_finder

_T = TypeVar("_T")


def stored_names(
    target: WriteRequest,
    columns: Sequence[str],
    datasets: Mapping[str, Snapshot],
) -> dict[str, str]:
    """Map columns to their stored names, where only their case differs.

    The name comes from the dataset itself, or for shared columns from others of the cube. Columns
    that differ only by case are left to the gate, which refuses them.
    """
    known: dict[Identifier, str] = {}
    given = set(columns)
    for dataset, item in datasets.items():
        if dataset != target.dataset:
            shared = (*(cube_value(item.metadata, DIMENSION_COLUMNS) or ()), *item.partition_keys)
            known |= {Identifier(name): name for name in shared}
    own = datasets.get(target.dataset)
    if own is not None and target.is_bound:
        known |= {Identifier(name): name for name in own.schema.names if name not in given}
        known |= {Identifier(name): name for name in own.schema.names if name in given}
    found = {name: known.get(Identifier(name), name) for name in columns}
    return {name: there for name, there in found.items() if there not in given}


def spelled(target: WriteRequest, columns: Sequence[str]) -> WriteRequest:
    """Give a target whose column names are spelled as these; unknown ones stay for later checks."""

    def names(given: Sequence[str]) -> tuple[str, ...]:
        return find_names(given, columns)

    return replace(
        target,
        dimension_columns=names(target.dimension_columns),
        partition_by=names(target.partition_by),
        indexes=names(target.indexes),
        suppress_index_on=names(target.suppress_index_on),
        clustered_by=names(target.clustered_by),
        bucket_by=names(target.bucket_by),
        declared=spelled_keys(target.declared, columns),
        constraints=tuple(replace(i, columns=names(i.columns)) for i in target.constraints),
    )


def spelled_keys(given: Mapping[str, _T], columns: Sequence[str]) -> dict[str, _T]:
    """Respell the column names that are keys of a mapping."""
    find = name_finder(columns)
    return {find(name) or name: item for name, item in given.items()}
