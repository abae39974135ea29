"""Missing arguments of `dbt run-operation`, for which Jinja passes an object and no error."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError


def is_undefined(value: Any) -> bool:
    """Whether a macro's argument without a default is missing."""
    from jinja2 import Undefined

    return isinstance(value, Undefined)


def check_given(operation: str, argument: str, value: Any) -> None:
    """Refuse an operation that lacks an argument; the `DbtRuntimeError` shows how to give it."""
    if is_undefined(value):
        raise DbtRuntimeError(missing(operation, argument))


def missing(operation: str, argument: str) -> str:
    """Say that an operation lacks an argument."""
    return (
        f"{operation}: the argument `{argument}` is missing: dbt run-operation {operation} "
        f"--args '{{{argument}: ...}}'"
    )
