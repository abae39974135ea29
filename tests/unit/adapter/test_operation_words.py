"""Run-operations do not speak of flags of the command line."""

from __future__ import annotations

import pytest

from dbt.adapters.ktk.operations.operation_words import operation_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("To delete, add --delete.", "To delete, add delete: true."),
        (
            "run: ktk remove nyc flights --cascade. Nothing",
            "run: dbt run-operation ktk_remove "
            "--args '{cube: nyc, dataset: flights, cascade: true}'. Nothing",
        ),
        (
            "all: ktk remove a-b --cascade",
            "all: dbt run-operation ktk_remove --args '{cube: a-b, cascade: true}'",
        ),
        ("run: ktk remove nyc s2. Then", "run: ktk remove nyc s2. Then"),
        ("a -- b --- c", "a -- b --- c"),
        ("x--y --9", "x--y --9"),
        ("--dry-run", "dry_run: true"),
        ("--version N or --timestamp TIME; see", "version: N or timestamp: TIME; see"),
    ],
)
def test_words(text, said):
    assert operation_words(text) == said
