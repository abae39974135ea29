"""`dbt run-operation ktk_info` and the like: the command `ktk` for a schema of the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from dbt.adapters.base import available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.operations.left_out_argument import is_left_out, missing
from dbt.adapters.ktk.operations.operation_words import missing_argument, operation_words
from dbt.adapters.ktk.store_adapter import StoreAdapter


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
            arguments: its arguments; those at the end that are None are not given.
            options: its options by name; None and False are not given, and a mapping gives the
                option `name=value` for each of its items.

        Returns:
            What it says, for the log.

        Raises:
            DbtRuntimeError: it failed, or found something wrong.
        """
        import click

        from ktk_engine.cli.main import main

        said = StringIO()
        folder = f"{self.connections.warehouse.url}/{schema}"
        given = [str(item) for item in arguments if item is not None and not is_left_out(item)]
        if given and is_left_out(arguments[0]):  # the others would take its place
            raise DbtRuntimeError(missing(f"ktk_{command}", missing_argument(command, 0)))
        words = ["--store", folder, command, *_options(options or {}), "--", *given]
        try:
            with redirect_stdout(said):
                code = main.main(
                    words,
                    prog_name="ktk",
                    standalone_mode=False,
                    obj={"storage_options": self.connections.warehouse.options},
                )
        except click.MissingParameter as error:
            name = missing_argument(command, len(given))
            raise DbtRuntimeError(missing(f"ktk_{command}", name)) from error
        except click.ClickException as error:
            message = operation_words(error.format_message())
            raise DbtRuntimeError(f"ktk_{command}: {message}") from error
        text = operation_words(said.getvalue().strip())
        if code:
            raise DbtRuntimeError(f"ktk_{command}:\n{text}")
        return text


def _options(options: Mapping[str, Any]) -> list[str]:
    """Options as a command line has them."""
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
