"""The keys in the user metadata of datasets under which Kartothek stores a cube."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
