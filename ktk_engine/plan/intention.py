"""The intention of a query: what is asked, checked against what the cube has (kartothek.md 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ktk_engine.cube.discovery import visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import QueryError
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.types.condition import Condition, TrueCondition
from ktk_engine.types.condition import columns as condition_columns
from ktk_engine.types.parse_condition import parse_condition
from ktk_engine.types.suggestion import did_you_mean


@dataclass(frozen=True)
class Intention:
    """A query that can be answered.

    Attributes:
        columns: output columns, in order.
        condition: which rows of the joined table to keep.
    """

    columns: tuple[str, ...]
    condition: Condition

    @property
    def needed(self) -> frozenset[str]:
        """Columns that the output or the condition reads."""
        return frozenset(self.columns) | condition_columns(self.condition)


def cube_schema(specification: CubeSpecification, snapshots: Mapping[str, Snapshot]) -> pa.Schema:
    """The virtual table's columns: dimensions, partition columns, then payload by dataset.

    Args:
        specification: the cube.
        snapshots: its datasets by id.

    Returns:
        Normalised types; the seed dataset's payload comes first, then the enrichments' by name.
    """
    order = sorted(snapshots, key=lambda name: (name != specification.seed_dataset, name))
    fields: dict[str, pa.Field] = {}
    seed = snapshots[specification.seed_dataset]
    for name in (*specification.dimension_columns, *specification.partition_columns):
        fields[name] = seed.schema.field(name)
    for name in order:
        for column in visible_columns(snapshots[name]):
            fields.setdefault(column, snapshots[name].schema.field(column))
    return pa.schema(fields.values())


def make_intention(
    specification: CubeSpecification,
    snapshots: Mapping[str, Snapshot],
    columns: Sequence[str] | None = None,
    where: str | Condition | None = None,
) -> Intention:
    """Check what is asked.

    Args:
        specification: the cube.
        snapshots: its datasets by id.
        columns: output columns; None means all, in the order of `cube_schema`.
        where: a condition, as SQL text or parsed.

    Raises:
        QueryError: an unknown column, with the nearest known one.
        ConditionError: the condition cannot be parsed or compares different classes.
    """
    schema = cube_schema(specification, snapshots)
    if isinstance(columns, str):
        raise QueryError(f"columns must be a list of names, but is the text {columns!r}.")
    chosen = tuple(schema.names if columns is None else columns)
    _check_known(specification.prefix, chosen, schema.names)
    repeated = sorted({name for name in chosen if chosen.count(name) > 1})
    if repeated:
        raise QueryError(f"Columns are asked for twice: {', '.join(repeated)}.")
    if not chosen:
        raise QueryError(f"A query of cube {specification.prefix} needs at least one column.")
    condition: Condition = TrueCondition()
    if isinstance(where, str):
        condition = parse_condition(where, schema)
    elif where is not None:
        condition = where
        _check_known(specification.prefix, condition_columns(where), schema.names)
    return Intention(chosen, condition)


def _check_known(prefix: str, asked: Iterable[str], known: Sequence[str]) -> None:
    unknown = sorted(set(asked) - set(known))
    if not unknown:
        return
    hints = []
    for name in unknown:
        nearest = did_you_mean(name, known)
        hints.append(f"`{name}`" + (f" (did you mean `{nearest}`?)" if nearest else ""))
    raise QueryError(f"Cube {prefix} has no column {', '.join(hints)}. It has: {', '.join(known)}.")
