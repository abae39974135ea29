"""Queries of generic tests that this process recognises by their text and answers without Spark.

`cell_tests.py` and `listed_rows.py` generate them again and compare.
"""

from __future__ import annotations

from collections.abc import Sequence

from ktk_engine.types.quote import quote_identifier, quote_text


def orphans_query(rows: str, seed: str, keys: Sequence[str], at_most: float) -> str:
    """Query rows outside the seed dataset, if their share of all rows exceeds `at_most`.

    `rows` and `seed` are relations as written after FROM; `keys` are the cell columns of both.
    """
    listed = ", ".join(f"e.{quote_identifier(key)}" for key in keys)
    return (
        f"select * from (select orphan.*, count(*) over () / greatest((select count(*) from "
        f"{rows}), 1) as share_of_orphans from (select {listed} from (select * from {rows}) e "
        f"left anti join {seed} s on {_equal(keys)}) orphan) "
        f"where share_of_orphans > {at_most}D"
    )


def coverage_query(rows: str, seed: str, keys: Sequence[str], at_least: float) -> str:
    """Query how many of the seed dataset's cells are filled, if their share is below `at_least`."""
    filled = f"select 1 from (select * from {rows}) e where {_equal(keys)}"
    return (
        "select * from (select count(*) as cells, "
        f"count_if(filled) as filled_cells, coalesce(count_if(filled) / nullif(count(*), 0), 1)"
        f" as coverage, {at_least}D as at_least from (select exists ({filled}) as filled "
        f"from {seed} s)) where coverage < at_least"
    )


def failing_query(message: str) -> str:
    """Write a query that compiles, and fails with a message when it runs."""
    # In a condition, since an unused column would not be computed.
    return f"select 1 as failure where raise_error({quote_text(message)}) is not null"


def _equal(keys: Sequence[str]) -> str:
    quoted = [quote_identifier(key) for key in keys]
    return " and ".join(f"e.{key} <=> s.{key}" for key in quoted)
