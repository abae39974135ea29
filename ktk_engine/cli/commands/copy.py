"""`ktk copy`: copies a cube or table into a store."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, warn
from ktk_engine.cli.dataset_patterns import chosen_datasets, dataset_options
from ktk_engine.cli.find_store import find_store, open_other_store, store_option
from ktk_engine.cli.version_options import version_options
from ktk_engine.formatting import counted, size
from ktk_engine.progress import progress_bar


@click.command()
@click.argument("cube")
@click.argument("target")
@click.option("--name", default="", help="Name of the copy; default: the same.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Another id for a dataset.")
@dataset_options
@version_options
@click.option("--overwrite", is_flag=True, help="Replace datasets of the target.")
@click.option("--dry-run", is_flag=True, help="Only show what would be copied.")
@store_option
def copy(
    cube: str,
    target: str,
    name: str,
    rename: tuple[str, ...],
    include: str | None,
    exclude: str | None,
    version: int | str | None,
    timestamp: str | None,
    overwrite: bool,
    dry_run: bool,
    store_url: str | None,
) -> None:
    """Copy CUBE (or a table) into the store TARGET.

    TARGET is a path or an address; the copy is one commit there. Files are verified by their
    digests on the way. Nothing that the target holds is changed before everything is copied.
    """
    from ktk_engine.catalog.find_scope import find_scope
    from ktk_engine.log.version import parse_moment, state_at
    from ktk_engine.maintain.copy import plan_copy, run_copy

    moment = parse_moment(version, timestamp)
    past = version is not None or moment is not None
    state = state_at(find_scope(find_store(store_url), cube, removed=past), version, moment)
    names = chosen_datasets(cube, map(state.scope.dataset_id, state.datasets), include, exclude)
    renamed = dict(_pair(text) for text in rename)
    plan = plan_copy(state, open_other_store(target), name, names, renamed, overwrite)
    copied = ", ".join(plan.datasets.values())
    what = f"{copied}: {counted(plan.files, 'file')}, {size(plan.bytes)}"
    if dry_run:
        say(f"Would copy {what}. Nothing was copied.")
        return
    with progress_bar("copying") as tell:
        done = run_copy(plan, {"command": "ktk copy"}, tell)
    say(f"Copied {what}. {done.name} of {target} is at version {done.version}.")
    warn(done.warning)


def _pair(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not (old and separator and new):
        raise click.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--rename")
    return old, new
