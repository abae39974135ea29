"""Secondary indices, of which only the row groups that can matter are read."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.may_match import may_match
from ktk_engine.files.stored_index import get_index, get_index_groups
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.format.index_file import IndexGroups
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.read_cache import ReadCache

_LARGEST = 256 * 1024 * 1024
_LARGEST_FOOTERS = 32 * 1024 * 1024


def _parts() -> ReadCache[tuple[str, tuple[int, ...]], pa.Table]:
    return ReadCache(_LARGEST, lambda table: int(table.nbytes))


def _footers() -> ReadCache[str, IndexGroups]:
    return ReadCache(
        _LARGEST_FOOTERS, lambda it: int(it.rows.nbytes + it.lows.nbytes + it.highs.nbytes)
    )


@dataclass(frozen=True)
class IndexCache:
    """Parts of indices by key and row groups, in bytes; shared by all threads of its owner.

    An index file never changes under its key.
    """

    _footers: ReadCache[str, IndexGroups] = field(default_factory=_footers)
    _parts: ReadCache[tuple[str, tuple[int, ...]], pa.Table] = field(default_factory=_parts)

    def read(
        self,
        store: ObjectStore,
        key: str,
        column: str,
        condition: Condition,
        digest: FileDigest | None = None,
    ) -> pa.Table:
        """Give the part of an index that can hold values which fulfil a condition.

        Args:
            store: where it lies.
            key: its key.
            column: name of the indexed column.
            condition: a condition on that column alone.
            digest: what was recorded of the file; None if nothing was.

        Returns:
            As `read_index` does.

        Raises:
            FormatError: the file is damaged or no index.
            ObjectNotFoundError: it is missing.
        """
        footer = self._footers.get(key, lambda: get_index_groups(store, key, digest))
        everything = tuple(range(len(footer.rows)))
        known = self._parts.known((key, everything))
        if known is not None:
            return known
        low, high = pa.table({column: footer.lows}), pa.table({column: footer.highs})
        unknown = pa.table({column: pa.nulls(len(footer.rows), pa.int64())})
        may = may_match(condition, low, high, unknown, footer.rows)
        groups = tuple(pc.indices_nonzero(may).to_pylist())
        whole = 2 * len(groups) > len(everything)
        return self._part(store, key, digest, everything if whole else groups, whole)

    def _part(
        self,
        store: ObjectStore,
        key: str,
        digest: FileDigest | None,
        groups: tuple[int, ...],
        whole: bool,
    ) -> pa.Table:
        chosen = None if whole else groups
        return self._parts.get((key, groups), lambda: get_index(store, key, digest, chosen))
