"""`ktk delete`: deletes rows of a cube or table."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.formatting import counted


@click.command()
@click.argument("cube")
@click.argument("where")
@click.option("--dataset", "datasets", multiple=True, help="Only rows of this dataset; repeatable.")
@click.option("--dry-run", is_flag=True, help="Only show how many rows would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
def delete(
    cube: str,
    where: str,
    datasets: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    store_url: str | None,
) -> None:
    """Delete rows of CUBE (or a table) that fulfil WHERE.

    It is one commit. Without --dataset, rows of the seed dataset and of all datasets that have the
    condition's columns are deleted.
    """
    from ktk_engine.api import Store
    from ktk_engine.api.deletion import plan_deletion

    store = Store.of(find_store(store_url))
    plan = plan_deletion(store, cube, where, datasets or None)
    found = plan.counts()
    rows = sum(count for count, _ in found.values())
    said = ", ".join(
        f"{counted(count, 'row')} of {name} ({counted(files, 'file')})"
        for name, (count, files) in found.items()
    )
    if dry_run or not rows:
        say(f"Would delete {said}. Nothing was changed." if rows else "No row fulfils it.")
        return
    if not yes:
        click.confirm(f"Delete {said}?", abort=True)
    version = plan.run({"command": "ktk delete", "reason": where})
    say(f"Deleted {said}. Now version {version}; ktk restore brings them back.")
