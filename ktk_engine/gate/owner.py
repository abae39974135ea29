"""What to do about a payload column that another dataset of the cube owns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping


def owner_fix(
    cube: str,
    dataset: str,
    built_by: Mapping[str, str] | None,
    elsewhere: Collection[str] = (),
) -> Callable[[str, str], str] | None:
    """Make the function that says what to do.

    Args:
        cube: the cube's name.
        dataset: the dataset that is to be written.
        built_by: dataset id -> name of the dbt model that builds it; None where nobody knows.
        elsewhere: ids of datasets that lie in other stores, and stay as they are.

    Returns:
        Owner and column -> the fix; None to keep the general one.
    """
    if built_by is None:
        return None

    def fix(owner: str, column: str) -> str:
        model = built_by.get(owner)
        if owner in elsewhere:
            return (
                f"if {column} moved from {owner} to {dataset}, let this run build {owner} as well "
                f"(add {model or owner} to --select); else rename it in one of them"
            )
        if model is None:
            arguments = f"{{cube: {cube}, dataset: {owner}}}"
            return (
                f"no model of this project builds {owner}: take it out with ktk remove {cube} "
                f"{owner}, or dbt run-operation ktk_remove --args '{arguments}'; else rename "
                f"{column} in {dataset}"
            )
        return (
            f"if {column} moved from {owner} to {dataset}, build both in one run: dbt run "
            f"--full-refresh -s {model} {built_by.get(dataset, dataset)}; else rename it in one of "
            "them"
        )

    return fix
