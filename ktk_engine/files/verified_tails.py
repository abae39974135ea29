"""Verifies the footers of data files that another reader than pyarrow is about to read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from ktk_engine.errors import ObjectNotFoundError
from ktk_engine.format.file_digest import FileDigest, missing, read_tail
from ktk_engine.store.interface import ObjectStore

_THREADS = 16
_MOST = 200_000


@dataclass(frozen=True)
class VerifiedTails:
    """Remembers verified files; shared by all queries of a store object.

    A data file never changes under its key, so once is enough. Threads share the set without a
    lock: a file that two of them verify at the same time is verified twice.
    """

    _known: set[str] = field(default_factory=set)

    def verify(
        self, store: ObjectStore, keys: Sequence[str], digests: Sequence[FileDigest | None]
    ) -> None:
        """Verify the footers of files that were not verified yet, in parallel.

        Raises a `FormatError` if one is damaged, and an `ObjectNotFoundError` if one is missing.
        """
        wanted = [
            (key, digest)
            for key, digest in zip(keys, digests, strict=True)
            if digest is not None and key not in self._known
        ]
        if not wanted:
            return
        with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
            list(pool.map(partial(_verify, store), *zip(*wanted, strict=True)))
        if len(self._known) > _MOST:
            self._known.clear()
        self._known.update(key for key, _ in wanted)


def _verify(store: ObjectStore, key: str, digest: FileDigest) -> None:
    try:
        read_tail(store, key, digest)
    except ObjectNotFoundError as error:
        raise missing(store, key) from error
