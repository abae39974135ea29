"""Events: rows with keys and a time, which get the newest cells of a cube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import And, Comparison, Condition, FalseCondition, Or
from ktk_engine.errors import DataError, QueryError
from ktk_engine.formatting import parse_duration
from ktk_engine.plan.cube_query import with_hints
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, bounds_of, key_conditions
from ktk_engine.types.identifier import find_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import normalize, unwrap

Ticks: TypeAlias = "npt.NDArray[np.int64]"

_LOWEST = np.iinfo(np.int64).min
_DAY = 86_400_000_000
_YEAR_1 = -62_135_596_800_000_000  # SQL has no text for earlier times
_MOST_INTERVALS = 100
_MICROSECOND = timedelta(microseconds=1)
_KINDS = ("dates and timestamps without a time zone", "timestamps with a time zone", "integers")


@dataclass(frozen=True)
class Events:
    """Events whose keys and times can be compared with those of a cube."""

    rows: pa.Table  # as they were given
    keys: pa.Table  # by the cube's names and in its container types, in one chunk each
    # Microseconds since 1970, or integers; a cell counts from `earliest` to `latest`.
    latest: Ticks
    earliest: Ticks | None  # None: without a bound
    has_time: npt.NDArray[np.bool_]

    def slice(self, start: int, count: int) -> Events:
        """Some of the events, in order."""
        part = slice(start, start + count)
        earliest = None if self.earliest is None else self.earliest[part]
        keys = self.keys.slice(start, count)
        rows = self.rows.slice(start, count)
        return Events(rows, keys, self.latest[part], earliest, self.has_time[part])

    def conditions(self, schema: pa.Schema, time: str) -> dict[str, Condition]:
        """Give conditions by column that each cell fulfils which an event meets.

        `schema` is the cube's, and `time` its column of times.
        """
        found = {time: _time_condition(time, schema.field(time).type, self)}
        for name in self.keys.column_names:
            if pat.is_floating(schema.field(name).type):
                continue  # NaN is a key, but no literal
            keys = pa.table({name: pc.unique(self.keys[name]).drop_null()})
            many = bounds_of(keys) if keys.num_rows > MAXIMUM_KEYS else None
            found.update((name, item) for item in key_conditions(schema, keys, many))
        return found


def read_events(
    what: str,
    schema: pa.Schema,
    rows: pa.Table,
    on: Sequence[str],
    time: str,
    within: timedelta | str | int | None,
) -> Events:
    """Check events against the columns of a cube, which `what` names in messages.

    Raises a `QueryError` for a missing column, one of another class, and a `within` of another
    kind, and a `DataError` for a value that no column of the cube can hold.
    """
    count = rows.num_rows
    keys = {}
    for name in on:
        values, t = _column(what, rows, name), schema.field(name).type
        found = mismatch(t, values.type)
        if found is not None:
            raise QueryError(
                f"{what}: column `{name}` is {t}, and that of the events {values.type}: "
                f"{found.reason}. Cast it in the events{_of_pandas(t, values.type)}."
            )
        try:
            keys[name] = to_container(values, t)
        except DataError as error:
            raise DataError(f"{what}: column `{name}` of the events: {error}") from error
    times, kind = _column(what, rows, time), _kind(schema.field(time).type)
    if kind is None:
        raise QueryError(
            f"{what}: column `{time}` is {schema.field(time).type}, and has no time. Build the "
            f"cube with one of {', '.join(_KINDS)}."
        )
    if not (pat.is_null(unwrap(times.type)) or _kind(times.type) == kind):
        raise QueryError(
            f"{what}: column `{time}` is {schema.field(time).type}, and that of the events "
            f"{times.type}, but should be one of {_KINDS[kind]}. "
            f"{_time_fix(time, kind, times.type)}"
        )
    span = _span(within, is_integer=kind == 2)
    latest, earliest = ticks(times, "floor"), None
    if span is not None:
        earliest = np.maximum(ticks(times, "ceil"), _LOWEST + span) - span
    has_time = np.asarray(times.is_valid()).astype(bool)
    table = pa.table(keys) if keys else pa.table({"": pa.nulls(count)}).select([])
    return Events(rows, table, latest, earliest, has_time)


def ticks(
    values: pa.ChunkedArray | pa.Array, rounding: Literal["floor", "ceil"] = "floor"
) -> Ticks:
    """Give times as microseconds since 1970, and integers as they are; null is 0."""
    if pat.is_null(unwrap(values.type)):
        return np.zeros(len(values), np.int64)
    found = to_container(values, None, rounding)
    if pat.is_date(found.type):
        found = to_container(found, pa.timestamp("us"))
    numbers: Ticks = pc.fill_null(found.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers


def _column(what: str, rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of the events by the cube's name."""
    found = find_name(name, rows.schema.names)
    if found is None:
        raise QueryError(
            f"{what}: the events have no column {with_hints([name], rows.schema.names)}. They "
            f"have: {', '.join(rows.schema.names)}."
        )
    return rows[found]


def _of_pandas(wanted: pa.DataType, given: pa.DataType) -> str:
    is_made_of_nulls = pat.is_integer(wanted) and pat.is_floating(given)
    return ", in pandas by `astype('Int64')`, which keeps nulls" if is_made_of_nulls else ""


def _time_fix(name: str, kind: int, given: pa.DataType) -> str:
    """How to make times of events comparable: a cast alone would change them by hours."""
    if kind == 0 and _kind(given) == 1:
        local = f"pc.local_timestamp(events['{name}'].cast(pa.timestamp('us', 'Europe/Berlin')))"
        return f"Take the local time of the zone that the cube's times are meant in: `{local}`."
    if kind == 1 and _kind(given) == 0:
        zoned = f"pc.assume_timezone(events['{name}'], 'Europe/Berlin')"
        return f"Say which zone the events' times are meant in: `{zoned}`."
    return "Cast it in the events."


def _kind(t: pa.DataType) -> int | None:
    """The number in `_KINDS` of what a time is compared as."""
    t = unwrap(t)
    if pat.is_date(t) or (pat.is_timestamp(t) and t.tz is None):
        return 0
    if pat.is_timestamp(t):
        return 1
    return 2 if pat.is_signed_integer(t) else None


def _span(within: timedelta | str | int | None, is_integer: bool) -> int | None:
    """The largest age of a cell, in ticks."""
    if within is None:
        return None
    if isinstance(within, Integral if is_integer else timedelta | str) and not isinstance(
        within, bool
    ):
        span = parse_duration(within) if isinstance(within, str) else within
        count = span // _MICROSECOND if isinstance(span, timedelta) else int(span)
        if count >= 0:
            return min(count, -(_LOWEST + 1))
    wanted = "a number, as the times are" if is_integer else 'a timedelta or text such as "7 days"'
    raise QueryError(f"within must be {wanted}, and not negative, but is {within!r}.")


def _time_condition(name: str, t: pa.DataType, events: Events) -> Condition:
    """Which times an event can meet: a few intervals, since events may be far apart."""
    latest = events.latest[events.has_time]
    if not len(latest):
        return FalseCondition()
    if events.earliest is None:
        return _interval(name, t, None, latest.max())
    order = np.argsort(latest, kind="stable")
    low, high = events.earliest[events.has_time][order], latest[order]
    gaps = np.flatnonzero(low[1:] > high[:-1])
    if len(gaps) >= _MOST_INTERVALS:
        widths = low[1:][gaps].astype(float) - high[:-1][gaps]
        gaps = np.sort(gaps[np.argsort(-widths)[: _MOST_INTERVALS - 1]])
    starts, ends = low[np.append(0, gaps + 1)], high[np.append(gaps, len(high) - 1)]
    parts = [_interval(name, t, *bounds) for bounds in zip(starts, ends, strict=True)]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _interval(name: str, t: pa.DataType, low: Any, high: Any) -> Condition:
    """From one tick to another, both included."""
    container = normalize(t)
    if pat.is_date(container):
        low, high = None if low is None else -(-low // _DAY), high // _DAY
    last = Comparison(name, "<=", pa.scalar(int(high), container))
    if low is None or (low < _YEAR_1 and pat.is_timestamp(container)):
        return last
    return And((Comparison(name, ">=", pa.scalar(int(low), container)), last))
