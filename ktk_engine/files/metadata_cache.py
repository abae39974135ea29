"""What planning keeps of files between queries: stored objects never change under their keys."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.may_match import may_match
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.index_segment_file import SegmentFooter, read_segment, read_segment_footer
from ktk_engine.files.stored_index import get_index, get_index_groups
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.format.index_file import IndexGroups
from ktk_engine.snapshot.index_segment import IndexSegment
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


def _segment_footers() -> ReadCache[str, SegmentFooter]:
    return ReadCache(_LARGEST_FOOTERS, lambda footer: footer.nbytes)


@dataclass(frozen=True)
class IndexCache:
    """Parts of indexes by key and row groups, in bytes; shared by all threads of its owner.

    Neither an index file nor a segment changes under its key.
    """

    _footers: ReadCache[str, IndexGroups] = field(default_factory=_footers)
    _segment_footers: ReadCache[str, SegmentFooter] = field(default_factory=_segment_footers)
    _parts: ReadCache[tuple[str, tuple[int, ...]], pa.Table] = field(default_factory=_parts)

    def read(
        self,
        store: ObjectStore,
        key: str,
        column: str,
        condition: Condition,
        digest: FileDigest | None = None,
    ) -> pa.Table:
        """The part of an index file that can hold values for a condition on its column alone.

        Raises a `FormatError` if the file is damaged or no index, and an `ObjectNotFoundError` if
        it is missing.
        """
        footer = self._footers.get(key, lambda: get_index_groups(store, key, digest))
        groups = self._groups(key, footer, column, condition)
        chosen = None if len(groups) == len(footer.rows) else groups
        return self._parts.get((key, groups), lambda: get_index(store, key, digest, chosen))

    def read_segment(
        self, store: ObjectStore, segment: IndexSegment, column: str, condition: Condition
    ) -> pa.Table:
        """The part of a segment that can hold values for a condition on its column alone.

        Files are counted from the segment's `first`. Raises a `FormatError` if the file is damaged,
        and an `ObjectNotFoundError` if it is missing.
        """
        key = segment.key
        footer = self._segment_footers.get(key, lambda: read_segment_footer(store, segment))
        groups = self._groups(key, footer.groups, column, condition)
        return self._parts.get((key, groups), lambda: read_segment(store, segment, footer, groups))

    def _groups(
        self, key: str, footer: IndexGroups, column: str, condition: Condition
    ) -> tuple[int, ...]:
        """The row groups to read: all of them if they are known or more than half may matter."""
        everything = tuple(range(len(footer.rows)))
        if self._parts.cached((key, everything)) is not None:
            return everything
        groups = _that_may_match(footer, column, condition)
        return everything if 2 * len(groups) > len(everything) else groups


@dataclass(frozen=True)
class MetadataCache:
    """Metadata of one store's files, kept as long as its owner."""

    footers: FooterCache = field(default_factory=FooterCache)  # of data files
    indices: IndexCache = field(default_factory=IndexCache)


def _that_may_match(footer: IndexGroups, column: str, condition: Condition) -> tuple[int, ...]:
    low, high = pa.table({column: footer.lows}), pa.table({column: footer.highs})
    unknown = pa.table({column: pa.nulls(len(footer.rows), pa.int64())})
    may = may_match(condition, low, high, unknown, footer.rows)
    return tuple(pc.indices_nonzero(may).to_pylist())
