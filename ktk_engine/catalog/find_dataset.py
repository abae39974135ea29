"""Finds the uuid of a dataset of a cube by its name."""

from __future__ import annotations

from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.log.state import State
from ktk_engine.types.did_you_mean import did_you_mean


def find_dataset(state: State, dataset: str) -> str:
    """Find the uuid of a dataset by its id in the cube; a `DatasetNotFoundError` lists the ids."""
    known = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    if dataset in known:
        return known[dataset]
    hint = did_you_mean(dataset, known, "{}")
    raise DatasetNotFoundError(
        f"Cube {state.scope.name} has no dataset {dataset}.{hint} It has: {', '.join(known)}."
    )
