"""Scopes: which datasets share a log, and where a scope keeps its records.

See docs/design/files-and-commits.md, Scopes.
"""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass

from ktk_engine.cube.dataset_uuid import dataset_uuid, is_in_cube, split_uuid
from ktk_engine.store.key import join_key, validate_uuid

FOLDER = ".ktk"


@dataclass(frozen=True)
class LogScope:
    """A cube with all its datasets, or one plain dataset: what one log entry can change."""

    kind: str
    name: str  # the cube's uuid prefix, or the dataset's uuid

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def cube(self) -> str:
        """The cube's name; empty for a plain table."""
        return self.name if self.kind == "cube" else ""

    @property
    def folder(self) -> str:
        """Key of the folder that holds the scope's records."""
        return join_key(FOLDER, self.kind, self.name)

    def entry_key(self, version: int) -> str:
        """Key of a log entry; twenty digits, so that names sort by version."""
        return join_key(self.folder, "log", f"{version:020d}.json")

    @property
    def name_key(self) -> str:
        """Key of the claim on its name, whatever the letter case."""
        return join_key(FOLDER, "name", self.name.lower())

    def intent_key(self, commit: str) -> str:
        """Key of a writer's note that it is alive."""
        return join_key(self.folder, "intent", f"{commit}.json")

    def published_key(self, uuid: str) -> str:
        """Key of the mark that a dataset's document was published at least once."""
        return join_key(self.folder, "published", uuid)

    def computed_key(self, uuid: str) -> str:
        """Key of the note of what a dataset was computed from."""
        return join_key(self.folder, "computed", f"{uuid}.json")

    def snapshot_key(self, commit: str, uuid: str, attempt: int = 0, segment: int = 0) -> str:
        """Key of a dataset's snapshot or one of its segments; each attempt writes other files."""
        # No uuid has a dot.
        suffix = f".{attempt}" if attempt or segment else ""
        suffix += f".{segment}" if segment else ""
        return join_key(self.folder, "snapshots", commit, f"{uuid}{suffix}.parquet")

    def segment_folder(self, commit: str) -> str:
        """Key of the folder with a commit's index segments, next to its snapshots."""
        return join_key(self.folder, "snapshots", commit, "segments")

    def owns(self, uuid: str) -> bool:
        """Whether a dataset's commits are in this scope's log."""
        return scope_of(uuid) == self

    def dataset_id(self, uuid: str) -> str:
        """A dataset's name within the scope: the part after the cube's prefix."""
        return split_uuid(uuid)[1] if self.cube else uuid

    def uuid_of(self, dataset_id: str) -> str:
        """A dataset's uuid, from its name within the scope."""
        return dataset_uuid(self.cube, dataset_id)


def cube_scope(prefix: str) -> LogScope:
    """Scope of a cube by its uuid prefix."""
    return LogScope("cube", validate_uuid(prefix))


def scope_of(uuid: str) -> LogScope:
    """The scope of a dataset: its cube's if its uuid is `<prefix>++<id>`, else its own."""
    cube, _ = split_uuid(validate_uuid(uuid))
    return LogScope("cube", cube) if is_in_cube(uuid) else LogScope("dataset", uuid)


def new_commit_id() -> str:
    """Make the id of one write: 32 hexadecimal digits, never used before."""
    return uuids.uuid4().hex
