"""A query of a cube, as given and as checked against the cube.

See docs/design/kartothek-format.md, A query of a cube.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from types import MappingProxyType
from typing import Literal, get_args

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, TrueCondition, conjuncts
from ktk_engine.conditions.parameters import BoundText
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.cube.discovery import visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConditionError, QueryError
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.did_you_mean import nearest_name
from ktk_engine.types.identifier import find_names

ALL_PAYLOAD: Literal["*"] = "*"


@dataclass(frozen=True)
class CubeQuery:
    """A query; `resolve_query` checks it against a cube."""

    columns: Sequence[str] | None = None  # the output columns in their order; None: all
    where: str | BoundText | Condition | None = None  # SQL text, or parsed
    # The dimensions that address a row of the result, in sort order; None: the cube's. With fewer,
    # each remaining cell of a partition is one row, and only datasets without dropped dimensions
    # can give columns.
    dimension_columns: Sequence[str] | None = None
    partition_by: Sequence[str] | None = None  # columns whose values cut the result into groups
    # Kartothek's alternative to `columns`: these, the dimension, partition and `partition_by`
    # columns, sorted by name. "*" means all.
    payload_columns: Sequence[str] | Literal["*"] | None = None
    limit: int | None = None  # the first rows in the result's order; None: all


@dataclass(frozen=True)
class ResolvedQuery:
    """A query that can be answered."""

    columns: tuple[str, ...]  # the output columns in their order
    conjuncts: tuple[Condition, ...]  # conditions on rows of the joined table
    dimensions: tuple[str, ...]  # that address a row of the result, in order
    partition_by: tuple[str, ...] = ()  # columns whose values cut the result into groups, in order
    limit: int | None = None  # None: all
    # Datasets that are joined inner: only cells that they have are rows.
    matched: frozenset[str] = frozenset()

    @cached_property
    def needed(self) -> frozenset[str]:
        """Columns that the output, the condition or the groups read."""
        read = (part.columns for part in self.conjuncts)
        return frozenset[str]().union(self.columns, self.partition_by, *read)


def resolve_query(
    specification: CubeSpecification,
    snapshots: Mapping[str, Snapshot],
    query: CubeQuery,
    schema: pa.Schema,
) -> ResolvedQuery:
    """Check a query in Kartothek's order: dimensions, groups, conditions, columns.

    `schema` is the cube's, as `cube_schema` gives it.

    Raises a `ConditionError` if the condition cannot be parsed or compares different classes, and a
    `QueryError` for everything else, with the nearest name for an unknown column.
    """
    prefix = specification.prefix
    dimensions = _dimensions(specification, query.dimension_columns)
    groups = listed_names(f"cube {prefix}", "partition_by", query.partition_by or (), schema.names)
    check_known(f"Cube {prefix}", groups, schema.names)
    _check_indexed(prefix, groups, snapshots)
    where = row_condition(f"Cube {prefix}", query.where, schema)
    dropped = set(specification.dimension_columns) - set(dimensions)
    columns = _columns(specification, schema.names, query, dimensions, groups)
    # Within a group, a dropped dimension that cuts groups has one value.
    _check_not_dropped(prefix, columns, dropped - set(groups), dimensions)
    limit = checked_limit(query.limit)
    if groups and limit is not None:
        raise QueryError("A query has a limit or groups (partition_by), not both.")
    resolved = ResolvedQuery(columns, conjuncts(where), dimensions, groups, limit)
    if dropped:
        _check_projection(specification, snapshots, resolved)
    return resolved


def cube_schema(specification: CubeSpecification, snapshots: Mapping[str, Snapshot]) -> pa.Schema:
    """The virtual table's columns: dimensions, partition columns, then payload by dataset.

    Types are normalised. The seed dataset's payload comes first, then the enrichments' by name.
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


def _dimensions(specification: CubeSpecification, asked: Sequence[str] | None) -> tuple[str, ...]:
    if asked is None:
        return specification.dimension_columns
    known = specification.dimension_columns
    names = listed_names(f"cube {specification.prefix}", "dimension_columns", asked, known)
    if not names:
        raise QueryError(
            f"dimension_columns of a query of cube {specification.prefix} must not be empty; it "
            f"has: {', '.join(specification.dimension_columns)}."
        )
    unknown = [name for name in names if name not in known]
    if unknown:
        raise QueryError(
            f"Cube {specification.prefix} has no dimension {with_hints(unknown, known)}. It has: "
            f"{', '.join(known)}."
        )
    return names


def _columns(
    specification: CubeSpecification,
    known: Sequence[str],
    query: CubeQuery,
    dimensions: Sequence[str],
    groups: Sequence[str],
) -> tuple[str, ...]:
    """The output columns by the rules of `CubeQuery`."""
    prefix = specification.prefix
    left = [c for c in known if c in dimensions or c not in specification.dimension_columns]
    if query.columns is not None:
        if query.payload_columns is not None:
            raise QueryError("Give columns or payload_columns, not both.")
        columns = listed_names(f"cube {prefix}", "columns", query.columns, known)
        check_known(f"Cube {prefix}", columns, known)
        if not columns:
            raise QueryError(f"A query of cube {prefix} needs at least one column.")
        return columns
    if query.payload_columns is None:
        return tuple(left)
    payload: Collection[str] = left
    if query.payload_columns != ALL_PAYLOAD:
        # As in Kartothek, a repeated column is given once.
        payload = list(dict.fromkeys(query.payload_columns))
        payload = listed_names(f"cube {prefix}", "payload_columns", payload, known)
        check_known(f"Cube {prefix}", payload, known)
    return tuple(sorted({*payload, *dimensions, *groups, *specification.partition_columns}))


def _check_indexed(prefix: str, groups: Iterable[str], snapshots: Mapping[str, Snapshot]) -> None:
    """Groups are found by index (docs/design/kartothek-format.md, Groups of a query)."""
    indexed = frozenset().union(*(item.indexed_columns for item in snapshots.values()))
    missing = [name for name in groups if name not in indexed]
    if missing:
        raise QueryError(
            f"partition_by of a query of cube {prefix} names columns without an index: "
            f"{', '.join(missing)}. Indexed columns: {', '.join(sorted(indexed))}."
        )


def _check_not_dropped(
    prefix: str, columns: Iterable[str], dropped: Collection[str], dimensions: Sequence[str]
) -> None:
    """A row of fewer dimensions represents many values of the others (decision 23)."""
    lost = sorted(set(columns) & set(dropped))
    if lost:
        raise QueryError(
            f"A query of cube {prefix} with the dimensions {', '.join(dimensions)} cannot give "
            f"{', '.join(lost)}: one row represents many of its values. Add it to "
            "dimension_columns, or leave it out."
        )


def _check_projection(
    specification: CubeSpecification, snapshots: Mapping[str, Snapshot], resolved: ResolvedQuery
) -> None:
    """Only datasets whose dimensions all remain may give columns or conditions."""
    for name in sorted(snapshots):
        snapshot = snapshots[name]
        own = [c for c in specification.dimension_columns if c in snapshot.columns]
        lost = [c for c in own if c not in resolved.dimensions]
        payload = frozenset(visible_columns(snapshot)) - specification.shared_columns
        needed = sorted(payload & resolved.needed)
        if lost and needed:
            raise QueryError(
                f"Cannot project dataset {name} of cube {specification.prefix} with the dimensions "
                f"{', '.join(own)} to {', '.join(resolved.dimensions)} while keeping "
                f"{', '.join(needed)}: a cell would have several values. Keep {', '.join(lost)}, "
                "or leave these columns out."
            )


def checked_limit(limit: int | None) -> int | None:
    """Refuse a limit that is not a number of rows with a `QueryError`; None means all."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 0:
        raise QueryError(f"limit must be a number of rows, 0 or more, but is {limit!r}.")
    return int(limit)


def row_condition(
    what: str, where: str | BoundText | Condition | None, schema: pa.Schema
) -> Condition:
    """Read a condition on a schema; None is true for every row.

    `what` names the rows in messages. Raises a `QueryError` for an unknown column, and a
    `ConditionError` for any other defect.
    """
    if where is None:
        return TrueCondition()
    if isinstance(where, str | BoundText):
        return parse_condition(where, schema)
    if isinstance(where, get_args(Condition)):
        condition: Condition = where
        check_known(what, condition.columns, schema.names)
        return condition
    raise ConditionError(
        f"where must be SQL text, for instance \"dest = 'SFO'\", but is {where!r}."
    )


def deleting_condition(
    what: str, where: str | BoundText | Condition | None, schema: pa.Schema
) -> Condition:
    """Read the condition of rows to be deleted; see `row_condition`.

    None is a `ConditionError`: a variable that happens to be None must not mean all rows.
    """
    if where is None:
        raise ConditionError(
            f"{what}: where is None, and a deletion needs a condition. For all rows write 'true'. "
            "Nothing was deleted."
        )
    return row_condition(what, where, schema)


def listed_names(of: str, what: str, asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Check a list of distinct names, and spell them as the known ones.

    `of` and `what` name the owner (`cube nyc`) and the argument in messages. Raises a `QueryError`
    if it is not a list or repeats a name.
    """
    if isinstance(asked, str):
        raise QueryError(f"{what} must be a list of names, but is the text {asked!r}.")
    if isinstance(asked, set | frozenset | dict):
        raise QueryError(f"{what} needs an order, but is a {type(asked).__name__}: give a list.")
    if not isinstance(asked, Iterable):
        raise QueryError(f"{what} must be a list of names, but is {asked!r}.")
    names = tuple(asked)
    if all(isinstance(name, str) for name in names):
        names = find_names(names, known)
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise QueryError(
            f"These columns are named twice: {', '.join(repeated)} ({what} of a query of {of})."
        )
    return names


def check_known(
    of: str,
    asked: Iterable[str],
    known: Sequence[str],
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise a `QueryError` for unknown columns, with the nearest name of each.

    `of` begins the message (`Cube nyc`); `left_out` has columns of files that are left out, and
    why.
    """
    unknown = sorted(set(asked) - set(known))
    for name in unknown:
        if name in left_out:
            raise QueryError(
                f"{of}: its column `{name}` is left out: {left_out[name]}. The program that wrote "
                "it reads it."
            )
    if unknown:
        raise QueryError(
            f"{of} has no column {with_hints(unknown, known)}. It has: {', '.join(known)}."
        )


def with_hints(unknown: Iterable[str], known: Sequence[str]) -> str:
    """Name unknown columns, each with the nearest known one."""
    hints = []
    for name in unknown:
        nearest = nearest_name(name, known)
        hints.append(f"`{name}`" + (f" (did you mean `{nearest}`?)" if nearest else ""))
    return ", ".join(hints)
