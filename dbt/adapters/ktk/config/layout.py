"""What models of other adapters say about a layout: columns, and what is computed from columns.

Elsewhere a model may partition rows by the month of a day, or sort them by an expression. Here a
partition is one value of a column. Rows are the same either way, unless a run replaces partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from dbt.adapters.ktk.config.config_reader import ConfigReader
from ktk_engine.types.did_you_mean import did_you_mean

_PARTITION_KEYS = frozenset({"partition_by", "partitioned_by"})
_SORT_KEYS = frozenset(
    ("clustered_by", "cluster_by", "liquid_clustered_by", "zorder", "sorted_by", "sort", "order_by")
)
LAYOUT = _PARTITION_KEYS | _SORT_KEYS
# The keys of BigQuery's mapping, as dbt-bigquery reads it.
_KEYS = ("field", "data_type", "granularity", "range", "copy_partitions")
_DATA_TYPES = ("date", "timestamp", "datetime", "int64")
_GRANULARITIES = ("hour", "day", "month", "year")
_RANGE = ("start", "end", "interval")
# `month(day)`, `bucket(16, id)`, `seen::date`
_COMPUTED = re.compile(r"\w+\s*\(.*\)|.+::\s*\w+(\s*\(.*\))?", re.DOTALL)
_DIRECTION = re.compile(r"\s+(asc|desc)(\s+nulls\s+(first|last))?$", re.IGNORECASE)
_QUOTED = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class LayoutKeys:
    """The keys in the config of a layout."""

    columns: tuple[str, ...]
    computed: tuple[str, ...] = ()  # SQL of expressions that are not columns


def layout_keys(reader: ConfigReader, key: str) -> LayoutKeys:
    """Read a config that divides or sorts files: `partition_by`, `clustered_by` or a synonym.

    Raises a `DbtConfigError` if it is neither names nor a mapping that BigQuery would take.
    """
    value = reader.config.get(key)
    if not value:
        return LayoutKeys(())
    if isinstance(value, Mapping) and key in _PARTITION_KEYS:
        return _of_mapping(reader, key, value)
    if isinstance(value, str):
        value = [part for part in _parts(value) if part]
    if not _is_list(value) or not all(isinstance(item, str) for item in value):
        return LayoutKeys(reader.names(key))
    items = [_DIRECTION.sub("", item) if key in _SORT_KEYS else item for item in value]
    computed = tuple(item.strip() for item in items if _COMPUTED.fullmatch(item.strip()))
    columns = [
        quoted[1] if (quoted := _QUOTED.fullmatch(item.strip())) else item
        for item in items
        if item.strip() not in computed
    ]
    return LayoutKeys(replace(reader, config={key: columns}).names(key), computed)


def partition_columns(reader: ConfigReader, in_cube: bool, replaced: bool) -> tuple[str, ...]:
    """The columns each of whose values is a partition.

    `replaced` says that runs replace the partitions of new rows. Raises a `DbtConfigError` if rows
    would depend on partitions that cannot exist here.
    """
    keys = layout_keys(reader, "partition_by")
    if not keys.computed or not (in_cube or replaced):
        return keys.columns
    why = (
        "the partition columns of a cube address its cells"
        if in_cube
        else "`insert_overwrite` replaces the partitions that new rows have: other rows would be "
        "lost"
    )
    raise reader.refuse(
        "partition_by",
        f"asks for {_sql(keys)}, which is not a column, and {why}. Nothing was written. Select "
        f"{_it(keys)} as a column of its own, and name that in `partition_by`.",
    )


def unused_keys(reader: ConfigReader, key: str) -> str:
    """Say which keys of a config are not columns; empty for none."""
    keys = layout_keys(reader, key)
    if not keys.computed:
        return ""
    done = "sorted" if key in _SORT_KEYS else "partitioned"
    return (
        f" asks for {_sql(keys)}, which is not a column: files are not {done} by it, and rows are "
        f"the same. Select {_it(keys)} as a column of its own and name that to change this."
    )


def index_columns(reader: ConfigReader) -> tuple[str, ...]:
    """Read the columns with an index, also in Postgres's form `{columns: [c]}`.

    Raises a `DbtConfigError` for any other form.
    """
    items = _items(reader)
    if not any(isinstance(item, Mapping) for item in items):
        return reader.names("indexes")
    found: dict[str, None] = {}
    for item in items:
        columns = [item] if isinstance(item, str) else _columns_of_index(item)
        if not columns:
            raise reader.refuse(
                "indexes",
                f"holds {item!r}: an index here is on one column, for instance `dest` or "
                "`{columns: [dest]}`.",
            )
        found |= dict.fromkeys(columns if _is_one(columns) else ())
    return replace(reader, config={"indexes": list(found)}).names("indexes")


def unused_indexes(reader: ConfigReader) -> str:
    """Say which options of Postgres's indexes have no effect here; empty for none."""
    given = [item for item in _items(reader) if isinstance(item, Mapping)]
    if any(item.get("unique") for item in given):
        return (
            " asks for a unique index, but an index here does not enforce that. Use a contract "
            "with the constraint `unique`, or dbt's test."
        )
    if not all(_is_one(_columns_of_index(item)) for item in given):
        return (
            " asks for an index on several columns or an expression: an index here is on one "
            "column, so this one is not made. Name the columns that conditions name, one by one."
        )
    return ""


def _items(reader: ConfigReader) -> list[Any]:
    value = reader.config.get("indexes")
    return list(value) if _is_list(value) else []


def _columns_of_index(item: Any) -> list[str]:
    columns = item.get("columns") if isinstance(item, Mapping) else None
    columns = [columns] if isinstance(columns, str) else columns
    names = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    return list(columns) if names and columns else []


def _is_one(columns: list[str]) -> bool:
    return len(columns) == 1 and not _COMPUTED.fullmatch(columns[0])


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)


def _sql(keys: LayoutKeys) -> str:
    return ", ".join(f"`{text}`" for text in keys.computed)


def _it(keys: LayoutKeys) -> str:
    return "it" if len(keys.computed) == 1 else "each"


def _parts(text: str) -> Iterator[str]:
    """Split `a, bucket(4, b)` at the commas outside of parentheses."""
    depth, begin = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            yield text[begin:at].strip()
            begin = at + 1
    yield text[begin:].strip()


def _of_mapping(reader: ConfigReader, key: str, value: Mapping[str, Any]) -> LayoutKeys:
    """Read BigQuery's `{field: day, data_type: date, granularity: month}`."""
    said = {name: item for name, item in value.items() if item not in (None, False)}
    if said.get("time_ingestion_partitioning"):
        raise reader.refuse(
            key,
            "asks for `time_ingestion_partitioning`, which puts `_partitiontime` into the place of "
            "a column. Select that time as a column, and name the column in `partition_by`.",
        )
    for name in said:
        if name not in _KEYS:
            hint = did_you_mean(str(name), _KEYS)
            raise reader.refuse(
                key, f"has the unknown key `{name}`.{hint} Known: {', '.join(_KEYS)}."
            )
    field = said.get("field")
    if not isinstance(field, str) or not field:
        raise reader.refuse(
            key,
            f"must name columns, or be a mapping with the `field` of one, but is {dict(value)!r}.",
        )
    data_type = _word(reader, key, said, "data_type", _DATA_TYPES) or "date"
    if data_type == "int64":
        return LayoutKeys((), (_of_numbers(reader, key, field, said.get("range")),))
    granularity = _word(reader, key, said, "granularity", _GRANULARITIES) or "day"
    if (data_type, granularity) == ("date", "day"):
        return LayoutKeys((field,))
    if granularity == "day":
        return LayoutKeys((), (f"to_date({field})",))
    return LayoutKeys((), (f"date_trunc('{granularity}', {field})",))


def _word(
    reader: ConfigReader, key: str, said: Mapping[str, Any], name: str, known: tuple[str, ...]
) -> str:
    found = str(said.get(name) or "").lower()
    if found and found not in known:
        hint = did_you_mean(found, known)
        raise reader.refuse(f"{key}.{name}", f"is {said[name]!r}.{hint} Known: {', '.join(known)}.")
    return found


def _of_numbers(reader: ConfigReader, key: str, field: str, range_: Any) -> str:
    """SQL for the interval of a number."""
    given = [range_.get(name) for name in _RANGE] if isinstance(range_, Mapping) else []
    numbers = [number for number in given if isinstance(number, int)]
    if len(numbers) < len(_RANGE) or numbers[-1] < 1:
        raise reader.refuse(
            key,
            "with the data_type int64 needs a `range`, for instance "
            f"{{start: 0, end: 100, interval: 10}}, but it is {range_!r}.",
        )
    start, _, interval = numbers
    return f"({field} - {start}) div {interval}" if start else f"{field} div {interval}"
