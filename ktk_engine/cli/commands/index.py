"""`ktk index`: builds and drops secondary indexes."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, warn
from ktk_engine.cli.find_store import find_store, store_option


@click.command()
@click.argument("cube")
@click.argument("columns", nargs=-1, required=True, metavar="COLUMN...")
@click.option("--dataset", metavar="ID", help="Only this dataset; default: all with the column.")
@click.option("--drop", is_flag=True, help="Drop the indexes instead.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@store_option
def index(
    cube: str,
    columns: tuple[str, ...],
    dataset: str | None,
    drop: bool,
    dry_run: bool,
    store_url: str | None,
) -> None:
    """Index each COLUMN of CUBE (or a table).

    It is one commit; no data file is rewritten. The model's `indexes` apply again from its next run
    on.
    """
    from ktk_engine.maintain.index import plan_indexes, run_index_plan

    plan = plan_indexes(find_store(store_url), cube, columns, dataset, drop=drop)
    if not plan.columns:
        state = "not indexed" if drop else "already indexed"
        say(f"{cube}: {', '.join(columns)} {state}. Nothing was changed.")
        return
    verb = "drop indexes of" if drop else "index"
    if dry_run:
        say(f"Would {verb} {plan}. Nothing was changed.")
        return
    done = run_index_plan(plan, {"command": "ktk index"})
    said = "Dropped indexes of" if drop else "Indexed"
    say(f"{said} {plan}. Now version {done.version}.")
    warn(done.warning)
