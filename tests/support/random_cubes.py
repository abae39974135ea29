"""Random cubes and questions for property tests, and what plain joins in Python answer."""

from __future__ import annotations

import datetime
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests.support.changes import WriteRequest, build
from tests.support.queries import quote_literal
from tests.support.stores import ObjectStore

Row = Mapping[str, Any]
_UTC = datetime.UTC

# A few values of each class, so that cells meet and conditions hit.
CLASSES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [-1, 0, 2**53 + 1],
    pa.uint64(): [0, 7, 2**64 - 1],
    pa.float64(): [-0.5, 0.0, 1e300, math.nan],
    pa.string(): ["", "b c", "ü/%="],
    pa.binary(): [b"", b"\x00", b"z\xff"],
    pa.bool_(): [False, True],
    pa.date32(): [datetime.date(2024, 2, 29), datetime.date(2025, 1, 1)],
    pa.timestamp("us"): [datetime.datetime(2025, 1, 1), datetime.datetime(2025, 1, 1, 0, 0, 0, 1)],
    pa.timestamp("us", "UTC"): [
        datetime.datetime(1969, 12, 31, 23, tzinfo=_UTC),
        datetime.datetime(2025, 6, 1, tzinfo=_UTC),
    ],
    pa.time64("us"): [datetime.time(0), datetime.time(23, 59, 59, 999_999)],
    pa.decimal128(38, 2): [Decimal("-1.25"), Decimal("0.00")],
    pa.list_(pa.int64()): [[], [1, 2]],
    pa.struct({"x": pa.int64(), "y": pa.string()}): [{"x": 1, "y": None}, {"x": None, "y": "ü"}],
    pa.map_(pa.string(), pa.int64()): [[], [("a", 1), ("b", None)]],
}
if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1):
    del CLASSES[pa.time64("us")]  # Spark has no type for it
COMPARABLE = [t for t in CLASSES if not pa.types.is_nested(t)]
_WITHOUT_INDEX = (pa.float64(), pa.time64("us"), pa.decimal128(38, 2))
INDEXED = [t for t in COMPARABLE if t not in _WITHOUT_INDEX]
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


# `KTK_EXAMPLES=10` asks ten times as many, other ones; a commit a third, the same ones each time.
EVERY_COMMIT = "KTK_EXAMPLES" not in os.environ
TIMES = int(os.environ.get("KTK_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings of a property test: a third of its examples, and all with `KTK_EXAMPLES`."""
    few = max(count // 3, min(count, 4))
    return settings(
        max_examples=few if EVERY_COMMIT else count * TIMES,
        phases=[Phase.generate],  # a smaller example would cost minutes
        deadline=None,
        derandomize=EVERY_COMMIT,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@dataclass
class RandomDataset:
    """One dataset of a random cube: its parts in the order of writing."""

    name: str
    dimensions: list[str]
    partitions: list[str]
    payload: str
    types: dict[str, pa.DataType]
    indexed: bool = False
    parts: list[list[Row]] = field(default_factory=list, repr=False)

    @property
    def address(self) -> list[str]:
        return [*self.partitions, *self.dimensions]

    def target(self) -> WriteRequest:
        role = "seed" if self.name == "seed" else "enrichment"
        indexes = (self.payload,) if self.indexed else ()
        return WriteRequest(
            self.name,
            role,
            "c",
            tuple(self.dimensions),
            tuple(self.partitions),
            indexes=indexes,
            buckets=4,
            declared={c: t for c, t in self.types.items() if pa.types.is_unsigned_integer(t)},
        )

    def table(self, part: list[Row]) -> pa.Table:
        return pa.table({c: pa.array([row[c] for row in part], t) for c, t in self.types.items()})


@st.composite
def cubes(
    draw: st.DrawFn,
    enrichments: int = 5,
    kinds: Sequence[pa.DataType] = INDEXED,
    missing: bool = False,
) -> list[RandomDataset]:
    """1 to 4 dimensions, 0 to 3 partition columns, 1 to 5 enrichments with some of them.

    Args:
        draw: draws.
        enrichments: the largest number of enrichments.
        kinds: the classes of dimensions.
        missing: let dimensions be null, as only other writers do.
    """
    dimensions = [f"d{i}" for i in range(draw(st.integers(1, 4)))]
    partitions = [f"p{i}" for i in range(draw(st.integers(0, 3)))]
    types = {name: draw(st.sampled_from(kinds)) for name in dimensions}
    types |= {name: draw(st.sampled_from(INDEXED)) for name in partitions}
    found = []
    for number in range(draw(st.integers(2, 1 + enrichments))):
        own, keys = dimensions, partitions
        if number:
            own = draw(st.lists(st.sampled_from(dimensions), min_size=1, unique=True))
            keys = draw(st.sampled_from([partitions, partitions[:1], []]))
        payload = f"v{number}"
        kind = draw(st.sampled_from(list(CLASSES)))
        columns = {name: types[name] for name in (*keys, *own)} | {payload: kind}
        name = f"e{number}" if number else "seed"
        indexed = draw(st.booleans()) and kind in INDEXED
        dataset = RandomDataset(name, own, keys, payload, columns, indexed)
        dataset.parts = draw(st.lists(_parts(dataset, missing), min_size=1, max_size=2))
        found.append(dataset)
    return found


@st.composite
def _parts(draw: st.DrawFn, dataset: RandomDataset, missing: bool) -> list[Row]:
    """Up to a dozen rows, each cell once."""
    offered = [CLASSES[dataset.types[c]] for c in dataset.address]
    if missing:
        partitions = len(dataset.partitions)
        offered[partitions:] = [[None, *values] for values in offered[partitions:]]
    cells = list(itertools.product(*offered))
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=12, unique=True))
    values = CLASSES[dataset.types[dataset.payload]]
    payload = st.sampled_from(values if dataset.indexed else [None, *values])
    names = [*dataset.address, dataset.payload]
    return [dict(zip(names, (*cell, draw(payload)), strict=True)) for cell in chosen]


def write(
    store: ObjectStore,
    cube: list[RandomDataset],
    frame: Callable[[pa.Table], Any] = lambda table: table,
) -> None:
    """Write a cube, each part as a commit.

    Args:
        store: where.
        cube: its datasets.
        frame: turns a table into what is written.
    """
    for dataset in cube:
        for number, part in enumerate(dataset.parts):
            mode = "append" if number else None
            build(store, frame(dataset.table(part)), dataset.target(), mode=mode)


def columns_of(cube: list[RandomDataset]) -> dict[str, pa.DataType]:
    """All columns of a cube, the seed dataset's first."""
    return {name: t for dataset in cube for name, t in dataset.types.items()}


def joined(cube: list[RandomDataset], parts: Mapping[str, list[list[Row]]]) -> list[Row]:
    """Join the datasets in the plainest way: of one cell's rows the last one counts.

    Args:
        cube: the datasets.
        parts: their rows by dataset, in the order of writing; missing ones give only nulls.
    """
    seed, *others = cube
    rows = [dict(row) for row in _cells(seed, parts.get(seed.name, [])).values()]
    for other in others:
        cells = _cells(other, parts.get(other.name, []))
        for row in rows:
            found = cells.get(tuple(row[c] for c in other.address))
            row[other.payload] = found[other.payload] if found else None
    return rows


def _cells(dataset: RandomDataset, parts: list[list[Row]]) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[c] for c in dataset.address): row for part in parts for row in part}


def answer(cube: list[RandomDataset]) -> list[Row]:
    """All rows of a cube's virtual table."""
    return joined(cube, {dataset.name: dataset.parts for dataset in cube})


@dataclass(frozen=True)
class RandomCondition:
    """A condition as SQL text, and as a function of a row: true, false or None for unknown."""

    text: str
    holds: Callable[[Row], bool | None]


@st.composite
def conditions(draw: st.DrawFn, cube: list[RandomDataset], depth: int = 2) -> RandomCondition:
    """A comparison, or some of them with and, or, not."""
    kind = draw(st.sampled_from(["and", "or", "not", "plain", "plain"])) if depth else "plain"
    if kind == "plain":
        return draw(_comparisons(cube))
    one = draw(conditions(cube, depth - 1))
    if kind == "not":
        return RandomCondition(f"not ({one.text})", lambda row: _not(one.holds(row)))
    other = draw(conditions(cube, depth - 1))
    text = f"({one.text}) {kind} ({other.text})"
    decisive = kind == "or"

    def holds(row: Row) -> bool | None:
        found = {one.holds(row), other.holds(row)}
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return RandomCondition(text, holds)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


@st.composite
def _comparisons(draw: st.DrawFn, cube: list[RandomDataset]) -> RandomCondition:
    types = columns_of(cube)
    name = draw(st.sampled_from(sorted(types)))
    t = types[name]
    kinds = ["compare", "between", "in", "null"] if t in COMPARABLE else ["null"]
    kind = draw(st.sampled_from(kinds))
    if kind == "null":
        return RandomCondition(f"`{name}` is null", lambda row: row[name] is None)
    values = [v for v in CLASSES[t] if not _is_nan(v)]
    chosen = draw(st.lists(st.sampled_from(values), min_size=2, max_size=2))
    texts = [quote_literal(pa.scalar(value, t)) for value in chosen]
    low, high = sorted(chosen)

    def known(test: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
        return lambda row: None if row[name] is None else test(row[name])

    if kind == "in":
        return RandomCondition(f"`{name}` in ({', '.join(texts)})", known(lambda v: v in chosen))
    if kind == "between":
        bounds = [quote_literal(pa.scalar(value, t)) for value in (low, high)]
        text = f"`{name}` between {bounds[0]} and {bounds[1]}"
        return RandomCondition(text, known(lambda v: not _is_nan(v) and low <= v <= high))
    operator = draw(st.sampled_from(_OPERATORS))
    return RandomCondition(
        f"`{name}` {operator} {texts[0]}", known(lambda v: _compare(v, operator, chosen[0]))
    )


def _compare(left: Any, operator: str, right: Any) -> bool:
    """As SQL does it: NaN is greater than everything."""
    if _is_nan(left):
        return operator in ("!=", ">", ">=")
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def comparable(rows: Iterable[Row], columns: Iterable[str]) -> list[tuple[str, ...]]:
    """Rows as sorted texts, in which values are equal if and only if they are the same."""
    names = list(columns)
    return sorted(tuple(_text(row[name]) for name in names) for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(_UTC)
    if isinstance(value, bytearray):
        value = bytes(value)
    return repr(value)
