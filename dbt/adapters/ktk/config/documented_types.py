"""Types that YAML gives to columns of a plain table without a contract: dbt's documentation.

They say how a column is stored where they fit it, which is how unsigned integers and zones come
into a table. Where they do not, the rows go before the documentation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from dbt.adapters.ktk.config.model_config import DatasetConfig
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.types.arrow_name import arrow_name
from ktk_engine.types.declared import apply_declared

_C = TypeVar("_C", bound=DatasetConfig)


def with_fitting_types(config: _C, columns: pa.Schema) -> tuple[_C, str]:
    """Leave out the documented types that do not fit a model's columns.

    Args:
        config: of the model; in a cube, or with a contract, every type is a declaration.
        columns: what the model selects.

    Returns:
        The configuration, and one line about what was left out; empty for nothing.
    """
    target = config.target
    if target.role != "table" or config.contract:
        return config, ""
    declared = spelled_keys(target.declared, columns.names)
    _, findings = apply_declared(columns, declared)
    said = {
        finding.column: f"`{arrow_name(declared[finding.column])}`, "
        + (f"but is {arrow_name(finding.model)}" if finding.model else "but is not selected")
        for finding in findings
    }
    said.update({name: f"{text!r}, which is no type" for name, text in config.no_types.items()})
    if not said:
        return config, ""
    fitting = {name: t for name, t in declared.items() if name not in said}
    note = "; ".join(f"{name} is documented as {what}" for name, what in said.items())
    return (
        replace(config, target=replace(target, declared=fitting)),
        f"Model {config.model}: {note}. Such a data_type is documentation alone; with "
        "`contract: {enforced: true}` it is refused.",
    )
