"""Comments on a relation and its columns, in a dataset's document or a view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

# Stored in Kartothek's user metadata, which Kartothek keeps when it writes.
RELATION_KEY = "ktk_comment"
COLUMNS_KEY = "ktk_column_comments"


@dataclass(frozen=True)
class Comments:
    """Comments on a relation; any text."""

    relation: str = ""  # empty: none
    # column -> text, without columns that have no comment
    columns: Mapping[str, str] = field(default_factory=dict)

    def only(self, columns: Collection[str]) -> Comments:
        """Drop the comments on other columns."""
        kept = {name: text for name, text in self.columns.items() if name in columns}
        return Comments(self.relation, kept)

    def as_metadata(self) -> dict[str, Any]:
        """Give the non-empty comments as entries of a document."""
        entries = {RELATION_KEY: self.relation, COLUMNS_KEY: dict(self.columns)}
        return {key: value for key, value in entries.items() if value}


def comments_of(metadata: Mapping[str, Any]) -> Comments:
    """Read the comments of a document; ignores what other programs stored under these keys."""
    relation, columns = metadata.get(RELATION_KEY), metadata.get(COLUMNS_KEY)
    return Comments(
        relation if isinstance(relation, str) else "",
        {n: text for n, text in columns.items() if isinstance(text, str)}
        if isinstance(columns, Mapping)
        else {},
    )


def with_comments(metadata: Mapping[str, Any], comments: Comments) -> dict[str, Any]:
    """Give metadata with its comments replaced."""
    others = {k: v for k, v in metadata.items() if k not in (RELATION_KEY, COLUMNS_KEY)}
    return {**others, **comments.as_metadata()}
