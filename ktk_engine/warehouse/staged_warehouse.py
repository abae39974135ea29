"""The warehouse of a staged run, whose changes are invisible to others until its end."""

from __future__ import annotations

from ktk_engine.errors import ConfigurationError, KtkError
from ktk_engine.log.commit import Committed
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.messages import Remedy
from ktk_engine.publish.publish_stages import discard_stages, publish_stages
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.warehouse import Warehouse
from ktk_engine.types.identifier import Identifier
from ktk_engine.warehouse.name_claim import check_staged_names


class StagedWarehouse(Warehouse):
    """The schemas under one root, each with a stage, until they are published or discarded.

    Stores opened here see staged changes. Safe between threads; one of them ends it when all others
    are done.
    """

    _is_open = True

    @property
    def published(self) -> Warehouse:
        """See `Warehouse.published`."""
        return Warehouse(self._url, self.options, self.trust)

    @property
    def is_open(self) -> bool:
        """Whether writes are staged; after the end they are visible to all."""
        return self._is_open

    @property
    def has_commits(self) -> bool:
        """Whether there is anything to publish or discard."""
        return any(stage.has_changes for stage in self._stages)

    def publish(self) -> list[Committed]:
        """Publish what was staged; see `publish_stages`.

        Raises a `CommitConflictError`, for instance if another relation has taken a name meanwhile.
        """
        self._is_open = False
        try:
            for stage in self._stages:
                check_staged_names(stage)
        except KtkError:
            discard_stages(self._stages)
            raise
        return publish_stages(self._stages)

    def discard(self, is_over: bool = False) -> None:
        """Discard what was staged, and delete its files; see `discard_stages`."""
        self._is_open = False
        discard_stages(self._stages, is_over)

    def drop_schema(self, name: str) -> None:
        """Raise a `ConfigurationError` in a staged run, since it could not be undone."""
        if self._is_open:
            raise ConfigurationError(
                f"Schema {name} cannot be dropped in a staged run: its files would be gone "
                "even if the run is discarded. Nothing was deleted. Drop it ",
                Remedy("unstaged"),
                ".",
            )
        super().drop_schema(name)

    @property
    def _stages(self) -> list[StagedStore]:
        return [store for store in self._stores.values() if isinstance(store, StagedStore)]

    def _open(self, name: str) -> ObjectStore:
        key = Identifier(name)
        if key in self._stores or not self._is_open:
            return super()._open(name)
        return self._stores.setdefault(key, StagedStore(self._opened(f"{self._url}/{name}")))
