"""What the rules of cubes need to know of a dataset, no matter who stores it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa


class CubeDataset(Protocol):
    """A dataset as the rules of cubes see it; a log's snapshot is one."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised types of all columns, partition columns among them."""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The columns by which its files are laid out."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Kartothek's user metadata."""

    @property
    def with_index(self) -> tuple[str, ...]:
        """Columns with a secondary index."""
