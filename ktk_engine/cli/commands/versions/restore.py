"""`ktk restore` and `ktk undrop`: bring back an earlier version, or a dropped dataset or table."""

from __future__ import annotations

import click

from ktk_engine.cli.console import flag, say, warn
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.version_options import version_options
from ktk_engine.formatting import number


@click.command()
@click.argument("cube")
@version_options
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@store_option
def restore(
    cube: str,
    version: int | str | None,
    timestamp: str | None,
    dry_run: bool,
    store_url: str | None,
) -> None:
    """Restore CUBE (or a table) to a version.

    It is one commit. No data is written or deleted: versions in between stay in the history until a
    clean-up.
    """
    from ktk_engine.errors import QueryError
    from ktk_engine.log.version import parse_moment
    from ktk_engine.maintain.versions.restore import plan_restoration, run_restoration

    if version is None and timestamp is None:
        raise QueryError(
            f"Give a version: {flag('version', 'N')} or {flag('timestamp', 'TIME')}; see ktk "
            "history."
        )
    moment = parse_moment(version, timestamp)
    plan = plan_restoration(find_store(store_url), cube, version, moment)
    scope = plan.state.scope
    lines = [
        f"{scope.dataset_id(uuid)}: rows {number(item.rows)}, files {number(item.files.num_rows)}"
        for uuid, item in plan.snapshots.items()
    ]
    lines += [f"{scope.dataset_id(uuid)}: removed" for uuid in plan.removed]
    text = "\n".join(f"  {line}" for line in lines)
    if dry_run:
        say(f"Would restore version {plan.old.version} of {cube}. Nothing was changed.")
        say(text)
        return
    done = run_restoration(plan, {"command": "ktk restore"})
    say(f"Restored version {plan.old.version} of {cube}. Now version {done.version}.")
    say(text)
    warn(done.warning)


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
