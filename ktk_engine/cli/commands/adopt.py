"""`ktk adopt`: takes over what another program made of a cube or table."""

from __future__ import annotations

import click

from ktk_engine.cli.console import warn
from ktk_engine.cli.find_store import find_store, store_option


@click.command()
@click.argument("cube")
@click.option("--dry-run", is_flag=True, help="Only say what would be kept and lost.")
@click.option("--force", is_flag=True, help="Also where rows of the newest version are lost.")
@store_option
def adopt(cube: str, dry_run: bool, force: bool, store_url: str | None) -> None:
    """Take over what another program made of CUBE (or of a table), as one commit.

    For datasets whose document is not based on the newest version. Old versions stay until a
    clean-up.
    """
    from ktk_engine.maintain.adopt import plan_adoption, run_adoption

    adoption = plan_adoption(find_store(store_url), cube)
    if not adoption.datasets:
        click.echo(f"{cube}, version {adoption.state.version}: no other program changed it.")
        return
    for item in adoption.datasets:
        click.echo(str(item))
    if dry_run:
        needed = " --force" if adoption.loses else ""
        click.echo(f"Nothing was changed. To take it over: ktk adopt {cube}{needed}")
        return
    done = run_adoption(adoption, {"command": "ktk adopt"}, force=force)
    click.echo(f"Taken over: version {done.version}.")
    warn(done.warning)
