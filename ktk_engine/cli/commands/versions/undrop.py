"""`ktk undrop`: restores a dropped dataset or table."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, warn
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.formatting import number


@click.command()
@click.argument("cube")
@click.argument("dataset", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would be brought back.")
@store_option
def undrop(cube: str, dataset: str | None, dry_run: bool, store_url: str | None) -> None:
    """Bring back DATASET of CUBE, or the table CUBE.

    It is as it was when it was removed.
    """
    from ktk_engine.maintain.versions.undrop import plan_undrop, run_undrop

    plan = plan_undrop(find_store(store_url), cube, dataset)
    what = f"{plan.dataset} of cube {plan.name}" if dataset else f"table {plan.name}"
    rows, files = number(plan.snapshot.rows), number(plan.snapshot.files.num_rows)
    what = f"{what} as version {plan.version} had it: rows {rows}, files {files}"
    if dry_run:
        say(f"Would bring back {what}. Nothing was changed.")
        return
    done = run_undrop(plan, {"command": "ktk undrop"})
    say(f"Brought back {what}. Now version {done.version}.")
    warn(done.warning)
