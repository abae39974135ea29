"""`ktk restore`: restores an earlier version of a cube or table."""

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
