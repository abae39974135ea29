"""Constraints of a model's contract, as its YAML gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.foreign_config_table import APART, NO_USERS
from ktk_engine.errors import DataError
from ktk_engine.gate.constraint import Constraint, length_constraint, length_limit
from ktk_engine.types.identifier import find_name

_UNCHECKED = ("foreign_key", "custom")
# What hides values or rows in other engines.
_ACCESS = re.compile(r"\b(?:mask(?:ing|ed)?|policy|(?:policy_)?tags?|row filter)\b", re.IGNORECASE)
_SHOWN = 60


@dataclass(frozen=True)
class ModelConstraints:
    """The constraints of one model."""

    verified: tuple[Constraint, ...] = ()  # by every write
    unchecked: tuple[str, ...] = ()  # warnings of constraints that are accepted and not checked


def parse_constraints(
    model: str, columns: Mapping[str, Any], own: Iterable[Any]
) -> ModelConstraints:
    """Read the constraints of a model's columns and its `own`, with `varchar(3)` as one of length.

    Raises a `DbtConfigError` if a constraint lacks what its type needs, or says who may read.
    """
    verified: dict[Constraint, None] = dict.fromkeys(_limits(columns))
    unchecked: list[str] = []
    for item, names in [*_of_columns(columns), *((_mapping(c), None) for c in own)]:
        kind = str(getattr(item["type"], "value", item["type"]))
        given = tuple(names or item.get("columns") or ())
        if kind not in _UNCHECKED:
            verified[_constraint(model, kind, given, item)] = None
        elif kind == "custom" and _ACCESS.search(expression := str(item.get("expression") or "")):
            raise DbtConfigError(
                f"Model {model}: the constraint `{expression}` cannot be carried out: {NO_USERS}. "
                f"Nothing was written. Remove it, and {APART}."
            )
        elif item.get("warn_unenforced", True):
            of = f" ({', '.join(given)})" if given else ""
            unchecked.append(f"Model {model}: the constraint {kind}{of} is not checked.")
    return ModelConstraints(tuple(verified), tuple(unchecked))


def _limits(columns: Mapping[str, Any]) -> Iterator[Constraint]:
    for name, column in columns.items():
        found = length_constraint(str(name), str(_mapping(column).get("data_type") or ""))
        if found is not None:
            yield found


def check_lengths(seed: str, types: Mapping[str, Any], table: pa.Table) -> None:
    """Refuse texts that are longer than a seed's `column_types` say.

    A seed is written whole, without Spark, which would check a constraint.
    """
    for name, type_ in types.items():
        limit, found = length_limit(str(type_)), find_name(str(name), table.column_names)
        if limit is None or found is None:
            continue
        column = table[found]
        long = column.filter(pc.greater(pc.utf8_length(column), limit))
        if len(long):
            raise DataError(
                f"Seed {seed}: column `{found}` is {type_}, and {long[0].as_py()[:_SHOWN]!r} is "
                f"longer. Nothing was written. Shorten it, or write string in column_types."
            )


def _of_columns(
    columns: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    for name, column in columns.items():
        for item in _mapping(column).get("constraints") or ():
            yield _mapping(item), (str(name),)


def _mapping(item: Any) -> Mapping[str, Any]:
    """dbt gives mappings to Jinja and objects to adapters."""
    return item if isinstance(item, Mapping) else vars(item)


def _constraint(
    model: str, kind: str, columns: tuple[str, ...], item: Mapping[str, Any]
) -> Constraint:
    expression, name = str(item.get("expression") or ""), str(item.get("name") or "")
    if kind == "check":
        if not expression:
            raise DbtConfigError(f"Model {model}: a check constraint needs an `expression`.")
        return Constraint("check", (), expression, name)
    if not columns:
        raise DbtConfigError(f"Model {model}: a {kind} constraint of a model needs `columns`.")
    if kind not in ("not_null", "unique", "primary_key"):
        raise DbtConfigError(f"Model {model}: the constraint type {kind!r} is unknown.")
    return Constraint(kind, columns, "", name)  # type: ignore[arg-type]
