"""Whether a run is staged: the variable `ktk_stage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtConfigError

STAGE = "ktk_stage"
NOT_OF_A_MODEL = (
    f"is a variable, not a config: a run is staged as a whole. Use dbt build --vars '{{{STAGE}: "
    "true}', or `vars` in dbt_project.yml."
)
# Commands that write, and then run the project's `on-run-end`.
_COMMANDS = frozenset({"build", "run", "seed", "snapshot", "test", "retry"})


def is_staged(config: Any) -> bool:
    """Tell whether a run publishes all that it writes at its end, or nothing.

    The configuration of a profile alone stages nothing. Raises a `DbtConfigError` if the variable
    is not a boolean.
    """
    if getattr(getattr(config, "args", None), "which", "") not in _COMMANDS:
        return False
    value = _variable(config)
    if isinstance(value, str) and value.casefold() in ("true", "false"):
        value = value.casefold() == "true"
    if not isinstance(value, bool):
        raise DbtConfigError(f"The variable `{STAGE}` must be true or false, but is {value!r}.")
    return value


def _variable(config: Any) -> Any:
    """Its value on the command line, else of the project, else of all packages."""
    given = getattr(config, "cli_vars", None) or {}
    if STAGE in given:
        return given[STAGE]
    known = getattr(config, "vars", None)
    variables: Mapping[str, Any] = known.to_dict() if known is not None else {}
    own = variables.get(str(config.project_name))
    if isinstance(own, Mapping) and STAGE in own:
        return own[STAGE]
    return variables.get(STAGE, False)
