"""The layout of a dataset that is new in a cube."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import check_user_metadata
from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.types.did_you_mean import did_you_mean


def new_dataset(
    specification: CubeSpecification,
    dataset: str,
    columns: Sequence[str],
    partition_on: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> WriteRequest:
    """Lay out a dataset like its cube, for the cube's columns that it has.

    Without `partition_on` it takes the cube's partition columns; an enrichment takes those that it
    has. Raises a `ConfigurationError` if a required column is missing or the layout contradicts the
    cube's.
    """
    name = specification.uuid(dataset)
    check_user_metadata(name, metadata or {})
    is_seed = dataset == specification.seed_dataset
    dimensions, partitions = specification.dimension_columns, specification.partition_columns
    if not is_seed:
        dimensions = tuple(column for column in dimensions if column in columns)
        partitions = tuple(column for column in partitions if column in columns)
    if partition_on is not None:
        partitions = _columns(name, "partition_on", partition_on)
    if is_seed and partitions != specification.partition_columns:
        raise ConfigurationError(
            f"Dataset {name} is the seed dataset: it is partitioned as the cube is, by "
            f"{', '.join(specification.partition_columns) or 'nothing'}. Nothing was written."
        )
    if not dimensions:
        raise ConfigurationError(
            f"Dataset {name} has none of the cube's dimension columns, "
            f"{', '.join(specification.dimension_columns)}. It has: {', '.join(columns)}. Nothing "
            "was written."
        )
    indexes = specification.index_columns & set(columns) - set(partitions)
    return WriteRequest(
        dataset,
        "seed" if is_seed else "enrichment",
        specification.prefix,
        dimensions,
        partitions,
        tuple(sorted(indexes)),
        tuple(sorted(specification.suppress_index_on)) if is_seed else (),
        metadata=dict(metadata or {}),
    )


def check_indexes(cube: str, indexes: Collection[str], columns: Collection[str]) -> None:
    """Refuse an index on a column that no dataset has; `columns` are those of all datasets."""
    known = sorted(set(columns))
    for name in sorted(set(indexes) - set(known)):
        hint = did_you_mean(name, known)
        raise ConfigurationError(
            f"Cube {cube}: indexes names `{name}`, which no dataset has.{hint} Nothing was written."
        )


def _columns(dataset: str, key: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"Dataset {dataset}: {key} must be column names, but is {names!r}. Nothing was written."
        )
    return tuple(names)
