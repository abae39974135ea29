"""`persist_docs`: which descriptions of a model become comments in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import DbtConfigError

from ktk_engine.format.comments import Comments
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import name_finder

_PARTS = ("relation", "columns")


def check_persist_docs(model: str, value: object) -> None:
    """Raise a `DbtConfigError` unless it maps to booleans; `unknown_parts` checks the keys."""
    known = f"Model {model}: config `persist_docs`"
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise DbtConfigError(
            f"{known} must be a mapping, for instance {{relation: true, columns: true}}, but is "
            f"{value!r}."
        )
    for key, wanted in value.items():
        if not isinstance(wanted, bool):
            raise DbtConfigError(f"{known}: `{key}` must be true or false, but is {wanted!r}.")


def unknown_parts(model: Mapping[str, Any]) -> str:
    """Name the keys of a model's `persist_docs` that mean nothing; empty if all do.

    They are a warning and no error, because dbt and its own test suite ignore them.
    """
    unknown = [str(key) for key in model["config"].get("persist_docs") or {} if key not in _PARTS]
    if not unknown:
        return ""
    hint = did_you_mean(unknown[0], _PARTS)
    return (
        f"{model['name']}: config `persist_docs` has the unknown key `{unknown[0]}`, which does "
        f"nothing.{hint} Known: {', '.join(_PARTS)}."
    )


def comments_of_model(
    model: Mapping[str, Any],
    columns_of: Callable[[], Sequence[str]],
    for_relation: bool = True,
    for_columns: bool = True,
) -> tuple[Comments, list[str]]:
    """Give the comments that a model wants, and the columns in YAML that its relation lacks.

    Names match as in dbt: those with `quote: true` exactly, others in any letter case. `columns_of`
    gives the columns of the relation, and is only called if they matter.
    """
    wanted = model["config"].get("persist_docs") or {}
    wants_relation = for_relation and wanted.get("relation")
    relation = str(model.get("description") or "") if wants_relation else ""
    described = model.get("columns") if for_columns and wanted.get("columns") else None
    if not described:
        return Comments(relation), []
    texts: dict[str, str] = {}
    missing: list[str] = []
    columns = dict.fromkeys(columns_of())
    find = name_finder(columns)
    for name, column in described.items():
        exact = str(name) if name in columns else None
        found = exact if column.get("quote") else find(str(name))
        if found is None:
            missing.append(str(name))
        elif column.get("description"):
            texts[found] = str(column["description"])
    return Comments(relation, texts), missing
