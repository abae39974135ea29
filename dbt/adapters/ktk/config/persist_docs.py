"""`persist_docs`: which descriptions of a model become comments in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import DbtConfigError

from ktk_engine.format.comments import Comments
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_name

_PARTS = ("relation", "columns")


def check_persist_docs(model: str, value: object) -> None:
    """Refuse a configuration that cannot be read; see `unknown_parts` for keys.

    Args:
        model: the model's name, for the message.
        value: the configuration `persist_docs`.

    Raises:
        DbtConfigError: it is not a mapping, or has values that are not booleans.
    """
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
    """Say which keys of a model's `persist_docs` mean nothing; empty if all do.

    dbt and its own test suite pass over them, so they are worth a warning, no error.
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
    """Give the comments that a model's configuration asks for.

    Names match as dbt has it: those with `quote: true` letter by letter, others in any case.

    Args:
        model: the node as Jinja's `model`.
        columns_of: gives the columns that its relation has; only called where they matter.
        for_relation: whether the description of the relation is wanted at all.
        for_columns: whether those of columns are.

    Returns:
        The comments, and the columns in YAML that the relation lacks, if columns are wanted.
    """
    wanted = model["config"].get("persist_docs") or {}
    wants_relation = for_relation and wanted.get("relation")
    relation = str(model.get("description") or "") if wants_relation else ""
    described = model.get("columns") if for_columns and wanted.get("columns") else None
    if not described:
        return Comments(relation), []
    texts: dict[str, str] = {}
    missing: list[str] = []
    columns = columns_of()
    for name, column in described.items():
        found = _physical(str(name), bool(column.get("quote")), columns)
        if found is None:
            missing.append(str(name))
        elif column.get("description"):
            texts[found] = str(column["description"])
    return Comments(relation, texts), missing


def _physical(name: str, quoted: bool, columns: Sequence[str]) -> str | None:
    if quoted:
        return name if name in columns else None
    return find_name(name, columns)
