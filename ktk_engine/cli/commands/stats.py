"""`ktk stats`: the size of a cube's datasets."""

from __future__ import annotations

import click

from ktk_engine.cli.console import make_console, make_table, print_table, say_json
from ktk_engine.cli.dataset_patterns import chosen_datasets, dataset_options
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.version_options import version_options
from ktk_engine.formatting import number, size


@click.command()
@click.argument("cube")
@dataset_options
@version_options
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def stats(
    cube: str,
    include: str | None,
    exclude: str | None,
    version: int | str | None,
    timestamp: str | None,
    as_json: bool,
    store_url: str | None,
) -> None:
    """Count rows, files and bytes of CUBE (or a table).

    Rows in files of other programs are counted by their footers.
    """
    from ktk_engine.catalog.find_scope import find_scope
    from ktk_engine.describe.stats import collect_stats, total_stats
    from ktk_engine.log.version import parse_moment, state_at

    moment = parse_moment(version, timestamp)
    past = version is not None or moment is not None
    store = find_store(store_url, quiet=as_json)
    state = state_at(find_scope(store, cube, removed=past), version, moment)
    uuids = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    names = chosen_datasets(cube, uuids, include, exclude)
    found = collect_stats(state, {name: state.snapshot(uuids[name]) for name in names})
    total = total_stats(found)
    if as_json:
        datasets = {name: item.as_dict() for name, item in found.items()}
        content = {"version": state.version, "datasets": datasets, "total": total.as_dict()}
        say_json(content)
        return
    table = make_table(["dataset"], ["rows", "files", "size", "partitions"])
    lines = {**found, "total": total} if len(found) > 1 else found
    for name, item in lines.items():
        counts = [number(item.rows), number(item.files), size(item.bytes), number(item.partitions)]
        table.add_row(name, *counts)
    print_table(make_console(), table)
