"""What the rules of cubes need to know about a dataset, wherever it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa


class CubeDataset(Protocol):
    """A dataset in the rules of cubes; snapshots of the log are such datasets."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised types of all columns, including partition columns."""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The columns that its files are partitioned by."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Kartothek's user metadata."""

    @property
    def with_index(self) -> tuple[str, ...]:
        """Columns with a secondary index."""
