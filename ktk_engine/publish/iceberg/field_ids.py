"""The fields of an Iceberg table: their ids in files and by name, and how they change.

A field keeps its id while its path and its class stay (`field_id`). Files of earlier versions have
no ids, so a mapping gives them to the names in files. Partition specs name columns by their ids,
and their own fields have ids, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from ktk_engine.errors import FormatError
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.format.parse_json import parse_json
from ktk_engine.publish.iceberg.avro_schemas import avro_name
from ktk_engine.publish.iceberg.iceberg_schema import IcebergType, Path, widest
from ktk_engine.types.field_id import field_id, parts_of

Fields: TypeAlias = Iterable[Mapping[str, Any]]
Mapped: TypeAlias = dict[str, Any]  # a field's id, its name in files, and its fields
_PARTS = ("element", "key", "value")


def widened(columns: Fields, known: Mapping[int, str]) -> list[dict[str, Any]]:
    """Columns in types that are never narrower than known ones, which are named by id."""
    return [{**column, "type": _widened(column["id"], column["type"], known)} for column in columns]


def _widened(number: int, kind: IcebergType, known: Mapping[int, str]) -> IcebergType:
    if isinstance(kind, str):
        return widest(known.get(number, kind), kind) or kind
    if kind["type"] == "struct":
        return {**kind, "fields": widened(kind["fields"], known)}
    parts = [part for part in _PARTS if part in kind]
    return {**kind, **{part: _widened(kind[f"{part}-id"], kind[part], known) for part in parts}}


def plain_types(fields: Fields) -> dict[int, str]:
    """The types of all fields of a schema that are not nested, by their ids."""
    found: dict[int, str] = {}
    for field in fields:
        kind = field["type"]
        if isinstance(kind, str):
            found[field["id"]] = kind
        elif kind["type"] == "struct":
            found |= plain_types(kind["fields"])
        else:
            parts = [part for part in _PARTS if part in kind]
            found |= plain_types({"id": kind[f"{p}-id"], "type": kind[p]} for p in parts)
    return found


def with_names_of_files(
    mapping: Iterable[Mapped], named: Iterable[tuple[str, pa.Field]], above: Path = ()
) -> list[Mapped]:
    """Add the names in files that a mapping lacks: some readers refuse a file with one."""
    found = {item["names"][0]: item for item in mapping}
    for name, field in named:
        path = (*above, name)
        if name not in found:
            found[name] = {"field-id": field_id(path, field.type), "names": [name]}
        if parts := parts_of(field.type):
            fields = with_names_of_files(found[name].get("fields", ()), parts, path)
            found[name] = {**found[name], "fields": fields}
    return list(found.values())


def name_mapping(fields: Fields) -> list[Mapped]:
    """The ids of an Iceberg schema's fields by the names that files have."""
    return [_mapped(field["name"], field["id"], field["type"]) for field in fields]


def _mapped(name: str, number: int, kind: IcebergType) -> Mapped:
    found: Mapped = {"field-id": number, "names": [name]}
    if isinstance(kind, dict):
        found["fields"] = (
            name_mapping(kind["fields"])
            if kind["type"] == "struct"
            else [_mapped(p, kind[f"{p}-id"], kind[p]) for p in _PARTS if p in kind]
        )
    return found


def joined_mappings(first: Iterable[Mapped], second: Iterable[Mapped]) -> list[Mapped]:
    """All names of two mappings; the first decides on the ids of those that both have."""
    found = {item["names"][0]: item for item in first}
    for item in second:
        name = item["names"][0]
        known, fields = found.setdefault(name, item), item.get("fields", ())
        if fields:
            found[name] = {**known, "fields": joined_mappings(known.get("fields", ()), fields)}
    return list(found.values())


def parse_mapping(text: Any, last: int) -> list[Mapped]:
    """Read a mapping that this library wrote, with ids up to `last`; any other one is empty."""
    try:
        found: list[Mapped] = parse_json(text.encode(), "it")
        _check_mapping(found, last)
    except (*DAMAGE, LookupError, FormatError):
        return []
    return found


def _check_mapping(mapping: Iterable[Mapped], last: int) -> None:
    for item in mapping:
        [name], number = item["names"], item["field-id"]
        if not (isinstance(name, str) and isinstance(number, int) and number <= last):
            raise ValueError("another program wrote this name mapping")
        _check_mapping(item.get("fields", ()), last)


def paths_of(fields: Fields) -> dict[str, int]:
    """The ids of all fields of a schema, nested ones too, by the paths that readers look up."""
    return {path: int(item["field-id"]) for path, item in _with_paths(name_mapping(fields))}


def has_twins(mapping: Iterable[Mapped]) -> bool:
    """Whether two names of a mapping have the same path or id, which readers would confuse."""
    found = [(path, item["field-id"]) for path, item in _with_paths(mapping)]
    return any(len(set(column)) < len(found) for column in zip(*found, strict=True))


def greatest_id(mapping: Iterable[Mapped]) -> int:
    """The greatest id in a mapping."""
    return max((int(item["field-id"]) for _, item in _with_paths(mapping)), default=0)


def _with_paths(mapping: Iterable[Mapped], before: str = "") -> Iterator[tuple[str, Mapped]]:
    for item in mapping:
        path = before + item["names"][0]
        yield path, item
        yield from _with_paths(item.get("fields", ()), f"{path}.")


def fields_with_keys(
    names: Iterable[str], fields: Fields, known: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], int]:
    """The partition fields of a spec, and the greatest id; a column keeps the id that it had.

    `known` is the table's metadata before.
    """
    last = known.get("last-partition-id", 999)  # ids of partition fields begin at 1000
    ids = {field["name"]: field["id"] for field in fields}
    specs = known.get("partition-specs") or ()
    before = {
        item["source-id"]: item["field-id"]
        for spec in specs
        for item in spec["fields"]
        if item["transform"] == "identity"
    }
    found: list[dict[str, Any]] = []
    taken = set(ids)
    for name in names:
        number = before.get(ids[name])
        if number is None:
            last += 1
            number = last
        said = avro_name(name)  # some readers look values up by the name that Avro has
        while said != name and said in taken:
            said += "_"
        taken.add(said)
        item = {"name": said, "transform": "identity", "source-id": ids[name], "field-id": number}
        found.append(item)
    return found, last


def usable_specs(specs: Fields, fields: Fields) -> list[Mapping[str, Any]]:
    """The specs that fit a schema: it has what they partition by, and no other column's name.

    Readers bind every spec of a table to its current columns, even one that they do not need.
    """
    ids = {field["name"]: field["id"] for field in fields}
    numbers = set(ids.values())

    def fits(item: Mapping[str, Any]) -> bool:
        source = item["source-id"]
        return source in numbers and ids.get(item["name"], source) == source

    return [spec for spec in specs if all(fits(item) for item in spec["fields"])]
