"""Segments of a secondary index: immutable files with pairs of value and file.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.format.file_digest import FileDigest, digest_of_json
from ktk_engine.types.type_class import normalize


@dataclass(frozen=True)
class IndexSegment:
    """A file with pairs of value and file, sorted by value; it never changes.

    Attributes:
        key: its key.
        digest: what was recorded of it.
        first: the number from which on it counts files.
        pairs: how many pairs it has; a pair of a file that is gone is no longer one.
        low: a lower bound of its values, in the container type of the column's class; None where
            bounds are unknown, as they are beside NaN.
        high: an upper bound, likewise.
    """

    key: str
    digest: FileDigest
    first: int
    pairs: int
    low: pa.Scalar | None
    high: pa.Scalar | None

    def moved(self, by: int) -> IndexSegment:
        """The same pairs, with the number of each file raised."""
        return replace(self, first=self.first + by)

    def as_json(self) -> dict[str, Any]:
        """Give it as data that JSON can hold."""
        return {
            "key": self.key,
            "digest": self.digest.as_json(),
            "first": self.first,
            "pairs": self.pairs,
            "low": _encoded(self.low),
            "high": _encoded(self.high),
        }


def segment_of_json(content: Mapping[str, Any], t: pa.DataType) -> IndexSegment:
    """Make a segment of what `as_json` gave.

    Args:
        content: the data.
        t: a type of the column's class.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    container = normalize(t)
    return IndexSegment(
        str(content["key"]),
        digest_of_json(content["digest"]),
        int(content["first"]),
        int(content["pairs"]),
        _decoded(content["low"], container),
        _decoded(content["high"], container),
    )


def bounds_table(segments: Sequence[IndexSegment], column: str, t: pa.DataType) -> list[pa.Table]:
    """The bounds of segments, one row each: a table of the lower ones, and one of the upper ones.

    Args:
        segments: of one column.
        column: its name.
        t: the container type of its class.
    """
    ends = ([item.low for item in segments], [item.high for item in segments])
    return [pa.table({column: pa.array(end, t)}) for end in ends]


def pairs_of(segments: Iterable[IndexSegment]) -> int:
    """How many pairs some segments have."""
    return sum(item.pairs for item in segments)


def _encoded(bound: pa.Scalar | None) -> Any:
    if bound is None:
        return None
    t = bound.type
    if pat.is_binary(t):
        return bound.as_py().hex()
    if pat.is_floating(t):
        return bound.as_py().hex()
    if pat.is_date(t):
        return pc.cast(bound, pa.int32()).as_py()
    if pat.is_timestamp(t):
        return pc.cast(bound, pa.int64()).as_py()
    return bound.as_py()


def _decoded(value: Any, t: pa.DataType) -> pa.Scalar | None:
    if value is None:
        return None
    if pat.is_binary(t):
        return pa.scalar(bytes.fromhex(value), t)
    if pat.is_floating(t):
        return pa.scalar(float.fromhex(value), t)
    if pat.is_date(t):
        return pc.cast(pa.scalar(value, pa.int32()), t)
    if pat.is_timestamp(t):
        return pc.cast(pa.scalar(value, pa.int64()), t)
    return pa.scalar(value, t)
