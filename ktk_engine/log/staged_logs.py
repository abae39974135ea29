"""A store whose logs have entries that only a staged run sees.

See docs/design/files-and-commits.md, Staged runs.
"""

from __future__ import annotations

from ktk_engine.errors import StoreError
from ktk_engine.log.scope import FOLDER, LogScope
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.overlay_store import OverlayStore

# Parts of a snapshot's key below `FOLDER`: kind, name, `snapshots`, commit, and its own name.
_SNAPSHOT_DEPTH = 5


class StagedLogs(OverlayStore):
    """Holds log entries, snapshots and views of staged commits in memory.

    From the first entry of a scope on, the scope is seen as it was then, whatever others commit.
    `StagedStore` knows what was committed, and what happens to it.
    """

    def __init__(self, beneath: ObjectStore) -> None:
        super().__init__(beneath, self._is_of_a_commit)
        self.snapshot_cache: dict[str, Snapshot] = {}
        self._is_open, self._is_over = True, False

    @property
    def is_staged(self) -> bool:
        """Whether commits are staged; after that, everyone sees them."""
        return self._is_open

    def staged_since(self, scope: LogScope) -> int:
        """The first version of a log that only the run sees; 0 if there is none."""
        folder = scope.entry_key(0).rpartition("/")[0]
        first = self._cut.get(folder, "")
        return int(first.partition(".")[0]) if first else 0

    def put_if_absent(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put_if_absent`; a staged entry hides later ones of other writers."""
        is_entry = key.startswith(f"{FOLDER}/") and key.split("/")[3:4] == ["log"]
        if not is_entry:
            super().put_if_absent(key, data)
            return
        with self._lock:
            if self._is_over:
                raise StoreError("the staged run has ended", nothing_written=True)
            super().put_if_absent(key, data)
            if self._is_open:
                self.cut(key)

    def _end(self, is_over: bool) -> None:
        """Stop holding objects back, and forget them; `is_over` also refuses new entries."""
        with self._lock:
            self._is_open, self._is_over = False, is_over
            self.snapshot_cache.clear()
            self.forget()

    def _is_of_a_commit(self, key: str) -> bool:
        """Whether an object is part of a commit, of its publishing or of a view."""
        folder, *parts = key.split("/")
        if not self._is_open or folder != FOLDER:
            return self._is_open and not parts  # a published document
        if parts[2:3] == ["snapshots"] and len(parts) > _SNAPSHOT_DEPTH:
            return False  # a segment of an index, which nothing refers to yet
        return parts[0] == "view" or (parts[0] in ("cube", "dataset") and parts[2:3] != ["intent"])
