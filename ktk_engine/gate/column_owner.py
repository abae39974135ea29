"""What to do about a payload column that another dataset of the cube owns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ktk_engine.messages import Remedy


def owner_fix(
    cube: str,
    dataset: str,
    built_by: Mapping[str, str] | None,
    elsewhere: Collection[str] = (),
) -> Callable[[str, str], Remedy] | None:
    """Make a function of owner and column that gives the fix; None keeps the general one.

    `built_by` maps datasets to the nodes that build them, None if that is unknown. Datasets
    `elsewhere` are in other stores and stay as they are.
    """
    if built_by is None:
        return None

    def fix(owner: str, column: str) -> Remedy:
        names = {"name": cube, "owner": owner, "dataset": dataset, "column": column}
        builder = built_by.get(owner)
        if owner in elsewhere:
            return Remedy("move_column_from_elsewhere", select=builder or owner, **names)
        if builder is None:
            return Remedy("take_owner_out", **names)
        return Remedy("move_column", select=f"{builder} {built_by.get(dataset, dataset)}", **names)

    return fix
