"""`ktk info`: the contents of a store, a cube or a table."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.project_orphans import project_orphans
from ktk_engine.formatting import counted, moment, number, size

if TYPE_CHECKING:
    from ktk_engine.describe.history import HistoryEntry
    from ktk_engine.describe.info import CubeDescription, DatasetDescription, Summary
    from ktk_engine.store.interface import ObjectStore


@click.command()
@click.argument("cube", required=False)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@click.option("--rows", is_flag=True, help="Count rows of other programs' files by their footers.")
@click.option(
    "--indexes", is_flag=True, help="Count pairs of large indexes that belong to deleted files."
)
@store_option
def info(
    cube: str | None,
    as_json: bool,
    rows: bool,
    indexes: bool,
    store_url: str | None,
) -> None:
    """Describe CUBE (or a table): datasets, sizes, columns. Without CUBE: list all."""
    store = find_store(store_url, quiet=as_json)
    if cube is None:
        _show_all(store, as_json)
        return
    from ktk_engine.describe.info import describe
    from ktk_engine.describe.why import find_notes

    description = describe(store, cube, count_rows=rows, count_gone=indexes)
    if as_json:
        say_json(description.as_dict())
    else:
        _show(description)
        for item in find_notes(store, cube):
            say(item.origin)
        _show_orphans(store, cube)


def _show_all(store: ObjectStore, as_json: bool) -> None:
    from ktk_engine.describe.info import list_contents

    contents = list_contents(store)
    if as_json:
        say_json([item.__dict__ for item in contents])
        return
    if not contents:
        say("The store is empty.")
        return
    table = make_table(
        ["name", "kind", "last commit"], ["version", "datasets", "rows", "files", "size"]
    )
    for item in contents:
        table.add_row(item.name, item.kind, _changed(item), *_numbers(item))
    print_table(make_console(), table)
    for item in contents:
        if item.problem:
            say(f"\n{item.name}: ", item.problem, style="red")
    _show_orphans(store)


def _show_orphans(store: ObjectStore, name: str = "") -> None:
    """Show datasets that the dbt project in this folder no longer builds."""
    manifest, orphans = project_orphans(store)
    for orphan in orphans:
        if manifest is not None and name in ("", orphan.scope):
            known = f". (target/manifest.json of {moment(manifest.generated)})"
            say(f"\nNo model of {manifest.project} builds ", orphan.message, known, style="yellow")


def _changed(item: Summary) -> str:
    return moment(datetime.fromisoformat(item.changed)) if item.changed else "-"


def _numbers(item: Summary) -> list[str]:
    counts = [number(n) for n in (item.version, item.datasets, item.rows, item.files)]
    return [*counts, size(item.bytes)]


def _show(cube: CubeDescription) -> None:
    say(f"{cube.kind} {cube.name}, version {cube.version}", style="bold")
    specification = cube.specification
    if specification is not None:
        _line("dimensions", specification.dimension_columns)
        _line("partitioned by", specification.partition_columns)
        _line("indexed", sorted(specification.index_columns))
    if cube.last_commit is not None:
        say(f"last commit: {_last_commit(cube.last_commit)}")
    if cube.tags:
        tags = ", ".join(f"{name} (version {number})" for name, number in cube.tags.items())
        say(f"tags: {tags}")
    say("")
    table = make_table(
        ["dataset", "role", "dimensions", "partitions", "indexes"], ["rows", "files", "size"]
    )
    for item in cube.datasets:
        table.add_row(*_cells(item))
    print_table(make_console(), table)
    say("")
    for item in cube.datasets:
        columns = ", ".join(f"{name} {class_}" for name, class_ in (item.columns or {}).items())
        make_console().print(f"{item.id}: {columns}", style="dim")
    _show_indices(cube)
    _show_documents(cube)
    _show_comments(cube)
    _show_metadata(cube)
    _show_remarks(cube)


def _show_indices(cube: CubeDescription) -> None:
    """What large indexes consist of, a line each."""
    for item in cube.datasets:
        for name, found in item.segments.items():
            text = f"{number(found['pairs'])} pairs in {counted(found['segments'], 'segment')}"
            if "gone" in found:
                share = found["gone"] / max(found["pairs"], 1)
                text += f", {share:.0%} of them of files that are gone"
            say(f"{item.id}: index on {name}: {text}")


def _show_documents(cube: CubeDescription) -> None:
    """Which version Kartothek readers see, if it is not the newest one."""
    for item in cube.datasets:
        if item.documented_at and not item.published and not item.problem:
            at = moment(datetime.fromisoformat(item.documented_at))
            said = f"Kartothek readers see version {item.documented}, of {at}"
            say(f"{item.id}: {said}", style="yellow")
    if not all(item.documents for item in cube.datasets):
        say("no documents for Kartothek, as set")


def _show_comments(cube: CubeDescription) -> None:
    """Comments, a paragraph each."""
    texts = dict(cube.comments)
    for item in cube.datasets:
        columns = {f"{item.id}.{name}": text for name, text in item.column_comments.items()}
        texts |= {item.id: item.comment, **columns}
    if any(texts.values()):
        say("")
    for name, text in texts.items():
        if text:
            say(f"{name}: {' '.join(text.split())}")


def _show_metadata(cube: CubeDescription) -> None:
    """User metadata, a line per dataset."""
    for item in cube.datasets:
        if item.metadata:
            noted = ", ".join(f"{key}={_value(value)}" for key, value in item.metadata.items())
            say(f"\n{item.id}: {noted}")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(title: str, names: list[str] | tuple[str, ...]) -> None:
    if names:
        say(f"{title}: {', '.join(names)}")


def _last_commit(entry: HistoryEntry) -> str:
    datasets = ", ".join(change.dataset for change in entry.changes)
    node = entry.history.get("node", "")
    text = f"{moment(entry.time) if entry.time else ''}, {entry.operation} {datasets}".rstrip()
    return f"{text} ({node})" if node else text


def _cells(item: DatasetDescription) -> list[str]:
    keys = ", ".join(item.partition_keys)
    return [
        item.id,
        item.role,
        ", ".join(item.dimension_columns) or "-",
        f"{number(item.partitions)} by {keys}" if keys else "-",
        ", ".join(item.indexes) or "-",
        number(item.rows),
        number(item.files),
        size(item.bytes),
    ]


def _show_remarks(cube: CubeDescription) -> None:
    if cube.problem:
        say("\n", cube.problem, style="yellow")
    for item in cube.datasets:
        if item.relation != item.id:
            say(f"\n{item.id}: SQL knows it as {item.relation}")
        if item.published_as:
            say(f"\n{item.id}: published as {' and '.join(item.published_as)}")
        if item.problem:
            say(f"\n{item.id}: ", item.problem, style="red")
        elif item.note:
            say(f"\n{item.id}: {item.note}", style="yellow")
        elif not item.published and item.documents and not item.documented_at:
            say(f"\n{item.id}: not published for Kartothek readers yet", style="yellow")
