"""Whether constraints can be verified on rows that are to be written."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.constraint import Constraint
from ktk_engine.write.rows import ArrowRows, Rows


def check_constraints(constraints: Sequence[Constraint], rows: Rows) -> None:
    """Refuse constraints that do not fit the columns, before anything is written.

    Raises:
        ConfigurationError: a column is missing, Spark does not understand an expression, or the
            rows are none of Spark's.
    """
    if not constraints or (isinstance(rows, pa.Table) and not rows.num_rows):
        return
    if isinstance(rows, ArrowRows):
        raise ConfigurationError(
            "Constraints are verified by Spark: give the rows as a DataFrame. Nothing was written."
        )
    from ktk_engine.spark.write.rules import check_rule

    for constraint in constraints:
        missing = [name for name in constraint.columns if name not in rows.columns]
        if missing:
            raise ConfigurationError(
                f"The {constraint} names {', '.join(missing)}, which the model lacks. It has: "
                f"{', '.join(rows.columns)}. Nothing was written."
            )
        for rule in constraint.rules:
            try:
                check_rule(rows, rule)
            except ConfigurationError as error:
                raise ConfigurationError(f"{error} Nothing was written.") from error
