"""`ktk cleanup`: deletes what no retained version needs; by default it only shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ktk_engine.cli.console import flag, make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.errors import KtkError
from ktk_engine.formatting import counted, number, size
from ktk_engine.messages import Message

if TYPE_CHECKING:
    from ktk_engine.log.garbage import Garbage, NamedFiles, Retention
    from ktk_engine.log.scope import LogScope
    from ktk_engine.store.interface import ObjectStore

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _age(ctx: click.Context, param: click.Parameter, value: str) -> timedelta:
    """Parse an age such as `12h`, `7d` or `4w`."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not an age; write for instance 12h, 7d or 4w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@click.command()
@click.argument("cube", required=False)
@click.option("--older-than", callback=_age, default="7d", metavar="AGE", show_default=True)
@click.option("--keep-versions", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--delete", is_flag=True, help="Delete; without it nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def cleanup(
    cube: str | None,
    older_than: timedelta,
    keep_versions: int,
    delete: bool,
    as_json: bool,
    store_url: str | None,
) -> None:
    """Delete files that no retained version needs.

    Files that other programs left, and that no document names, must be at least 7 days old.
    Deleting them from a store without a log starts the log.
    """
    from ktk_engine.catalog.catalog import list_scopes
    from ktk_engine.log.garbage import Retention
    from ktk_engine.maintain.cleanup import scope_to_clean, scopes_to_clean

    store = find_store(store_url, quiet=as_json)
    scopes = [scope_to_clean(store, cube)] if cube else scopes_to_clean(store)
    wanted = set(scopes if cube else list_scopes(store))
    retention = Retention(older_than, keep_versions)
    named: NamedFiles = {}
    cleaned = [_clean(store, scope, retention, delete, named, scope in wanted) for scope in scopes]
    rest = _clean_rest(store, delete) if cube is None else 0
    if as_json:
        listed = [item.as_dict() for item in cleaned]
        say_json({"deleted": delete, "scopes": listed, "unfinished": rest})
    else:
        _show(cleaned, rest, delete)
    if any(item.problem and item.wanted for item in cleaned):
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Cleaned:
    """A scope, what was or would be deleted of it, and what prevented it.

    If it was not named, and is not ours yet, it is not `wanted`: its problems are not a failure.
    """

    name: str
    garbage: Garbage | None
    problem: str = ""
    wanted: bool = True

    def as_dict(self) -> dict[str, Any]:
        found = self.garbage
        return {
            "name": self.name,
            "versions": found.versions if found else None,
            "kept_versions": found.kept_versions if found else None,
            "files": len(found.objects) if found else None,
            "unfinished": len(found.unfinished) if found else None,
            "dead_writers": len(found.intents) if found else None,
            "bytes": found.bytes if found else None,
            "problem": self.problem,
        }


def _clean(
    store: ObjectStore,
    scope: LogScope,
    retention: Retention,
    delete: bool,
    named: NamedFiles,
    wanted: bool,
) -> _Cleaned:
    """Clean one scope; an error must not keep others from it."""
    from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup

    try:
        if not delete:
            return _Cleaned(scope.name, plan_cleanup(store, scope, retention, named))
        done = run_cleanup(store, scope, retention, {"command": "ktk cleanup"}, named)
    except KtkError as error:
        return _Cleaned(scope.name, None, error.message, wanted)
    problem = Message("nothing was deleted: ", done.warning) if done.warning else ""
    return _Cleaned(scope.name, done.garbage, problem)


def _show(cleaned: list[_Cleaned], rest: int, delete: bool) -> None:
    table = make_table(["name", "kept versions"], ["files", "unfinished", "dead writers", "size"])
    for item in cleaned:
        if item.garbage is not None:
            table.add_row(*_cells(item.name, item.garbage))
    if table.row_count:
        print_table(make_console(), table)
    if not cleaned:
        say("There is no cube and no table in this store.")
    if rest:
        say(f"{counted(rest, 'unfinished file')} in the whole store.")
    gone = [item.garbage for item in cleaned if item.garbage is not None and not item.problem]
    if not delete:
        say(f"Nothing was deleted. To delete, add {flag('delete')}.")
    elif files := sum(len(item.objects) + len(item.unfinished) for item in gone) + rest:
        say(f"Deleted {counted(files, 'file')}, {size(sum(item.bytes for item in gone))}.")
    else:
        say("There was nothing to delete.")
    for item in cleaned:
        if item.problem:
            kind = "Error" if item.wanted else "Warning"
            say(f"{kind}: {item.name}: ", item.problem, err=True)


def _cells(name: str, garbage: Garbage) -> list[str]:
    counts = (garbage.objects, garbage.unfinished, garbage.intents)
    return [
        name,
        f"{garbage.kept_versions} of {garbage.versions}",
        *(number(len(items)) for items in counts),
        size(garbage.bytes),
    ]


def _clean_rest(store: ObjectStore, delete: bool) -> int:
    """How many temporary files are outside the folders of cubes and tables."""
    from ktk_engine.maintain.cleanup import delete_unfinished, find_unfinished

    found = find_unfinished(store)
    if delete:
        delete_unfinished(store, found)
    return len(found)
