"""Secondary indices, of which only the row groups that can matter are read."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.format.file_digest import FileDigest
from ktk_engine.format.index_file import IndexGroups
from ktk_engine.format.stored_index import get_index, get_index_groups
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.condition import Condition
from ktk_engine.types.may_match import may_match

_LARGEST = 256 * 1024 * 1024


@dataclass
class IndexCache:
    """Parts of indices by key and row groups; the least recently used ones go when too large.

    An index file never changes under its key.
    """

    _footers: dict[str, IndexGroups] = field(default_factory=dict)
    _parts: OrderedDict[tuple[str, tuple[int, ...]], pa.Table] = field(default_factory=OrderedDict)

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
        if key not in self._footers:
            self._footers[key] = get_index_groups(store, key, digest)
        footer = self._footers[key]
        everything = tuple(range(len(footer.rows)))
        if (key, everything) in self._parts:
            return self._part(store, key, digest, everything, whole=True)
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
        table = self._parts.pop((key, groups), None)
        if table is None:
            table = get_index(store, key, digest, None if whole else groups)
        self._parts[key, groups] = table
        while len(self._parts) > 1 and sum(t.nbytes for t in self._parts.values()) > _LARGEST:
            self._parts.popitem(last=False)
        return table
