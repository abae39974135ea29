"""What to do about a payload column that another dataset of the cube owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def owner_fix(
    cube: str, dataset: str, built_by: Mapping[str, str] | None
) -> Callable[[str, str], str] | None:
    """Make the function that says what to do.

    Args:
        cube: the cube's name.
        dataset: the dataset that is to be written.
        built_by: dataset id -> name of the dbt model that builds it; None where nobody knows.

    Returns:
        Owner and column -> the fix; None to keep the general one.
    """
    if built_by is None:
        return None

    def fix(owner: str, column: str) -> str:
        model = built_by.get(owner)
        if model is None:
            arguments = f"{{cube: {cube}, dataset: {owner}}}"
            return (
                f"no model of this project builds {owner}: take it out with ktk remove {cube} "
                f"{owner}, or dbt run-operation ktk_remove --args '{arguments}'; else rename "
                f"{column} in {dataset}"
            )
        return (
            f"if {column} moved from {owner} to {dataset}, build {owner} without it first: "
            f"dbt run --full-refresh -s {model}; else rename it in one of them"
        )

    return fix
