"""`ktk compact`: rewrites small and overlaid files, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ktk_engine.cli.console import make_console, make_table, print_table, say, say_json, warn
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.formatting import number, size
from ktk_engine.progress import progress_bar

if TYPE_CHECKING:
    from ktk_engine.maintain.compactable import Compaction


@click.command()
@click.argument("name", metavar="CUBE_OR_TABLE")
@click.option("--dataset", metavar="DATASET", help="Only this dataset of the cube.")
@click.option("--target-size", default="128MB", show_default=True, help="Size of the new files.")
@click.option("--dry-run", is_flag=True, help="Only show what would be rewritten.")
@click.option("--json", "as_json", is_flag=True, help="Give data instead of a table.")
@store_option
def compact(
    name: str,
    dataset: str | None,
    target_size: str,
    dry_run: bool,
    as_json: bool,
    store_url: str | None,
) -> None:
    """Rewrite small files of CUBE (or a table).

    Overlaid files are rewritten too. Rows stay as they are.
    """
    from ktk_engine.formatting import parse_size
    from ktk_engine.maintain.compactable import find_compactions

    store = find_store(store_url, quiet=as_json)
    found = find_compactions(store, name, dataset, parse_size(target_size))
    results = [_describe(item) for item in found]
    if not dry_run:
        _run(found, results)
    if as_json:
        say_json(results)
        return
    _show(results, dry_run)


def _describe(item: Compaction) -> dict[str, Any]:
    return {
        "dataset": item.uuid,
        "partitions": item.partitions,
        "files_before": item.files.num_rows,
        "overlaid_files": item.overlaid,
        "bytes_before": item.bytes,
        "indices": list(item.indices),
        "list_of_files": item.scattered,
    }


def _run(found: list[Compaction], results: list[dict[str, Any]]) -> None:
    """Compact what needs it, and add the outcome to the results."""
    from ktk_engine.maintain.compact import compact as compact_dataset

    for item, result in zip(found, results, strict=True):
        if item.is_needed:
            with progress_bar(f"compacting {item.uuid}") as tell:
                done = compact_dataset(item, {"command": "ktk compact"}, progress=tell)
            result |= {"files": done.files, "bytes": done.bytes, "version": done.version}
            warn(done.warning)


def _show(results: list[dict[str, Any]], dry_run: bool) -> None:
    table = make_table(
        ["dataset"], ["partitions", "files", "overlaid", "size", "new files", "new size"]
    )
    for item in results:
        table.add_row(
            item["dataset"],
            *(number(item[key]) for key in ("partitions", "files_before", "overlaid_files")),
            size(item["bytes_before"]),
            number(item["files"]) if "files" in item else "",
            size(item["bytes"]) if "bytes" in item else "",
        )
    print_table(make_console(), table)
    merged = "would merge the index on" if dry_run else "merged the index on"
    for item in results:
        if item["indices"]:
            say(f"{item['dataset']}: {merged} {', '.join(item['indices'])}")
    if dry_run:
        say("Nothing was written. To compact, leave out --dry-run.")
    elif not any("files" in item for item in results):
        say("Nothing to do.")
    else:
        say("The old files stay until ktk cleanup.")
