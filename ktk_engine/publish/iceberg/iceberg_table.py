"""One version of a dataset in Iceberg's terms: columns, partition spec, settings.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ktk_engine.publish.form import Wanted
from ktk_engine.publish.iceberg.field_ids import FieldIds, name_mapping
from ktk_engine.publish.iceberg.file_entries import address
from ktk_engine.publish.iceberg.iceberg_metadata import SNAPSHOT, IcebergState, fields_with_keys
from ktk_engine.publish.iceberg.iceberg_schema import iceberg_columns
from ktk_engine.publish.shared_cells import check_cells

# This library's clean-up deletes files: it knows of versions that Iceberg's does not.
_OUR_FILES = {"gc.enabled": "false"}


def kept_snapshots(present: IcebergState, wanted: Wanted) -> list[Mapping[str, Any]]:
    """The snapshots that stay: those that this library published and whose files still exist."""
    if present.metadata.get("location") != address(wanted.store, wanted.snapshot.uuid):
        return []  # it was moved
    return [
        item
        for item in present.snapshots
        if (key := item["summary"].get(SNAPSHOT)) and key not in wanted.expired_keys
    ]


@dataclass(frozen=True)
class IcebergTable:
    """One version of a dataset, in Iceberg's terms."""

    wanted: Wanted
    fields: list[dict[str, Any]]  # its columns, with ids
    last_column: int  # greatest id of a column
    spec: list[dict[str, Any]]  # fields of its partition spec
    last_partition: int  # greatest id of a partition field
    is_new: bool  # it needs a snapshot of its own
    continues: bool  # manifests of the snapshot before may stay

    @classmethod
    def of(cls, wanted: Wanted, present: IcebergState) -> IcebergTable:
        """Describe a dataset; raises a `PublishError` if Iceberg readers would see other rows."""
        check_cells(wanted.snapshot)
        known, columns = present.metadata, iceberg_columns(wanted.snapshot)
        ids = FieldIds(known.get("last-column-id", 0))
        fields = ids.of_columns(columns, present.schema.get("fields", ()))
        keys, last = wanted.snapshot.partition_keys, known.get("last-partition-id", 999)
        spec, last = fields_with_keys(keys, fields, known, last)
        is_here = known.get("location") == address(wanted.store, wanted.snapshot.uuid)
        is_new = present.mark != wanted.mark or not is_here
        same = is_here and spec == present.spec.get("fields") and not ids.retyped
        return cls(wanted, fields, ids.last, spec, last, is_new, same and bool(present.published))

    @cached_property
    def properties(self) -> dict[str, str]:
        """Table properties that readers need or may use."""
        comment = self.wanted.snapshot.comments.relation
        mapping = json.dumps(name_mapping(self.fields), ensure_ascii=False)
        said = {**_OUR_FILES, "schema.name-mapping.default": mapping}
        return {**said, **({"comment": comment} if comment else {})}

    def says(self, metadata: Mapping[str, Any]) -> bool:
        """Whether metadata has its columns and settings, and all the snapshots that stay."""
        state = IcebergState(0, metadata)
        return (
            metadata.get("properties") == self.properties
            and state.schema.get("fields") == self.fields
            and state.spec.get("fields") == self.spec
            and kept_snapshots(state, self.wanted) == state.snapshots
        )
