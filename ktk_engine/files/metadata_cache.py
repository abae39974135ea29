"""What planning keeps of files between queries: nothing that is stored changes under its key."""

from __future__ import annotations

from dataclasses import dataclass, field

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.index_cache import IndexCache


@dataclass(frozen=True)
class MetadataCache:
    """What is known of the files of one store; kept as long as the object that asks.

    Attributes:
        footers: of data files of other writers.
        indices: secondary indices.
    """

    footers: FooterCache = field(default_factory=FooterCache)
    indices: IndexCache = field(default_factory=IndexCache)
