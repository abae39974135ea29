"""The configs of a snapshot for the columns that distinguish versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtConfigError

from ktk_engine.change.versions import Versions
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier, find_name
from ktk_engine.types.quote import unquote_identifier

_TIMES = ("timestamp", "timestamp_ntz", "date")
_COLUMNS = ("scd_id", "valid_from", "valid_to", "updated_at", "is_deleted")


def parse_versions(model: str, config: Mapping[str, Any]) -> Versions:
    """Read the names of dbt's own columns, and the value that marks a current version.

    Raises a `DbtConfigError` if two of the columns have one name, or if a value is not text.
    """
    names = _dbt_columns(config)
    if len(set(map(Identifier, names.values()))) < len(names):
        raise DbtConfigError(
            f"Model {model}: config `snapshot_meta_column_names` gives two columns the same name: "
            f"{', '.join(names.values())}."
        )
    current = config.get("dbt_valid_to_current") or ""
    if not isinstance(current, str):
        raise DbtConfigError(
            f"Model {model}: config `dbt_valid_to_current` must be SQL text, for instance "
            f"\"to_timestamp('9999-12-31')\", but is {current!r}."
        )
    key = config.get("unique_key") or ()
    keys = (key,) if isinstance(key, str) else key
    return Versions(**names, current=current, unique_key=", ".join(map(str, keys)))


def checked_columns(model: str, wanted: object, columns: Sequence[str]) -> tuple[str, ...]:
    """Give the columns of a snapshot's query whose changes make a new version (`check_cols`).

    Raises a `DbtConfigError` if it is neither `all` nor a list of columns.
    """
    if wanted == "all":
        return tuple(columns)
    if not isinstance(wanted, list | tuple) or not wanted:
        raise DbtConfigError(
            f"Model {model}: config `check_cols` must be 'all' or a list of columns, but is "
            f"{wanted!r}."
        )
    found = []
    for name in map(str, wanted):
        plain = unquote_identifier(name)
        spelled = find_name(plain, columns)
        if spelled is None:
            raise DbtConfigError(
                f"Model {model}: config `check_cols` names {name}, which the query lacks."
                f"{did_you_mean(plain, columns)} It has: {', '.join(columns)}."
            )
        found.append(spelled)
    return tuple(found)


def check_comparable(model: str, config: Mapping[str, Any], columns: pa.Schema) -> None:
    """Refuse a first run whose values the next one could not compare.

    Strategy `check` raises a `DbtConfigError` for a column with a map, at any depth.
    """
    if config.get("strategy") != "check":
        return
    own = set(map(Identifier, _dbt_columns(config).values()))
    checked = config.get("check_cols")
    names = [field.name for field in columns if Identifier(field.name) not in own]
    for name in checked_columns(model, checked, names):
        if _has_map(columns.field(name).type):
            others = [other for other in names if other != name]
            raise DbtConfigError(
                f"Model {model}: config `check_cols` is {checked!r}, and column {name} is or holds "
                "a map, which Spark cannot compare. Nothing was written. Name the columns to "
                f"compare ({', '.join(others)}), or select to_json({name}) too and compare that."
            )


def check_times(model: str, config: Mapping[str, Any], type_: str) -> None:
    """Refuse times that dbt's own time could not be compared with, before the first run.

    `type_` is Spark's name for the type of `updated_at`. A run ends the versions of deleted rows at
    the current time. Raises a `DbtConfigError` if that has no form as a text or a number.
    """
    deletes = config.get("hard_deletes") or "ignore"
    if config.get("invalidate_hard_deletes"):
        deletes = "invalidate"
    if deletes == "ignore" or type_ in _TIMES:
        return
    updated_at = config.get("updated_at")
    raise DbtConfigError(
        f"Model {model}: config `updated_at` is {updated_at}, a {type_}, and with hard_deletes="
        f"'{deletes}' the version of a deleted row ends at the current time, which could not be "
        f"compared with it. Nothing was written. Select it as a timestamp: cast({updated_at} as "
        f"timestamp) for text, timestamp_seconds({updated_at}) for seconds since 1970."
    )


def _dbt_columns(config: Mapping[str, Any]) -> dict[str, str]:
    """The names of dbt's own columns in a snapshot."""
    own = config.get("snapshot_meta_column_names") or {}
    return {key: str(own.get(f"dbt_{key}") or f"dbt_{key}") for key in _COLUMNS}


def _has_map(t: pa.DataType) -> bool:
    parts = (t.field(index) for index in range(t.num_fields))
    return pa.types.is_map(t) or any(_has_map(part.type) for part in parts)


def check_versions(model: str, target: WriteRequest, versions: Versions) -> None:
    """Check that the layout of a snapshot can hold its versions.

    Raises a `DbtConfigError` for dimension columns that cannot distinguish versions, or a column
    without a value where the layout needs one.
    """
    dimensions = set(map(Identifier, target.dimension_columns))
    if Identifier(versions.valid_to) in dimensions:
        raise DbtConfigError(
            f"Model {model}: config `dimension_columns` names {versions.valid_to}, which changes "
            f"when a version ends. Use {versions.scd_id} or {versions.valid_from}."
        )
    telling = {Identifier(versions.scd_id), Identifier(versions.valid_from)}
    if target.cube and not telling & dimensions:
        listed = ", ".join(target.dimension_columns)
        raise DbtConfigError(
            f"Model {model}: config `dimension_columns` is {listed}, which does not distinguish "
            "the versions of a row, and each cell of a cube may occur only once. "
            f"Add {versions.scd_id} or {versions.valid_from}."
        )
    placed = target.partition_by + (target.indexes if target.cube else ())
    if Identifier(versions.valid_to) in map(Identifier, placed) and not versions.current:
        raise DbtConfigError(
            f"Model {model}: files cannot be laid out or indexed by {versions.valid_to}, which is "
            "null in current versions. Set `dbt_valid_to_current`, for instance "
            "\"to_timestamp('9999-12-31')\"."
        )
