"""What planning keeps of files between queries: nothing that is stored changes under its key."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa

from ktk_engine.format.index_file import read_index
from ktk_engine.plan.footers import FooterCache
from ktk_engine.store.interface import ObjectStore

_LARGEST = 256 * 1024 * 1024


@dataclass
class IndexCache:
    """Secondary indices by key; the least recently used ones go when they grow too large."""

    _tables: OrderedDict[str, pa.Table] = field(default_factory=OrderedDict)

    def read(self, store: ObjectStore, key: str) -> pa.Table:
        """Give an index as `read_index` does.

        Args:
            store: where it lies.
            key: its key.
        """
        table = self._tables.pop(key, None)
        if table is None:
            table = read_index(store.get(key))
        self._tables[key] = table
        while len(self._tables) > 1 and sum(t.nbytes for t in self._tables.values()) > _LARGEST:
            self._tables.popitem(last=False)
        return table


@dataclass(frozen=True)
class KnownFiles:
    """What is known of the files of one store; kept as long as the object that asks.

    Attributes:
        footers: of data files of other writers.
        indices: secondary indices.
    """

    footers: FooterCache = field(default_factory=FooterCache)
    indices: IndexCache = field(default_factory=IndexCache)
