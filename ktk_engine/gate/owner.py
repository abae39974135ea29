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
    """Make the function that says what to do.

    Args:
        cube: the cube's name.
        dataset: the dataset that is to be written.
        built_by: dataset id -> name of the node that builds it; None where nobody knows.
        elsewhere: ids of datasets that lie in other stores, and stay as they are.

    Returns:
        Owner and column -> the fix; None to keep the general one.
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
