"""Recovers a cube's specification from its stored datasets.

See docs/design/kartothek-format.md, Discovery of a cube.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import (
    DIMENSION_COLUMNS,
    IS_SEED,
    PARTITION_COLUMNS,
    SUPPRESS_INDEX_ON,
    cube_value,
)
from ktk_engine.errors import ConsistencyError
from ktk_engine.messages import Remedy

# The timestamp column in cubes older than Kartothek 3.
_OLD_TIMESTAMP_COLUMN = "KLEE_TS"


class CubeDataset(Protocol):
    """A dataset in the rules of cubes; snapshots of the log are such datasets."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised types of all columns, including partition columns."""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The columns that its files are partitioned by."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Kartothek's user metadata."""

    @property
    def with_index(self) -> tuple[str, ...]:
        """Columns with a secondary index."""


def find_seed(prefix: str, datasets: Mapping[str, CubeDataset]) -> str | None:
    """Find the id of the seed dataset; raises a `ConsistencyError` if there are several."""
    seeds = sorted(name for name, item in datasets.items() if cube_value(item.metadata, IS_SEED))
    if len(seeds) > 1:
        raise ConsistencyError(
            f"Cube {prefix} has several seed datasets: {', '.join(seeds)}. Keep one, and drop "
            "the others: ",
            Remedy.on("drop", prefix, seeds[-1]),
        )
    return seeds[0] if seeds else None


def discover_cube(prefix: str, datasets: Mapping[str, CubeDataset]) -> CubeSpecification:
    """Recover the specification of a stored cube.

    `index_columns` are the columns with secondary indexes that are neither dimensions nor partition
    columns. Raises a `ConsistencyError` if there is not exactly one seed dataset, or if it does not
    name its dimension columns or lacks them.
    """
    found = find_cube(prefix, datasets)
    if found is None:
        raise ConsistencyError(
            f"Cube {prefix} has no seed dataset yet",
            f" (only {', '.join(sorted(datasets))}). " if datasets else ". ",
            Remedy("build_seed", name=prefix),
        )
    return found


def find_cube(prefix: str, datasets: Mapping[str, CubeDataset]) -> CubeSpecification | None:
    """Recover the specification of a stored cube; None for a table, and without a seed dataset.

    Raises what `discover_cube` raises otherwise.
    """
    seed = find_seed(prefix, datasets) if prefix else None
    if seed is None:
        return None
    metadata = datasets[seed].metadata
    dimensions = cube_value(metadata, DIMENSION_COLUMNS)
    if not dimensions:
        raise ConsistencyError(
            f"Seed dataset {seed} of cube {prefix} does not name its dimension columns."
        )
    partitions = cube_value(metadata, PARTITION_COLUMNS)
    if partitions is None:
        partitions = _old_partition_columns(prefix, seed, datasets[seed].partition_keys)
    _check_columns(prefix, seed, datasets[seed], [*dimensions, *partitions])
    indexed = {column for item in datasets.values() for column in item.with_index}
    return CubeSpecification(
        prefix=prefix,
        dimension_columns=tuple(dimensions),
        partition_columns=tuple(partitions),
        seed_dataset=seed,
        index_columns=frozenset(
            indexed - set(dimensions) - set(partitions) - {_OLD_TIMESTAMP_COLUMN}
        ),
        suppress_index_on=frozenset(cube_value(metadata, SUPPRESS_INDEX_ON) or ()),
    )


def visible_columns(dataset: CubeDataset) -> list[str]:
    """Columns of a dataset that belong to the cube, without those that Kartothek hides."""
    return [name for name in dataset.schema.names if not is_hidden(name)]


def is_hidden(column: str) -> bool:
    """Whether a cube hides columns of this name, as Kartothek does."""
    return column.startswith("__") or column == _OLD_TIMESTAMP_COLUMN


def _check_columns(prefix: str, seed: str, dataset: CubeDataset, named: Sequence[str]) -> None:
    """Refuse a document and a schema file that contradict each other."""
    missing = [name for name in named if name not in dataset.schema.names]
    if missing:
        raise ConsistencyError(
            f"Seed dataset {seed} of cube {prefix}: its document names the dimension and partition "
            f"columns {', '.join(named)}, its schema (_common_metadata) lacks "
            f"{', '.join(missing)}. Restore the damaged one of the two from a backup, or "
            "rebuild the dataset."
        )


def _old_partition_columns(prefix: str, seed: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """In very old cubes, all partition keys of the seed dataset except the last, a timestamp."""
    if len(keys) < 2 or keys[-1] != _OLD_TIMESTAMP_COLUMN:
        raise ConsistencyError(
            f"Seed dataset {seed} of cube {prefix} does not name its partition columns, and its "
            f"partition keys ({', '.join(keys) or 'none'}) do not end in {_OLD_TIMESTAMP_COLUMN}."
        )
    return keys[:-1]
