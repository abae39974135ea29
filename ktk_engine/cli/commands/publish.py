"""`ktk publish`: lets other engines read datasets, as Delta or Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import (
    flag,
    listener,
    make_console,
    make_table,
    print_table,
    say,
    say_json,
)
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.messages import spoken

if TYPE_CHECKING:
    from ktk_engine.publish.publish_datasets import Published
    from ktk_engine.store.interface import ObjectStore


class _PublishCommand(click.Command):
    """A command with a flag for each form, which takes as long to import as pyarrow."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """See `click.Command.get_params`."""
        from ktk_engine.publish.published_forms import FORMS

        flags = [
            click.Option([f"--{form.name}"], is_flag=True, help=f"As {form.title}.")
            for form in FORMS
        ]
        return [*flags, *super().get_params(ctx)]


@click.command(cls=_PublishCommand)
@click.argument("name", metavar="CUBE_OR_TABLE")
@click.option("--dataset", metavar="ID", help="Only this dataset of the cube.")
@click.option("--check", is_flag=True, help="Only compare; ends with 1 if they differ.")
@click.option("--stop", is_flag=True, help="Stop publishing, and delete what was published.")
@click.option("--kartothek", is_flag=True, help="Kartothek's documents in place of these.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def publish(
    name: str,
    dataset: str | None,
    check: bool,
    stop: bool,
    kartothek: bool,
    as_json: bool,
    store_url: str | None,
    **forms: bool,
) -> None:
    """Publish CUBE_OR_TABLE as Delta or Iceberg, from now on.

    A Delta log or Iceberg metadata is written next to the files; no data are copied. An existing
    one is brought up to date, for instance after a run died. Unless a format is named, --stop and
    --check apply to all, and what is not published yet becomes Delta.

    With --kartothek: write the documents that Kartothek reads with each commit, as a new cube or
    table does. With --stop, too: delete them and write no more. The cost of a commit is then
    independent of the number of files.
    """
    from ktk_engine.publish.publish_datasets import check_publishing, publish_datasets

    if check and stop:
        raise click.UsageError(f"{flag('check')} and {flag('stop')} do not go together.")
    others = {"check": check, "dataset": dataset, **forms}
    if kartothek and any(others.values()):
        other = flag(next(name for name, value in others.items() if value))
        raise click.UsageError(f"{flag('kartothek')} and {other} do not go together.")
    store = find_store(store_url, quiet=as_json)
    if kartothek:
        _publish_documents(store, name, not stop, as_json)
        return
    formats = [form for form, is_asked in forms.items() if is_asked]
    if stop:
        _stop(store, name, dataset, formats, as_json)
        return
    if check:
        found = check_publishing(store, name, dataset, formats)
    else:
        found = publish_datasets(store, name, dataset, {"command": "ktk publish"}, formats)
    if as_json:
        say_json([item.as_dict() for item in found])
    else:
        _show(store, found)
    if any(item.problem for item in found):
        raise click.exceptions.Exit(1)


def _publish_documents(store: ObjectStore, name: str, wanted: bool, as_json: bool) -> None:
    from ktk_engine.maintain.publish_documents import publish_documents

    command = "ktk publish --kartothek" if wanted else "ktk publish --kartothek --stop"
    warning = publish_documents(store, name, wanted, {"command": command})
    if as_json:
        say_json({"name": name, "documents": wanted, "warning": spoken(warning, listener().voice)})
        return
    how = "has documents for Kartothek" if wanted else "no longer has documents for Kartothek"
    say(f"{name} {how}.")
    if warning:
        say("Warning: ", warning)


def _stop(
    store: ObjectStore, name: str, dataset: str | None, formats: list[str], as_json: bool
) -> None:
    from ktk_engine.publish.publish_datasets import stop_publishing, titles_of

    said = {"command": "ktk publish --stop"}
    stopped = stop_publishing(store, name, dataset, said, formats)
    how = f" as {titles_of(formats)}" if formats else ""
    if as_json:
        say_json(stopped)
        return
    for uuid in stopped:
        say(f"{uuid} is no longer published{how}.")
    if not stopped:
        say(f"{name} is not published{how}. Nothing was changed.")


def _show(store: ObjectStore, found: list[Published]) -> None:
    columns = ["dataset", "format", "address"]
    table = make_table(columns, ["version", "its version"])
    for item in found:
        known = str(item.format_version) if item.format_version >= 0 else "-"
        table.add_row(item.dataset, item.format, store.uri(item.folder), str(item.version), known)
    print_table(make_console(), table)
    for item in found:
        if item.problem:
            say(f"\n{item.dataset}, {item.format}: ", item.problem, ".")
