"""The manifests of a new Iceberg snapshot: those that stay, and the few that a commit writes.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa

from ktk_engine.errors import FormatError
from ktk_engine.publish.iceberg.file_entries import file_entries
from ktk_engine.publish.iceberg.iceberg_metadata import Addresses, metadata_folder
from ktk_engine.publish.iceberg.manifest import (
    DELETED,
    EXISTING,
    Entry,
    Layout,
    Listed,
    NewSnapshot,
    listed,
    living_files,
    numbers,
    read_entries,
    read_list,
    render_list,
    render_manifest,
    with_numbers,
)
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.key import join_key

_NUMBER = re.compile("[0-9]{1,18}")
_LARGEST = 8_192  # files of a manifest
_MERGED = 2_048  # a manifest with more is left as it is
_IN_A_TIER = 8
_FILES, _RECORDS = "total-data-files", "total-records"  # keys of a snapshot's summary

Numbered = tuple[tuple[int, int], Entry]  # a range that contains the file's number, and the file


@dataclass
class TableFiles:
    """What a snapshot's manifest list is made of."""

    addresses: Addresses
    dataset: Snapshot  # as it is to be published
    layout: Layout
    snapshot: NewSnapshot  # for which manifests are written
    manifests: list[Listed] = field(default_factory=list)  # what the list says
    written: dict[str, bytes] = field(default_factory=dict)  # files to put before the list, by key
    added: tuple[int, int] = (0, 0)  # files and rows
    deleted: tuple[int, int] = (0, 0)  # files and rows, where known

    def __post_init__(self) -> None:
        self._name, self._lists_all = f"ktk-{uuid4().hex}", False

    def add(self, files: pa.Table) -> None:
        """Add rows of `Snapshot.files`; raises a `PublishError` if something of them is unknown."""
        some = replace(self.dataset, file_table=files)
        found = file_entries(self.addresses, some, self.layout, self.snapshot.id)
        entries = [((number, number), entry) for number, entry in found]
        self._write(entries)
        self.added = len(entries), sum(e["data_file"]["record_count"] for _, e in entries)

    def add_all(self, before: Mapping[str, str]) -> None:
        """List all files again, in place of those that a snapshot with the summary `before` has."""
        self.add(self.dataset.files)
        said = [before.get(name, "") for name in (_FILES, _RECORDS)]
        files, rows = (int(text) if _NUMBER.fullmatch(text) else 0 for text in said)
        self.deleted = files, rows
        self._lists_all = self.snapshot.parent is not None

    def carry_on(self, list_before: str, gone: pa.Table) -> None:
        """Keep the manifests of the list before, and rewrite those that name files in `gone`.

        Raises a `FormatError` if a manifest is damaged, or none names these files, and an
        `ObjectNotFoundError` if one is missing.
        """
        before = [item for item in read_list(self.addresses, list_before) if living_files(item)]
        positions = sorted(gone["position"].to_pylist())
        paths = {self.addresses.address(key) for key in gone["key"].to_pylist()}
        kept = []
        for manifest in before:
            first, last = numbers(manifest)
            at = bisect_left(positions, first)
            may_lose = at < len(positions) and positions[at] <= last
            if not (may_lose and self._rewrite(manifest, paths)):
                kept.append(manifest)
        if self.deleted[0] != len(paths):
            raise FormatError("a file that is gone is in no manifest, or in two")
        self.manifests += self._merged(kept)

    def _rewrite(self, manifest: Listed, gone: set[str]) -> bool:
        """Rewrite a manifest without the files that are gone, if it names any of them."""
        entries = self._entries(manifest)
        lost = [e for _, e in entries if e["data_file"]["file_path"] in gone]
        for entry in lost:
            entry |= {"status": DELETED, "snapshot_id": self.snapshot.id}
        if lost:
            self._write(entries)
            rows = sum(entry["data_file"]["record_count"] for entry in lost)
            self.deleted = self.deleted[0] + len(lost), self.deleted[1] + rows
        return bool(lost)

    def _merged(self, manifests: Sequence[Listed]) -> list[Listed]:
        """Merge the manifests of each tier that has too many; tiers grow by factors of 8."""
        tiers: dict[int, list[Listed]] = {}
        kept: list[Listed] = []
        for manifest in manifests:
            count = living_files(manifest)
            tier = (count.bit_length() - 1) // 3
            (kept if count > _MERGED else tiers.setdefault(tier, [])).append(manifest)
        for found in tiers.values():
            if len(found) <= _IN_A_TIER:
                kept += found
            else:
                self._write([item for manifest in found for item in self._entries(manifest)])
        return kept

    def _entries(self, manifest: Listed) -> list[Numbered]:
        """The living entries of a manifest that is to be rewritten."""
        entries = read_entries(self.addresses, manifest)
        for entry in entries:
            entry["status"] = EXISTING
        return [(numbers(manifest), entry) for entry in entries]

    def _write(self, entries: Sequence[Numbered]) -> None:
        for part in _parts(entries):
            first, last = min(low for (low, _), _ in part), max(high for (_, high), _ in part)
            name = with_numbers(f"{self._name}-{len(self.written)}", first, last)
            key, records = join_key(metadata_folder(self.dataset.uuid), name), [e for _, e in part]
            data = render_manifest(self.layout, records)
            self.written[key] = data
            path = self.addresses.address(key)
            self.manifests.append(listed(self.layout, path, data, records, self.snapshot))

    def finish(self) -> str:
        """Write the manifest list as well; returns its key."""
        key = join_key(metadata_folder(self.dataset.uuid), f"{self._name}-list.avro")
        self.written[key] = render_list(self.manifests, self.snapshot)
        return key

    @property
    def summary(self) -> dict[str, str]:
        """The summary of the snapshot."""
        rows = ("added_rows_count", "existing_rows_count")
        said = {
            "added-data-files": self.added[0],
            "added-records": self.added[1],
            "deleted-data-files": self.deleted[0],
            "deleted-records": self.deleted[1],
            _FILES: sum(living_files(item) for item in self.manifests),
            _RECORDS: sum(int(item[name]) for item in self.manifests for name in rows),
            "total-delete-files": 0,
        }
        return {"operation": self._operation, **{name: str(n) for name, n in said.items()}}

    @property
    def _operation(self) -> str:
        if self._lists_all or (self.added[0] and self.deleted[0]):
            return "overwrite"  # readers of appended rows alone must not read all as new
        return "delete" if self.deleted[0] else "append"


def _parts(entries: Sequence[Numbered]) -> Iterable[Sequence[Numbered]]:
    return (entries[at : at + _LARGEST] for at in range(0, len(entries), _LARGEST))


def named_files(addresses: Addresses, manifest_list: str) -> Iterator[str]:
    """The addresses of all files that the manifest list at an address leads to.

    Raises a `FormatError` if a manifest is damaged, and an `ObjectNotFoundError` if one is missing.
    """
    for manifest in read_list(addresses, manifest_list):
        for entry in read_entries(addresses, manifest):
            yield entry["data_file"]["file_path"]
