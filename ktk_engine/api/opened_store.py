"""What cubes, tables and queries need of the store that they come from."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.formatting import parse_size
from ktk_engine.plan.open_relation import open_relation
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.progress import Progress
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.local.answer import LocalEngine
    from ktk_engine.spark.read.scan import Scanner


class OpenedStore:
    """An object store, a cache of its metadata, and how versions in it are opened.

    Cubes, tables and queries hold one; `Store` is one that gives them.

    Attributes:
        url: its address.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._cache = MetadataCache()
        self._lock = threading.Lock()
        self._made_scratch: Path | None = None

    def __reduce__(self) -> NoReturn:
        """Refuse: settings of an object store may hold secrets, which belong in no pickle."""
        raise TypeError(
            "A store, and what was opened in it, cannot be pickled. Pass the address and the "
            f"version to the other process, and open it there: Store({self.url!r}). Queries can."
        )

    @property
    def url(self) -> str:
        """The store's address."""
        return self._store.url

    def _load_cube(
        self,
        name: str,
        version: int | str | None,
        timestamp: date | str | None,
        specification: CubeSpecification | None = None,
    ) -> LoadedCube:
        """Load a cube at a version; see `Store.cube`."""
        store, cache = self._store, self._cache
        found = open_relation(store, name, version, timestamp, cache, specification, "cube")
        assert isinstance(found, LoadedCube)
        return found

    def _load_table(
        self, name: str, version: int | str | None, timestamp: date | str | None
    ) -> LoadedTable:
        """Load a table at a version; see `Store.table`."""
        store, cache = self._store, self._cache
        found = open_relation(store, name, version, timestamp, cache, kind="table")
        assert isinstance(found, LoadedTable)
        return found

    @property
    def _scratch(self) -> Path:
        """Folder for manifests, removed at the end of the process."""
        from ktk_engine.spark.session.scratch import make_scratch_folder

        with self._lock:
            if self._made_scratch is None:
                self._made_scratch = make_scratch_folder()
            return self._made_scratch

    def _scanner(self, session: SparkSession | None) -> Scanner:
        """What reads this store's files in a new session over a session's context."""
        from ktk_engine.spark.read.scan import Scanner
        from ktk_engine.spark.session.connect import any_session
        from ktk_engine.spark.session.session import session_for_frames
        from ktk_engine.spark.session.spark_job import spark_job

        with spark_job():  # a server may have ended the session
            own = any_session() if session is None else session_for_frames(session)
        return Scanner(own, self._store, self._scratch, self._cache.footers)

    def _engine(
        self, store: ObjectStore, memory_limit: int | str | None, progress: Progress | None = None
    ) -> LocalEngine:
        """What answers in this process; `store` is that of the state which is read."""
        from ktk_engine.local.answer import LocalEngine
        from ktk_engine.local.join_run import default_memory_limit

        limit = default_memory_limit() if memory_limit is None else memory_limit
        limit = parse_size(limit) if isinstance(limit, str) else limit
        return LocalEngine(store, self._cache.footers, limit, progress=progress)
