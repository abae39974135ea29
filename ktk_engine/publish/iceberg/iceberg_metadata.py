"""The metadata of an Iceberg table: what its newest version says, and its versions in the store.

Versions are named as in Hadoop's layout, which needs only a folder: `vN.metadata.json` and
`version-hint.text`. See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import os.path
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ktk_engine.errors import (
    FormatError,
    InvalidKeyError,
    ObjectExistsError,
    ObjectNotFoundError,
    TokenMismatchError,
)
from ktk_engine.format.field_types import check_types
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.format.parse_json import parse_json
from ktk_engine.publish.iceberg.field_ids import paths_of
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key, validate_key

# Keys of a snapshot's summary that name this library's version.
VERSION, COMMIT = "ktk.version", "ktk.commit"
SNAPSHOT, SHA256 = "ktk.snapshot", "ktk.snapshot-sha256"
SPEC = "ktk.partition-spec-id"  # which Iceberg's own fields do not tell
_TABLE, _FOLDER = "iceberg", "metadata"
_METADATA = re.compile(r"v(\d{1,18})\.metadata\.json")
_OF_CATALOGS = re.compile(r"\d+-.*\.metadata\.json")
_AVRO = re.compile(r"ktk-.*\.avro")
_HINT = "version-hint.text"
_HINTED = re.compile(rb"\s*\d{1,18}\s*")
_LOCAL = "file://"
_NUMBERS = ("last-sequence-number", "last-updated-ms", "last-column-id", "last-partition-id")
_TYPES = {"table-uuid": str, "location": str, **dict.fromkeys(_NUMBERS, int)}
_RETRIES = 10


@dataclass(frozen=True)
class IcebergState:
    """What the metadata of an Iceberg table says."""

    version: int = -1  # the newest; -1 if there is none
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of that version
    hint: int = -1  # the version that readers of the folder see; -1 if none
    broken: str = ""  # why it cannot be read; empty if it can

    @property
    def mark(self) -> tuple[int, str]:
        """The version and commit of the dataset that it has; zero and an empty text if none."""
        said = self.snapshot.get("summary", {})
        try:
            return int(said[VERSION]), str(said[COMMIT])
        except (KeyError, TypeError, ValueError):
            return 0, ""  # written by another program

    @property
    def published(self) -> int:
        """The version of the dataset that it has; 0 if none."""
        return self.mark[0]

    @property
    def snapshots(self) -> list[Mapping[str, Any]]:
        """All snapshots in the metadata."""
        return list(self.metadata.get("snapshots") or ())

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """The current snapshot; empty if there is none."""
        number = self.metadata.get("current-snapshot-id")
        return next((item for item in self.snapshots if item["snapshot-id"] == number), {})

    @property
    def schema(self) -> Mapping[str, Any]:
        """The current schema; empty if there is none."""
        number = self.metadata.get("current-schema-id")
        return next((s for s in self.metadata.get("schemas", ()) if s["schema-id"] == number), {})

    @property
    def spec(self) -> Mapping[str, Any]:
        """The current partition spec; empty if there is none."""
        number, known = self.metadata.get("default-spec-id"), self.metadata.get("partition-specs")
        return next((item for item in known or () if item["spec-id"] == number), {})


@dataclass(frozen=True)
class Addresses:
    """The addresses of a store's objects, as Iceberg's readers take them: nothing is encoded."""

    store: ObjectStore
    base: str  # ends with a slash
    location: str  # of the table

    @classmethod
    def of(cls, store: ObjectStore, uuid: str, location: object) -> Addresses:
        """The addresses for a table whose metadata name a location; None if there are none.

        They stay while the location leads to the table's folder here, by whatever links or mounts.
        Otherwise, hosts with different paths to the folder would overwrite each other's addresses.
        """
        base, folder = store.url.removesuffix("/"), table_folder(uuid)
        if not base.startswith(_LOCAL):
            return cls(store, f"{base}/", f"{base}/{folder}")
        opened, named = urllib.parse.unquote(base.removeprefix(_LOCAL)), ""
        if isinstance(location, str) and location.endswith(f"/{folder}"):
            named = location.removeprefix(_LOCAL).removesuffix(f"/{folder}")
        if not named:
            opened = os.path.realpath(opened)
        elif _is_same_folder(named, opened):
            opened = named
        # Else it was moved, or another host has another path: the one by which the store was opened
        # may be a link that all hosts share.
        base = f"{_LOCAL}{opened.removesuffix('/')}/"
        return cls(store, base, base + folder)

    def address(self, key: str) -> str:
        """Address of an object."""
        return self.base + key

    def key(self, path: str) -> str:
        """The key of an object with an address; raises a `FormatError` for one elsewhere."""
        if not path.startswith(self.base):
            raise FormatError(f"{path} is not in {self.base}")
        return path.removeprefix(self.base)

    def get(self, path: str) -> bytes:
        """Read an object at an address; see `ObjectStore.get`."""
        return self.store.get(self.key(path))


def _is_same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False  # one of them does not exist here


def table_folder(uuid: str) -> str:
    """Key of the folder of a dataset's Iceberg table, which has no data files.

    A catalog that drops the table may delete the folder.
    """
    return join_key(uuid, _TABLE)


def metadata_folder(uuid: str) -> str:
    """Key of the folder with the metadata of a dataset's Iceberg table."""
    return join_key(table_folder(uuid), _FOLDER)


def metadata_key(uuid: str, version: int) -> str:
    """Key of one version of the metadata."""
    return join_key(metadata_folder(uuid), f"v{version}.metadata.json")


def read_metadata(store: ObjectStore, uuid: str) -> IcebergState:
    """Read the newest version of a table's metadata, of any writer.

    Raises a `StoreError` if the store could not be read.
    """
    hint = _hint(store, uuid)
    version, data = _newest(store, uuid, hint)
    if version < 0:
        return IcebergState()
    try:
        state = IcebergState(version, parse_json(data, "it"), hint)
        if state.metadata["format-version"] != 2:
            said = f"its Iceberg metadata is of version {state.metadata['format-version']}"
            return IcebergState(version, hint=hint, broken=said)
        _check(state)
    except (*DAMAGE, LookupError, FormatError, InvalidKeyError) as error:
        said = f"its Iceberg metadata is damaged: {error}"
        return IcebergState(version, hint=hint, broken=said)
    return state


def _check(state: IcebergState) -> None:
    """Raise an error of any kind if something lacks that the next version is made from."""
    found = state.metadata
    if not (state.schema and state.spec):
        raise ValueError("it does not name its table")
    check_types(found, _TYPES)
    check_types({"properties": found.get("properties") or {}}, {"properties": Mapping[str, str]})
    for schema in found["schemas"]:
        check_types(schema, {"schema-id": int})
        paths_of(schema["fields"])
    for spec in found["partition-specs"]:
        check_types(spec, {"spec-id": int})
        for item in spec["fields"]:
            check_types(item, {"source-id": int, "field-id": int, "name": str, "transform": str})
    for item in state.snapshots:
        check_types(item, {"snapshot-id": int, "manifest-list": str})
        said = item.get("summary", {})
        check_types({"summary": said}, {"summary": Mapping[str, str]})
        if SNAPSHOT in said:  # it may stay
            check_types(item, {"schema-id": int, "timestamp-ms": int})
            check_types(said, {SHA256: str})
            validate_key(said[SNAPSHOT])


def _hint(store: ObjectStore, uuid: str) -> int:
    with suppress(ObjectNotFoundError):
        return _number(store.get(_hint_key(uuid)))
    return -1


def _number(hint: bytes) -> int:
    """The version that a hint names; -1 if it names none that there can be."""
    return int(hint) if _HINTED.fullmatch(hint) else -1


def _hint_key(uuid: str) -> str:
    return join_key(metadata_folder(uuid), _HINT)


def _newest(store: ObjectStore, uuid: str, hint: int) -> tuple[int, bytes]:
    """The newest version and its content; the hint may be behind, or gone."""
    found = _found(store, uuid, hint) if hint >= 0 else None
    if found is None:
        hint = max(_versions(store.list_names(metadata_folder(uuid))), default=-1)
        found = b"" if hint < 0 else _found(store, uuid, hint)
    while hint >= 0 and store.exists(metadata_key(uuid, hint + 1)):
        hint += 1
        found = _found(store, uuid, hint)
    return hint, found or b""


def _found(store: ObjectStore, uuid: str, version: int) -> bytes | None:
    try:
        return store.get(metadata_key(uuid, version))
    except ObjectNotFoundError:
        return None  # deleted meanwhile


def _versions(names: Iterable[str]) -> list[int]:
    return [int(found[1]) for name in names if (found := _METADATA.fullmatch(name))]


def put_hint(store: ObjectStore, uuid: str, version: int) -> None:
    """Let readers of the folder see a version, unless they see a newer one."""
    for _ in range(_RETRIES):
        if _swap_hint(store, uuid, version):
            break
    if not store.exists(metadata_key(uuid, version)):
        store.delete([_hint_key(uuid)])  # publishing was just stopped


def _swap_hint(store: ObjectStore, uuid: str, version: int) -> bool:
    """Try once; returns whether the hint is at the version, or at a newer one."""
    key, data = _hint_key(uuid), str(version).encode()
    try:
        known, token = store.get_with_token(key)
        newer = _number(known)
        if newer < version or not store.exists(metadata_key(uuid, newer)):
            store.replace(key, data, token)
    except TokenMismatchError:
        return False
    except ObjectNotFoundError:
        try:
            store.put_if_absent(key, data)
        except ObjectExistsError:
            return False
    return True


def names_of_catalogs(store: ObjectStore, uuid: str) -> list[str]:
    """Metadata files that another program wrote for a catalog."""
    names = store.list_names(metadata_folder(uuid))
    return [name for name in names if _OF_CATALOGS.fullmatch(name)]


def delete_metadata(store: ObjectStore, uuid: str) -> bool:
    """Delete the metadata that this library wrote; returns whether there was any.

    The newest version goes last, so that no older one becomes visible.
    """
    folder = metadata_folder(uuid)
    names = store.list_names(folder)
    versions = sorted(
        (int(found[1]), name) for name in names if (found := _METADATA.fullmatch(name))
    )
    others = [name for name in names if _AVRO.fullmatch(name)]
    first = [_HINT] if _HINT in names else []
    first += [name for _, name in versions[:-1]]
    last = [name for _, name in versions[-1:]] + others
    for some in (first, last):
        store.delete([join_key(folder, name) for name in some])
    return bool(first or last)


def is_of_table(name: str) -> bool:
    """Whether a file in the folder is a version or manifest that this library may have made."""
    return bool(_METADATA.fullmatch(name) or _AVRO.fullmatch(name))
