"""One version of a dataset in Iceberg's terms: columns, partition spec, settings.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ktk_engine.errors import PublishError
from ktk_engine.publish.form import Wanted
from ktk_engine.publish.iceberg.field_ids import (
    Mapped,
    fields_with_keys,
    greatest_id,
    has_twins,
    joined_mappings,
    name_mapping,
    parse_mapping,
    paths_of,
    plain_types,
    usable_specs,
    widened,
    with_names_of_files,
)
from ktk_engine.publish.iceberg.iceberg_metadata import SNAPSHOT, SPEC, Addresses, IcebergState
from ktk_engine.publish.iceberg.iceberg_schema import iceberg_columns
from ktk_engine.publish.shared_cells import check_cells
from ktk_engine.publish.stored_types import schemas_in_use

# This library's clean-up deletes files: it knows of versions that Iceberg's does not.
_OUR_FILES = {"gc.enabled": "false", "write.metadata.delete-after-commit.enabled": "false"}
_MAPPING = "schema.name-mapping.default"


def addresses_of(wanted: Wanted, present: IcebergState) -> Addresses:
    """The addresses that a dataset's metadata have, or are to have; see `Addresses.of`."""
    location = present.metadata.get("location")
    return Addresses.of(wanted.store, wanted.snapshot.uuid, location)


def kept_snapshots(
    wanted: Wanted,
    present: IcebergState,
    addresses: Addresses,
    fields: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """The snapshots that stay: all that readers can still use, as this library published them.

    Their files exist, and readers can bind their partition specs to the columns `fields`. The one
    mapping of the table gives names in files the ids that their schemas have.
    """
    known = present.metadata
    if known.get("location") != addresses.location:
        return []  # it was moved
    specs = {str(s["spec-id"]) for s in usable_specs(known.get("partition-specs") or (), fields)}
    schemas = {schema["schema-id"]: schema["fields"] for schema in known.get("schemas") or ()}
    ids, kept = paths_of(fields), []
    for item in reversed(present.snapshots):
        said, columns = item.get("summary", {}), schemas.get(item.get("schema-id"))
        key = said.get(SNAPSHOT)
        if not key or key in wanted.expired_keys or said.get(SPEC) not in specs or columns is None:
            continue
        found = paths_of(columns)
        if all(ids.get(path, number) == number for path, number in found.items()):
            ids.update(found)
            kept.append(item)
    return kept[::-1]


@dataclass(frozen=True)
class IcebergTable:
    """One version of a dataset, in Iceberg's terms."""

    wanted: Wanted
    addresses: Addresses
    fields: list[dict[str, Any]]  # its columns, with ids
    spec: list[dict[str, Any]]  # fields of its partition spec
    last_partition: int  # greatest id of a partition field
    mapping: list[Mapped]  # ids by the names that files have
    snapshots: list[Mapping[str, Any]]  # earlier ones that stay
    is_new: bool  # it needs a snapshot of its own
    continues: bool  # manifests of the snapshot before may stay

    @classmethod
    def of(cls, wanted: Wanted, present: IcebergState) -> IcebergTable:
        """Describe a dataset; raises a `PublishError` if Iceberg readers would see other rows."""
        check_cells(wanted.snapshot)
        known, files = present.metadata, schemas_in_use(wanted.snapshot)
        schemas = _in_order(known, present.schema)
        before = plain_types(field for schema in schemas for field in schema["fields"])
        fields = widened(iceberg_columns(wanted.snapshot, files), before)
        retyped = any(
            before.get(number, kind) != kind for number, kind in plain_types(fields).items()
        )
        spec, last = fields_with_keys(wanted.snapshot.partition_keys, fields, known)
        addresses = addresses_of(wanted, present)
        snapshots = kept_snapshots(wanted, present, addresses, fields)
        mapping = _with_earlier(name_mapping(fields), snapshots, known, schemas)
        if has_twins(mapping):
            snapshots, mapping = [], name_mapping(fields)
        for stored in files:
            mapping = with_names_of_files(mapping, ((field.name, field) for field in stored))
        if has_twins(mapping):
            raise PublishError(
                "two of its columns or fields have the same field id, which follows from the name; "
                "one of them may be in files alone. Rename one"
            )
        is_here = known.get("location") == addresses.location
        is_new = present.mark != wanted.mark or present.snapshot not in snapshots
        same = is_here and spec == present.spec.get("fields") and not retyped
        continues = same and bool(present.published)
        return cls(wanted, addresses, fields, spec, last, mapping, snapshots, is_new, continues)

    @property
    def last_column(self) -> int:
        """The greatest id of a column or field, also of those that only files still have."""
        return greatest_id(self.mapping)

    @cached_property
    def properties(self) -> dict[str, str]:
        """Table properties that readers need or may use."""
        comment = self.wanted.snapshot.comments.relation
        said = {**_OUR_FILES, _MAPPING: json.dumps(self.mapping, ensure_ascii=False)}
        return {**said, **({"comment": comment} if comment else {})}

    def says(self, present: IcebergState) -> bool:
        """Whether metadata has its columns and settings, and only the snapshots that stay."""
        return (
            present.metadata.get("properties") == self.properties
            and present.schema.get("fields") == self.fields
            and present.spec.get("fields") == self.spec
            and present.snapshots == self.snapshots
        )


def _with_earlier(
    mapping: list[Mapped],
    snapshots: Sequence[Mapping[str, Any]],
    known: Mapping[str, Any],
    schemas: Sequence[Mapping[str, Any]],
) -> list[Mapped]:
    """Add the names that files of earlier snapshots may have to a mapping."""
    if not snapshots:
        return mapping
    kept = {item["schema-id"] for item in snapshots}
    for schema in reversed(schemas):
        if schema["schema-id"] in kept:
            mapping = joined_mappings(mapping, name_mapping(schema["fields"]))
    said = (known.get("properties") or {}).get(_MAPPING)
    return joined_mappings(mapping, parse_mapping(said, known["last-column-id"]))


def _in_order(known: Mapping[str, Any], current: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas of a table's metadata, the current one last."""
    return [
        *(s for s in known.get("schemas") or () if s != current),
        *([current] if current else ()),
    ]
