"""Comments on a relation and its columns, as a dataset's document and a view's carry them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

# In Kartothek's user metadata, which its writers keep and its readers pass on.
RELATION_KEY = "ktk_comment"
COLUMNS_KEY = "ktk_column_comments"


@dataclass(frozen=True)
class Comments:
    """What people say of a relation; any text.

    Attributes:
        relation: of the relation itself; empty for nothing.
        columns: column -> text; columns without one are missing.
    """

    relation: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    def only(self, columns: Collection[str]) -> Comments:
        """Leave out what is said of other columns."""
        kept = {name: text for name, text in self.columns.items() if name in columns}
        return Comments(self.relation, kept)

    def as_metadata(self) -> dict[str, Any]:
        """Give them as entries of a document; none for what is empty."""
        entries = {RELATION_KEY: self.relation, COLUMNS_KEY: dict(self.columns)}
        return {key: value for key, value in entries.items() if value}


def comments_of(metadata: Mapping[str, Any]) -> Comments:
    """Read the comments of a document; what another program put there instead is not a comment."""
    relation, columns = metadata.get(RELATION_KEY), metadata.get(COLUMNS_KEY)
    return Comments(
        relation if isinstance(relation, str) else "",
        {n: text for n, text in columns.items() if isinstance(text, str)}
        if isinstance(columns, Mapping)
        else {},
    )


def with_comments(metadata: Mapping[str, Any], comments: Comments) -> dict[str, Any]:
    """Give metadata with these comments in the place of those it has."""
    others = {k: v for k, v in metadata.items() if k not in (RELATION_KEY, COLUMNS_KEY)}
    return {**others, **comments.as_metadata()}
