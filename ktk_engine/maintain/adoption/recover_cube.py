"""Finds out what a cube is if its documents no longer say so.

Kartothek's `build_dataset_indices`, and its command `index`, write a document without any user
metadata. The other datasets still say what one has lost, except for which one is the seed dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ktk_engine.cube.discovery import find_seed, is_hidden
from ktk_engine.cube.user_metadata import (
    DIMENSION_COLUMNS,
    IS_SEED,
    PARTITION_COLUMNS,
    SUPPRESS_INDEX_ON,
    cube_metadata,
    cube_value,
)
from ktk_engine.errors import ConfigurationError, ConsistencyError
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.did_you_mean import did_you_mean


@dataclass(frozen=True)
class CubeWords:
    """What a user says about a cube whose documents do not; empty for nothing."""

    seed: str = ""  # id of the seed dataset
    dimension_columns: tuple[str, ...] = ()  # that address a cell


def recover_cube(
    prefix: str, datasets: Mapping[str, Snapshot], words: CubeWords
) -> dict[str, Snapshot]:
    """Give the datasets of a cube that have to say again what the cube is, with its metadata.

    Raises a `ConsistencyError`, which says what to give, if the cube remains unknown, and a
    `ConfigurationError` if a document contradicts `words`.
    """
    seed = find_seed(prefix, datasets)
    lost = {n: item for n, item in datasets.items() if cube_value(item.metadata, IS_SEED) is None}
    said = _agreed(prefix, datasets, DIMENSION_COLUMNS)
    dimensions = said or words.dimension_columns
    _check_words(prefix, datasets, words, seed, said)
    if not lost:
        return {}
    partitions = _agreed(prefix, datasets, PARTITION_COLUMNS)
    seed = seed or words.seed or _only_seed(lost, dimensions, partitions)
    if not seed or not dimensions:
        raise ConsistencyError(_unknown(prefix, lost, bool(dimensions)))
    if partitions is None:
        partitions = tuple(n for n in datasets[seed].partition_keys if not is_hidden(n))
    indexed = {*datasets[seed].with_index, *datasets[seed].partition_keys}
    suppressed = _agreed(prefix, datasets, SUPPRESS_INDEX_ON) or ()
    suppressed = (*suppressed, *(name for name in dimensions if name not in indexed))
    return {
        name: replace(
            item,
            metadata={
                **item.metadata,
                **cube_metadata(
                    is_seed=name == seed,
                    dimension_columns=dimensions,
                    partition_columns=partitions,
                    suppress_index_on=set(suppressed),
                ),
            },
        )
        for name, item in lost.items()
    }


def _agreed(prefix: str, datasets: Mapping[str, Snapshot], key: str) -> tuple[str, ...] | None:
    """What the documents agree on about the cube; None if none says it."""
    said = {
        name: tuple(value)
        for name, item in datasets.items()
        if (value := cube_value(item.metadata, key)) is not None
    }
    if len(set(said.values())) > 1:
        lines = "".join(f"\n- {name}: {', '.join(value)}" for name, value in said.items())
        raise ConsistencyError(
            f"The documents of cube {prefix} do not agree on {key}:{lines}\nNothing was written. "
            "Restore the right one from a backup, or rebuild the dataset that is wrong."
        )
    return next(iter(said.values()), None)


def _check_words(
    prefix: str,
    datasets: Mapping[str, Snapshot],
    words: CubeWords,
    seed: str | None,
    dimensions: tuple[str, ...] | None,
) -> None:
    if words.seed and words.seed not in datasets:
        raise ConfigurationError(
            f"Cube {prefix} has no dataset {words.seed}.{did_you_mean(words.seed, datasets)} It "
            f"has: {', '.join(datasets)}. Nothing was written."
        )
    if words.seed and seed and words.seed != seed:
        raise ConfigurationError(
            f"The seed dataset of cube {prefix} is {seed}, as its document says, not {words.seed}. "
            "Nothing was written."
        )
    if words.dimension_columns and dimensions and words.dimension_columns != dimensions:
        raise ConfigurationError(
            f"The dimension columns of cube {prefix} are {', '.join(dimensions)}, as its documents "
            f"say, not {', '.join(words.dimension_columns)}. Nothing was written."
        )


def _only_seed(
    lost: Mapping[str, Snapshot], dimensions: tuple[str, ...], partitions: tuple[str, ...] | None
) -> str:
    """The only dataset that can be the seed dataset; empty if there are several, or none."""
    found = [
        name
        for name, item in lost.items()
        if set(dimensions) <= item.columns and set(partitions or ()) <= set(item.partition_keys)
    ]
    return found[0] if dimensions and len(found) == 1 else ""


def _unknown(prefix: str, lost: Mapping[str, Snapshot], dimensions: bool) -> Message:
    lines = "".join(
        f"\n- {name}: partitioned by {', '.join(item.partition_keys) or 'nothing'}; indexes on "
        f"{', '.join(item.with_index) or 'nothing'}; columns {', '.join(item.schema.names)}"
        for name, item in sorted(lost.items())
    )
    return Message(
        f"Cube {prefix}: no document says which dataset is the seed dataset"
        f"{'' if dimensions else ', and what its dimension columns are'}. Kartothek's "
        f"build_dataset_indices has dropped that. Datasets without it:{lines}\nNothing was "
        "written. Name it: ",
        Remedy("adopt_with_seed" if dimensions else "adopt_with_words", name=prefix),
    )
