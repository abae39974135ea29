"""`ktk cleanup`: deletes what no retained version needs; by default it only says what would go."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import make_console, make_table
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.errors import KtkError
from ktk_engine.operations.quantity import number, size

if TYPE_CHECKING:
    from ktk_engine.log.garbage import Garbage, Retention
    from ktk_engine.log.scope import Scope
    from ktk_engine.store.interface import ObjectStore

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _age(ctx: click.Context, param: click.Parameter, value: str) -> timedelta:
    """Parse a span of time such as `12h`, `7d` or `4w`."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is no age; write for instance 12h, 7d or 4w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@click.command()
@click.argument("cube", required=False)
@click.option("--older-than", callback=_age, default="7d", metavar="AGE", show_default=True)
@click.option("--keep-versions", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--delete", is_flag=True, help="Delete; without it nothing is changed.")
@store_option
def cleanup(
    cube: str | None,
    older_than: timedelta,
    keep_versions: int,
    delete: bool,
    store_url: str | None,
) -> None:
    """Delete files that no version younger than --older-than, nor the last ones, needs."""
    from ktk_engine.log.catalog import list_scopes
    from ktk_engine.log.garbage import Retention
    from ktk_engine.operations.find_scope import find_scope

    store = find_store(store_url)
    scopes = [find_scope(store, cube, removed=True).scope] if cube else list_scopes(store)
    failures = _clean(store, scopes, Retention(older_than, keep_versions), delete)
    if cube is None:
        _clean_rest(store, delete)
    if not delete:
        click.echo("Nothing was deleted. To delete, add --delete.")
    for failure in failures:
        click.echo(f"Error: {failure}", err=True)
    if failures:
        click.get_current_context().exit(1)


def _clean(
    store: ObjectStore, scopes: list[Scope], retention: Retention, delete: bool
) -> list[str]:
    """Clean scope by scope; what is wrong with one must not keep the others from it."""
    from ktk_engine.operations.cleanup import plan_cleanup, run_cleanup

    table = make_table(["name", "kept versions"], ["files", "unfinished", "dead writers", "size"])
    failures = []
    for scope in scopes:
        try:
            if delete:
                done = run_cleanup(store, scope, retention, {"command": "ktk cleanup"})
                garbage = done.garbage
                if done.warning:
                    failures.append(f"{scope.name}: nothing was deleted: {done.warning}")
            else:
                garbage = plan_cleanup(store, scope, retention)
        except KtkError as error:
            failures.append(f"{scope.name}: {error}")
            continue
        table.add_row(*_cells(scope, garbage))
    if table.row_count:
        make_console().print(table)
    return failures


def _cells(scope: Scope, garbage: Garbage) -> list[str]:
    counts = (garbage.objects, garbage.unfinished, garbage.intents)
    return [
        scope.name,
        f"{garbage.kept_versions} of {garbage.versions}",
        *(number(len(items)) for items in counts),
        size(garbage.bytes),
    ]


def _clean_rest(store: ObjectStore, delete: bool) -> None:
    """Temporary files that lie in no cube's or table's folder."""
    from ktk_engine.operations.cleanup import delete_unfinished, find_unfinished

    found = find_unfinished(store)
    if delete:
        delete_unfinished(store, found)
    if found:
        click.echo(f"{number(len(found))} unfinished files in the whole store.")
