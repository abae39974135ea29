"""`ktk drop`: drops a dataset of a cube, or a table."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, warn
from ktk_engine.cli.find_store import find_store, store_option


@click.command()
@click.argument("cube")
@click.argument("dataset", required=False)
@click.option("--cascade", is_flag=True, help="Drop all other datasets with the seed dataset.")
@click.option("--dry-run", is_flag=True, help="Only show what would be dropped.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
def drop(
    cube: str,
    dataset: str | None,
    cascade: bool,
    dry_run: bool,
    yes: bool,
    store_url: str | None,
) -> None:
    """Drop DATASET of CUBE, or the table CUBE. Files stay until a clean-up."""
    from ktk_engine.maintain.remove import plan_removal, run_removal

    removal = plan_removal(find_store(store_url), cube, dataset, cascade=cascade)
    names = ", ".join(removal.names)
    what = f"{names} of cube {cube}" if removal.state.scope.kind == "cube" else f"table {names}"
    if dry_run:
        say(f"Would drop {what}. Nothing was changed.")
        return
    if not yes:
        click.confirm(f"Drop {what}?", abort=True)
    done = run_removal(removal, {"command": "ktk drop"})
    say(
        f"Dropped {what}: version {done.version}. Files stay until ktk cleanup. Until then, this "
        "brings them back:"
    )
    for name in removal.names:
        back = (cube, name) if removal.state.scope.kind == "cube" else (name,)
        say(f"  ktk undrop {' '.join(back)}")
    warn(done.warning)
