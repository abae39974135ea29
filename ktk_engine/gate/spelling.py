"""How a write spells columns: SQL ignores letter case, files do not, so the first spelling stays.

Everything behind it, the gate, files and documents, then compares names letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ktk_engine.cube.cube_metadata import DIMENSION_COLUMNS, cube_value
from ktk_engine.gate.constraint import Constraint
from ktk_engine.gate.target import Target
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.identifier import Identifier, find_names, name_finder

_T = TypeVar("_T")


def stored_names(
    target: Target,
    columns: Sequence[str],
    datasets: Mapping[str, Snapshot],
    full_refresh: bool,
    keeps_rows: bool,
) -> dict[str, str]:
    """Say under which names columns are stored.

    Args:
        target: what is to be written.
        columns: as the rows call them.
        datasets: the committed datasets of the scope, by id.
        full_refresh: whether the dataset is rebuilt.
        keeps_rows: whether rows of it stay.

    Returns:
        Column -> its name in the dataset that it is written to, or in others of the cube if it is
        shared; only where letter case differs. Columns that SQL cannot tell apart are left to the
        gate, which refuses them.
    """
    known: dict[Identifier, str] = {}
    given = set(columns)
    for dataset, item in datasets.items():
        if dataset != target.dataset:
            shared = (*(cube_value(item.metadata, DIMENSION_COLUMNS) or ()), *item.partition_keys)
            known |= {Identifier(name): name for name in shared}
    own = datasets.get(target.dataset)
    if own is not None and not full_refresh and (target.cube or keeps_rows):
        known |= {Identifier(name): name for name in own.schema.names if name not in given}
        known |= {Identifier(name): name for name in own.schema.names if name in given}
    found = {name: known.get(Identifier(name), name) for name in columns}
    return {name: there for name, there in found.items() if there not in given}


def spelled(target: Target, columns: Sequence[str]) -> Target:
    """Give a target whose columns are named as the rows name them, in the spelling of these.

    Args:
        target: as it was configured; a name of no column stays, and is refused later.
        columns: those of the rows, as they are stored.
    """

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
        constraints=tuple(_spelled(item, names) for item in target.constraints),
    )


def spelled_keys(given: Mapping[str, _T], columns: Sequence[str]) -> dict[str, _T]:
    """Give what is said of columns by their names as they are spelled."""
    find = name_finder(columns)
    return {find(name) or name: item for name, item in given.items()}


def _spelled(item: Constraint, names: Callable[[Sequence[str]], tuple[str, ...]]) -> Constraint:
    return replace(item, columns=names(item.columns))
