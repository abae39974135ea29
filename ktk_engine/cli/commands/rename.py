"""`ktk rename`: gives a cube or table another name."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, warn
from ktk_engine.cli.find_store import find_store, store_option


@click.command()
@click.argument("cube")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@store_option
def rename(cube: str, new: str, dry_run: bool, store_url: str | None) -> None:
    """Rename CUBE, or a table, to NEW. Its files are copied, then the old name is removed.

    If it is killed in between, both exist: run it again to finish. The history stays under the old
    name.
    """
    from ktk_engine.formatting import counted, size
    from ktk_engine.maintain.rename import plan_rename, run_rename

    plan = plan_rename(find_store(store_url), cube, new)
    copied = "copied already"
    if plan.copy is not None:
        copied = f"{counted(plan.copy.files, 'file')}, {size(plan.copy.bytes)}"
    if dry_run:
        say(f"Would rename {cube} to {new} ({copied}). Nothing was changed.")
    else:
        done = run_rename(plan, {"command": "ktk rename"})
        say(
            f"Renamed {cube} to {new} ({copied}). Now version {done.version}; the files of {cube} "
            "stay until ktk cleanup."
        )
        warn(done.warning)
    if plan.builders:
        warn(f"{', '.join(plan.builders)} would build {cube} again: change the name there as well.")
