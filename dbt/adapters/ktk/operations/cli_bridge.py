"""`dbt run-operation ktk_info` and the like: the command `ktk` for a schema of the project.

For a missing argument Jinja passes an object, and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

import click
from dbt.adapters.base import available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.store_adapter import StoreAdapter
from dbt.adapters.ktk.voice import DBT
from ktk_engine.types.did_you_mean import did_you_mean


class CliBridge(StoreAdapter):
    """Runs the commands that need no Spark."""

    @available.parse(lambda *_, **__: "")
    def run_command(
        self,
        command: str,
        schema: str,
        arguments: Sequence[str | None] = (),
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Run a command of `ktk`.

        Args:
            command: its name.
            schema: of the project's store.
            arguments: its arguments, without trailing ones that are None.
            options: its options by name, without those that are None or False. Each item of a
                mapping becomes an option `name=value`.

        Returns:
            Its output, for the log.

        Raises:
            DbtRuntimeError: it failed, or found something wrong.
        """
        from ktk_engine.cli.console import Listener
        from ktk_engine.cli.main import main

        said = StringIO()
        folder = f"{self.connections.warehouse.url}/{schema}"
        given = [str(item) for item in arguments if item is not None and not _is_undefined(item)]
        if given and _is_undefined(arguments[0]):  # the others would move into its position
            raise DbtRuntimeError(_missing(f"ktk_{command}", _argument(command, 0)))
        _check_known(main.commands[command], options or {})
        words = ["--store", folder, command, *_options(options or {}), "--", *given]
        try:
            code = main.main(
                words,
                prog_name="ktk",
                standalone_mode=False,
                obj={
                    "storage_options": self.connections.warehouse.options,
                    "listener": Listener(DBT, said),
                },
            )
        except click.MissingParameter as error:
            name = _argument(command, len(given))
            raise DbtRuntimeError(_missing(f"ktk_{command}", name)) from error
        except click.BadParameter as error:
            of = f"{error.param.name}: " if error.param else ""
            raise DbtRuntimeError(f"ktk_{command}: {of}{error.message}") from error
        except click.ClickException as error:
            raise DbtRuntimeError(f"ktk_{command}: {error.format_message()}") from error
        text = said.getvalue().strip()
        if code:
            raise DbtRuntimeError(f"ktk_{command}:\n{text}")
        return text


def _check_known(command: click.Command, options: Iterable[str]) -> None:
    """Refuse options that a command does not have, even those that are false."""
    params = command.get_params(click.Context(command))
    known = {option.removeprefix("--") for param in params for option in param.opts}
    for name in options:
        if name not in known:
            raise DbtRuntimeError(
                f"ktk_{command.name} has no argument `{name}`.{did_you_mean(name, known)} Nothing "
                "was changed."
            )


# Required arguments of operations, by the names of their macros; a `name` for all others.
_ARGUMENTS = {
    **dict.fromkeys(("report", "restore"), ("cube",)),
    "explain": ("cube", "where"),
    "tag": ("cube", "name"),
    "copy": ("cube", "into"),
    "rename": ("cube", "new"),
    "index": ("cube", "columns"),
    "undrop": ("cube", "dataset"),
}


def _argument(command: str, given: int) -> str:
    """Name the first missing argument of an operation."""
    return _ARGUMENTS.get(command, ("name",))[given]


def _options(options: Mapping[str, Any]) -> list[str]:
    """Options in the form of a command line."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if isinstance(value, Mapping):
            words += [f"--{name}={key}={item}" for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            words += [f"--{name}={item}" for item in value]
        else:
            words.append(f"--{name}" if value is True else f"--{name}={value}")
    return words


def _is_undefined(value: Any) -> bool:
    """Whether a macro's argument without a default is missing."""
    from jinja2 import Undefined

    return isinstance(value, Undefined)


def check_given(operation: str, argument: str, value: Any) -> None:
    """Refuse an operation that lacks an argument; the `DbtRuntimeError` shows how to give it."""
    if _is_undefined(value):
        raise DbtRuntimeError(_missing(operation, argument))


def _missing(operation: str, argument: str) -> str:
    """Say that an operation lacks an argument."""
    return (
        f"{operation}: the argument `{argument}` is missing: dbt run-operation {operation} "
        f"--args '{{{argument}: ...}}'"
    )
