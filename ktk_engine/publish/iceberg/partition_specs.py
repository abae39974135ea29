"""Partition specs: that of a dataset, and the earlier ones that readers can still use.

Readers bind every spec of a table to its current columns, whatever they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ktk_engine.publish.iceberg.avro_schemas import avro_name

Fields = Iterable[Mapping[str, Any]]


def fields_with_keys(
    names: Iterable[str], fields: Fields, known: Mapping[str, Any], last: int
) -> tuple[list[dict[str, Any]], int]:
    """The partition fields of a spec, and the greatest id; a column keeps the id that it had.

    `known` is the table's metadata before, and `last` the greatest id ever given to a partition
    field.
    """
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
    """The specs that fit a schema: it has what they partition by, and no other column's name."""
    ids = {field["name"]: field["id"] for field in fields}
    numbers = set(ids.values())

    def fits(item: Mapping[str, Any]) -> bool:
        source = item["source-id"]
        return source in numbers and ids.get(item["name"], source) == source

    return [spec for spec in specs if all(fits(item) for item in spec["fields"])]
