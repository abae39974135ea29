"""What a query of a cube asks for, before anything is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ktk_engine.conditions.condition import Condition

ALL_PAYLOAD: Literal["*"] = "*"


@dataclass(frozen=True)
class CubeQuery:
    """A question; `resolve_query` checks it against a cube.

    Attributes:
        columns: output columns, exactly these and in this order; None means all.
        where: a condition, as SQL text or parsed.
        dimension_columns: the dimensions that address a row of the result, in the order by which
            rows are sorted; None means the cube's. With fewer, each remaining cell of a partition
            is one row, and only datasets that have no dropped dimension can give columns.
        partition_by: columns by whose values the result is cut into groups.
        payload_columns: Kartothek's way to name columns, instead of `columns`: the result has
            these, the dimension, partition and `partition_by` columns, sorted by name. "*" means
            all.
    """

    columns: Sequence[str] | None = None
    where: str | Condition | None = None
    dimension_columns: Sequence[str] | None = None
    partition_by: Sequence[str] | None = None
    payload_columns: Sequence[str] | Literal["*"] | None = None
