"""Random states and changes by fixed seeds, as plain data.

Nothing here knows the engine, Arrow or Spark, and of Python's generator only `random()` is used,
whose numbers are promised never to change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

Row = dict[str, Any]
Storage = Literal["table", "seed", "enrichment"]
STORAGES: tuple[Storage, ...] = ("table", "seed", "enrichment")

PLACES = ["a/b", "50%", "Łódź", "x=y"]
# A few values of each class, so that rows meet and conditions hit.
VALUES: dict[str, list[Any]] = {
    "i": [-1, 0, 7, 2**53 + 1],
    "f": [-0.0, 0.0, 0.5, -1e300, float("nan"), None],
    "m": [Decimal("-1.25"), Decimal("0.00"), Decimal("99999999.99"), None],
    "s": ["", "b c", "ü'\"%", "日本", None],
    "d": [date(1599, 12, 31), date(2024, 2, 29), None],
    "z": [
        datetime(1969, 12, 31, 23, 30, tzinfo=UTC),
        datetime(2025, 6, 1, 0, 0, 0, 1, tzinfo=UTC),
        None,
    ],
    "b": [False, True, None],
    "n": [{"x": 1, "y": ["ü", None]}, {"x": None, "y": []}, None],
}
# Event time: three days, never null.
DAYS = [datetime(2024, 1, day, hour, 30) for day in (1, 2, 3) for hour in (0, 23)]
COLUMNS = ("p", "k", "i", "f", "m", "s", "d", "t", "z", "b", "n")


class Draws:
    """Choices that follow from a seed alone."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed))).random

    def below(self, end: int) -> int:
        return int(self._random() * end)

    def one(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def some(self, values: Sequence[Any], count: int) -> list[Any]:
        """Several different ones, in random order."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]

    def row(self, key: int | None, place: str) -> Row:
        drawn = {name: self.one(values) for name, values in VALUES.items()}
        row = {"p": place, "k": key, "t": self.one(DAYS), **drawn}
        return {name: row[name] for name in COLUMNS}


@dataclass(frozen=True)
class State:
    """What a dataset holds before it is changed.

    Attributes:
        storage: what stores it.
        seed: what it was drawn by.
        partitioned: whether it is laid out by `p`.
        parts: its rows, a list for each commit. In a cube later ones hide cells of earlier ones.
    """

    storage: Storage
    seed: int
    partitioned: bool
    parts: list[list[Row]]

    @property
    def in_cube(self) -> bool:
        return self.storage != "table"

    @property
    def partition_by(self) -> list[str]:
        return ["p"] if self.partitioned else []

    @property
    def cell(self) -> tuple[str, ...]:
        """What tells the rows of a cube apart."""
        return ("p", "k") if self.partitioned else ("k",)

    @property
    def rows(self) -> list[Row]:
        """The rows that readers see."""
        rows = [row for part in self.parts for row in part]
        if not self.in_cube:
            return rows
        return list({tuple(row[name] for name in self.cell): row for row in rows}.values())


def state(storage: Storage, seed: int, partitioned: bool | None = None) -> State:
    """Draw a dataset that three commits have written.

    Args:
        storage: what stores it. A table has keys that are null, and with odd seeds some that come
            twice.
        seed: any number.
        partitioned: whether it is laid out by `p`; None draws that, too.
    """
    draws = Draws("state", storage, seed)
    laid_out = draws.one([True, True, False])
    partitioned = laid_out if partitioned is None else partitioned
    places = draws.some(PLACES, 3)
    place = {key: draws.one(places) for key in range(20)}
    first = [draws.row(key, place[key]) for key in draws.some(range(12), 9)]
    parts = [first]
    for start in (12, 16):
        again = [draws.row(row["k"], row["p"]) for row in draws.some(first, 2)]
        if storage == "table" and seed % 2 == 0:
            again = [{**row, "k": start + 2 + number} for number, row in enumerate(again)]
        parts.append([*again, *(draws.row(key, place[key]) for key in (start, start + 1))])
    if storage == "table":
        parts[0].append(draws.row(None, places[0]))
        parts[1].append(draws.row(None, places[1]))
    return State(storage, seed, partitioned, parts)


def new_rows(before: State, step: int, day: datetime | None = None) -> list[Row]:
    """Draw rows that a change brings: some with keys that are there, some with new ones.

    Args:
        before: the dataset at first.
        step: which change it is.
        day: where all rows lie, also those that are there; None for anywhere.
    """
    draws = Draws("rows", before.storage, before.seed, step)
    known = [row for row in before.rows if row["k"] is not None]
    unique = {row["k"]: row for row in known if day is None or _is_at(row, day)}
    rows = [draws.row(row["k"], row["p"]) for row in draws.some(list(unique.values()), 4)]
    places = sorted({row["p"] for row in before.rows})
    rows += [draws.row(20 + 3 * step + n, draws.one([*places, "neu"])) for n in range(3)]
    if not before.in_cube:
        rows.append(draws.row(None, places[0]))
    if day is not None:
        rows = [{**row, "t": day + timedelta(hours=draws.one([0, 23]))} for row in rows]
    return draws.some(rows, len(rows))


def _is_at(row: Row, day: datetime) -> bool:
    return day <= row["t"] < day + timedelta(days=1)


def conditions(before: State, count: int) -> list[str]:
    """Draw conditions that some rows fulfil, as the engine's SQL and Spark's have them."""
    draws = Draws("conditions", before.storage, before.seed)
    plain = [
        "i = 7",
        "i in (-1, 9007199254740993)",
        "k between 3 and 13",
        "k < 5 or k >= 14",
        "s = ''",
        "s like 'b%'",
        "s in ('日本', 'b c')",
        "s is null and b",
        "not b",
        "f > 0.25",
        "f = 0.0",
        "f <> 0.5",
        "f is not null and m is null",
        "m <= -1.25",
        "m = 0.00 or d is null",
        "d = date '2024-02-29'",
        "d < date '1900-01-01'",
        "t >= timestamp_ntz '2024-01-02 00:00:00' and t < timestamp_ntz '2024-01-03 00:00:00'",
        "z > timestamp '1970-01-01 00:00:00+00:00'",
        "n is null",
        "s <=> null",
        "not (s = 'b c' or i = 0)",
        "p = 'a/b'",
        "p <> 'Łódź' and i >= 0",
        "p in ('50%', 'x=y') and k > 4",
    ]
    return draws.some(plain, count)


Question = dict[str, Any]


def questions(before: State) -> list[Question]:
    """Draw questions, as arguments of `query`: columns and a condition, or what cubes have."""
    draws = Draws("questions", before.storage, before.seed)
    names = [*COLUMNS, *(["x"] if before.in_cube else [])]
    found: list[Question] = [{}]
    for where in conditions(before, 13):
        columns = draws.some(names, 1 + draws.below(5))
        found.append({"columns": columns, "where": where})
    found += [
        {"columns": ["k"]},
        {"columns": ["n", "f", "k"], "where": "k in (1, 2, 3, 12, 99)"},
        {"columns": ["k", "z"], "where": "z is null or z < timestamp '2000-01-01 00:00:00Z'"},
        {"columns": ["s", "k"], "where": "false"},
        {"columns": ["m", "d"], "where": "not (m > 0 and d <> date '2024-02-29')"},
    ]
    if not before.in_cube:
        return [*found, {"where": "k is null"}, {"columns": ["p"], "where": "k <=> null"}]
    return [
        *found,
        {"columns": ["x", "k", "s"], "where": "x >= 3 and s is not null"},
        {"payload_columns": ["b", "x"], "where": "i <> 0"},
        {"columns": ["k"], "where": "x < 8", "dimension_columns": ["k"]},
        {"columns": ["k", "f", "x"], "partition_by": ["i"]},
    ]


def refused_questions(before: State) -> list[Question]:
    """Questions with a fault each."""
    found: list[Question] = [
        {"columns": ["kk"]},
        {"columns": ["k", "k"]},
        {"columns": []},
        {"where": "sss = ''"},
        {"where": "s > 3"},
        {"where": "i = 'seven'"},
        {"where": "i = k"},
        {"where": "i = 0.5"},
        {"where": "n = 1"},
        {"where": "d = '2024-02-30'"},
        {"where": "upper(s) = 'B'"},
        {"where": "k in (select 1)"},
        {"where": "k >"},
        {"where": "b = 1"},
    ]
    if not before.in_cube:
        return found
    return [
        *found,
        {"dimension_columns": ["x"]},
        {"dimension_columns": []},
        {"partition_by": ["f"]},
        {"datasets": ["unknown"]},
        {"payload_columns": ["unknown"]},
        {"columns": ["k"], "payload_columns": ["x"]},
    ]
