"""Ids of Iceberg's fields: a column keeps its id while its name and its kind of type stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ktk_engine.publish.iceberg.iceberg_schema import IcebergType, widest


class FieldIds:
    """Gives ids to fields, and keeps those of an earlier schema.

    `last` is the greatest id ever given. `retyped` says whether a field that stays has a new type.
    """

    def __init__(self, last: int) -> None:
        self.last, self.retyped = last, False

    def of_columns(
        self, columns: Iterable[Mapping[str, Any]], known: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Give ids to the columns of `iceberg_columns`; `known` are fields of the schema before."""
        before = {field["name"]: field for field in known}
        found = []
        for column in columns:
            old = before.get(column["name"], {})
            number, kind = self._known(old.get("id"), old.get("type"), column["type"])
            found.append({"id": number, **column, "type": kind})
        return found

    def _known(
        self, number: int | None, old: IcebergType | None, new: IcebergType
    ) -> tuple[int, IcebergType]:
        """The id and type of a field: the earlier ones if the types are alike."""
        if number is None or old is None or not _alike(old, new):
            self.last += 1
            number, old = self.last, None
        if isinstance(new, str):
            kind = widest(old, new) if isinstance(old, str) else new
            self.retyped |= old is not None and kind != old
            return number, kind or new
        old = old if isinstance(old, dict) else {}
        if new["type"] == "struct":
            return number, {**new, "fields": self.of_columns(new["fields"], old.get("fields", ()))}
        kind = dict(new)
        for part in ("element", "key", "value"):
            if part in new:
                known = self._known(old.get(f"{part}-id"), old.get(part), new[part])
                kind[f"{part}-id"], kind[part] = known
        return number, kind


def name_mapping(fields: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The value of `schema.name-mapping.default`: files have names of fields, and no ids."""
    return [_mapped(field["name"], field["id"], field["type"]) for field in fields]


def _mapped(name: str, number: int, kind: IcebergType) -> dict[str, Any]:
    found: dict[str, Any] = {"field-id": number, "names": [name]}
    if isinstance(kind, dict):
        parts = ("element", "key", "value")
        found["fields"] = (
            name_mapping(kind["fields"])
            if kind["type"] == "struct"
            else [_mapped(p, kind[f"{p}-id"], kind[p]) for p in parts if p in kind]
        )
    return found


def _alike(old: IcebergType, new: IcebergType) -> bool:
    """Whether values of one type may stay as they are where the other is expected."""
    if isinstance(old, str) or isinstance(new, str):
        return widest(old, new) is not None
    return bool(old["type"] == new["type"])
