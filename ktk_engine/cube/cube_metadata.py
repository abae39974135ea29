"""What Kartothek keeps of a cube in the user metadata of its datasets, under which keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PREFIX, _OLD_PREFIX = "ktk_cube_", "klee_"  # the latter in cubes older than Kartothek 3
IS_SEED = f"{_PREFIX}is_seed"
DIMENSION_COLUMNS = f"{_PREFIX}dimension_columns"
PARTITION_COLUMNS = f"{_PREFIX}partition_columns"
SUPPRESS_INDEX_ON = f"{_PREFIX}suppress_index_on"
# The cube's specification: every dataset's document repeats what the seed dataset says.
SPECIFICATION_KEYS = (DIMENSION_COLUMNS, PARTITION_COLUMNS, SUPPRESS_INDEX_ON)


def cube_metadata(
    *,
    is_seed: bool,
    dimension_columns: Iterable[str],
    partition_columns: Iterable[str] = (),
    suppress_index_on: Iterable[str] = (),
) -> dict[str, Any]:
    """Write what the user metadata of a cube's dataset says of the cube."""
    return {
        IS_SEED: is_seed,
        DIMENSION_COLUMNS: list(dimension_columns),
        PARTITION_COLUMNS: list(partition_columns),
        SUPPRESS_INDEX_ON: sorted(suppress_index_on),
    }


def cube_value(metadata: Mapping[str, Any], key: str) -> Any:
    """Read a value, in old cubes under its old key; None if there is none."""
    value = metadata.get(key)
    return metadata.get(_OLD_PREFIX + key.removeprefix(_PREFIX)) if value is None else value


def is_cube_key(key: str) -> bool:
    """Whether an entry of the user metadata is one of Kartothek's about cubes."""
    return key.startswith((_PREFIX, _OLD_PREFIX))
