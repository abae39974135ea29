"""The log of a Delta table: what it says now, and its next version.

The parts of https://github.com/delta-io/delta/blob/master/PROTOCOL.md that tables without column
mapping and deletion vectors need. See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ktk_engine.errors import FormatError, KtkError, ObjectNotFoundError
from ktk_engine.format.field_types import check_types
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.format.parse_json import parse_json
from ktk_engine.publish.delta.checkpoint import parse_checkpoint, render_checkpoint
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

APP_ID = "dbt-ktk"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_FOLDER = "_delta_log"
_MARK = "ktk"
_MARK_BYTES = 4096

# What is needed of an action, and of which type readers take it.
_TYPES: dict[str, dict[str, type]] = {
    "add": {"path": str},
    "remove": {"path": str},
    "metaData": {"id": str, "schemaString": str, "partitionColumns": list, "format": dict},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
}

FileKey = tuple[str, str]  # a path, and its deletion vector


@dataclass
class DeltaState:
    """What a Delta log says."""

    version: int = -1  # -1 without a log
    published: int = 0  # version of the dataset that it has; 0 if none
    commit: str = ""  # id of that commit
    # active files, with deletion vectors of other writers
    files: dict[FileKey, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)  # newest metaData action
    protocol: Mapping[str, Any] = field(default_factory=dict)  # newest protocol action
    broken: str = ""  # why the log cannot be read; empty if it can

    def apply(self, action: Mapping[str, Any]) -> None:
        """Take one action into account; raises an error of any kind if it is damaged."""
        for kind, types in _TYPES.items():
            if action.get(kind) is not None:
                check_types(action[kind], types)
        for kind in ("add", "remove"):
            found = action.get(kind)
            if found is not None:
                vector = found.get("deletionVector")
                key = (found["path"], json.dumps(vector, sort_keys=True) if vector else "")
                self.files.pop(key, None)
                if kind == "add":
                    self.files[key] = vector
        self.metadata = action.get("metaData") or self.metadata
        self.protocol = action.get("protocol") or self.protocol
        transaction = action.get("txn")
        if transaction and transaction["appId"] == APP_ID:
            self.published = int(transaction["version"])


def log_folder(uuid: str) -> str:
    """Key of the folder with a dataset's Delta log."""
    return join_key(uuid, _FOLDER)


def entry_key(uuid: str, version: int) -> str:
    """Key of one version of a dataset's Delta log."""
    return join_key(log_folder(uuid), f"{version:020d}.json")


def newest_mark(store: ObjectStore, uuid: str) -> tuple[int, str]:
    """The dataset version and commit of the newest entry; reads its first line only.

    Zero and an empty text if there is no entry, or another program wrote it.
    """
    versions = _versions(store.list_names(log_folder(uuid)), _ENTRY)
    if not versions:
        return 0, ""
    try:
        return _mark(_head(store, uuid, versions[-1]))
    except ObjectNotFoundError:
        return 0, ""  # the log has just been deleted


def read_log(store: ObjectStore, uuid: str) -> DeltaState:
    """Read a Delta log of any writer; raises a `StoreError` if the store could not be read."""
    names = store.list_names(log_folder(uuid))
    entries, checkpoints = _versions(names, _ENTRY), _versions(names, _CHECKPOINT)
    state = DeltaState()
    try:
        start = 0
        if checkpoints:
            start = checkpoints[-1] + 1
            data = store.get(_checkpoint_key(uuid, checkpoints[-1]))
            for action in parse_checkpoint(data):
                state.apply(action)
        newest = [version for version in entries if version >= start]
        if newest != list(range(start, start + len(newest))) or not (entries or checkpoints):
            state.broken = "entries are missing" if names else ""
        first = head = b""
        for version in newest:
            data = store.get(entry_key(uuid, version))
            for line in filter(bytes.strip, data.splitlines()):
                state.apply(parse_json(line, "it"))
            head = _first_line(data)
            first = first or head
        if entries and not newest:
            head = _head(store, uuid, entries[-1])
        if len(newest) > 1 and _head(store, uuid, newest[0]) != first:
            return read_log(store, uuid)  # it was deleted and started again meanwhile
        for name in ("readerFeatures", "writerFeatures"):
            set(state.protocol.get(name) or ())
        if not state.broken:
            _, state.commit = _mark(head)
    except ObjectNotFoundError as error:
        state.broken = str(error)
    except (*DAMAGE, LookupError, FormatError) as error:
        if isinstance(error, KtkError) and not isinstance(error, FormatError):
            raise
        state.broken = f"an entry or checkpoint is damaged: {error}"
    if (entries or checkpoints) and not (state.metadata and state.protocol) and not state.broken:
        state.broken = "it does not name its table"
    version = max([-1, *entries, *checkpoints])
    if state.broken:
        return DeltaState(version, broken=state.broken)
    state.version = version
    return state


def still_ends_with(store: ObjectStore, uuid: str, present: DeltaState) -> bool:
    """Whether the newest entry that `read_log` found is still there, and is still the same."""
    try:
        _, commit = _mark(_head(store, uuid, present.version))
    except ObjectNotFoundError:
        return store.exists(_checkpoint_key(uuid, present.version))
    return commit == present.commit


def put_entry(
    store: ObjectStore, uuid: str, version: int, mark: tuple[int, str], actions: Iterable[Any]
) -> None:
    """Write one version of a Delta log; raises an `ObjectExistsError` if the version exists.

    `mark` is the dataset's version and the id of its commit. The first action names the writer.
    """
    first, *others = actions
    first["commitInfo"] |= {_MARK: {"version": mark[0], "commit": mark[1]}}
    lines = [json.dumps(item, ensure_ascii=False) for item in (first, *others)]
    store.put_if_absent(entry_key(uuid, version), "\n".join(lines).encode() + b"\n")


def put_checkpoint(
    store: ObjectStore, uuid: str, version: int, actions: list[Mapping[str, Any]]
) -> None:
    """Write the whole state of one version, so that readers need no earlier entry."""
    store.put(_checkpoint_key(uuid, version), render_checkpoint(actions))
    last = json.dumps({"version": version, "size": len(actions)}).encode()
    store.put(join_key(log_folder(uuid), "_last_checkpoint"), last)


def delete_log(store: ObjectStore, uuid: str) -> bool:
    """Delete a Delta log; returns whether there was one.

    What readers start from goes first, so that none sees an old state.
    """
    folder = log_folder(uuid)
    names = store.list_names(folder)
    if not names:
        return False
    whole = [n for n in names if not _ENTRY.fullmatch(n) and not n.endswith("/")]
    first = [name for name in names if _ENTRY.fullmatch(name)][:1]
    store.delete([join_key(folder, name) for name in (*whole, *first)])
    store.delete([info.key for info in store.list(f"{folder}/")])
    return True


def _checkpoint_key(uuid: str, version: int) -> str:
    return join_key(log_folder(uuid), f"{version:020d}.checkpoint.parquet")


def _versions(names: Iterable[str], pattern: re.Pattern[str]) -> list[int]:
    return sorted(int(found[1]) for name in names if (found := pattern.fullmatch(name)))


def _head(store: ObjectStore, uuid: str, version: int) -> bytes:
    """The first line of an entry, which says who wrote it."""
    return _first_line(store.get_range(entry_key(uuid, version), 0, _MARK_BYTES))


def _first_line(data: bytes) -> bytes:
    return data[:_MARK_BYTES].partition(b"\n")[0]


def _mark(line: bytes) -> tuple[int, str]:
    try:
        mark = json.loads(line)["commitInfo"][_MARK]
        return int(mark["version"]), str(mark["commit"])
    except DAMAGE:
        return 0, ""  # written by another program
