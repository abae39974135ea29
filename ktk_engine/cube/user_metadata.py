"""Kartothek's user metadata of a dataset: where it stores a cube, and what users have added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ktk_engine.errors import ConfigurationError, FormatError
from ktk_engine.format.comments import COLUMNS_KEY, RELATION_KEY
from ktk_engine.format.parse_json import render_json
from ktk_engine.format.stamp import BASE_KEY, STAMP_KEY

# Says when a build was, and on what.
OF_A_BUILD = ("creation_time", BASE_KEY, STAMP_KEY)
_COMMENTS = (RELATION_KEY, COLUMNS_KEY)
_PREFIX, _OLD_PREFIX = "ktk_cube_", "klee_"  # the latter in cubes older than Kartothek 3
IS_SEED = f"{_PREFIX}is_seed"
DIMENSION_COLUMNS = f"{_PREFIX}dimension_columns"
PARTITION_COLUMNS = f"{_PREFIX}partition_columns"
SUPPRESS_INDEX_ON = f"{_PREFIX}suppress_index_on"
# The cube's specification, which is in the document of every dataset.
SPECIFICATION_KEYS = (DIMENSION_COLUMNS, PARTITION_COLUMNS, SUPPRESS_INDEX_ON)


def cube_metadata(
    *,
    is_seed: bool,
    dimension_columns: Iterable[str],
    partition_columns: Iterable[str] = (),
    suppress_index_on: Iterable[str] = (),
) -> dict[str, Any]:
    """The entries of a dataset's user metadata that describe its cube."""
    return {
        IS_SEED: is_seed,
        DIMENSION_COLUMNS: list(dimension_columns),
        PARTITION_COLUMNS: list(partition_columns),
        SUPPRESS_INDEX_ON: sorted(suppress_index_on),
    }


def cube_value(metadata: Mapping[str, Any], key: str) -> Any:
    """Read a value, in old cubes under its old key."""
    value = metadata.get(key)
    return metadata.get(_OLD_PREFIX + key.removeprefix(_PREFIX)) if value is None else value


def is_cube_key(key: str) -> bool:
    """Whether an entry of the user metadata is one that Kartothek writes for cubes."""
    return key.startswith((_PREFIX, _OLD_PREFIX))


def is_of_a_build(key: str) -> bool:
    """Whether an entry of the metadata says how, when or as what the dataset was built."""
    return key in OF_A_BUILD or is_cube_key(key)


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the metadata that come neither from a build nor from comments."""
    return {k: v for k, v in metadata.items() if not is_of_a_build(k) and k not in _COMMENTS}


def check_user_metadata(dataset: str, metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that is not a mapping, has a reserved key, or a value unfit for JSON."""
    if not isinstance(metadata, Mapping):
        raise ConfigurationError(
            f"Dataset {dataset}: metadata must be a mapping, but is {metadata!r}. Nothing was "
            "written."
        )
    for key, value in metadata.items():
        if not isinstance(key, str) or is_of_a_build(key) or key in _COMMENTS:
            raise ConfigurationError(
                f"Dataset {dataset}: the metadata key {key!r} is reserved. Use another one. "
                "Nothing was written."
            )
        try:
            render_json({key: value}, allow_nan=False)
        except (TypeError, ValueError, FormatError) as error:
            raise ConfigurationError(
                f"Dataset {dataset}: the metadata of key {key!r} cannot be written as JSON: "
                f"{error}. Nothing was written."
            ) from error
