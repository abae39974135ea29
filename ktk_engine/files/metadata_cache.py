"""What planning keeps of files between queries: stored objects never change under their keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.index_cache import IndexCache


@dataclass(frozen=True)
class MetadataCache:
    """Metadata of one store's files, kept as long as its owner."""

    footers: FooterCache = field(default_factory=FooterCache)  # of other writers' data files
    indices: IndexCache = field(default_factory=IndexCache)
