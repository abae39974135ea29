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
    """An immutable file with pairs of value and file, sorted by value."""

    key: str
    digest: FileDigest
    first: int  # files are counted from this number
    pairs: int  # those of files that are gone included
    # Lower bound of the values, in the container type of the column's class. None if bounds are
    # unknown, for instance because of NaN.
    low: pa.Scalar | None
    high: pa.Scalar | None  # upper bound, likewise

    def moved(self, by: int) -> IndexSegment:
        """The same pairs, with the number of each file raised."""
        return replace(self, first=self.first + by)

    def as_json(self) -> dict[str, Any]:
        """Return data that JSON can hold."""
        return {
            "key": self.key,
            "digest": self.digest.as_json(),
            "first": self.first,
            "pairs": self.pairs,
            "low": _encoded(self.low),
            "high": _encoded(self.high),
        }


def segment_of_json(content: Mapping[str, Any], t: pa.DataType) -> IndexSegment:
    """Parse what `as_json` returned; `t` is a type of the column's class.

    Raises a `KeyError`, `TypeError` or `ValueError` if it is something else.
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
    """Two tables of the bounds of a column's segments, lower and upper ones, one row each."""
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
