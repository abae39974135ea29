"""`ktk info`: the contents of a store, a cube or a table."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import listener, make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.project_orphans import project_orphans
from ktk_engine.formatting import counted, moment, number, size
from ktk_engine.messages import spoken

if TYPE_CHECKING:
    from rich.console import Console

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
        console = make_console()
        _show(console, description)
        for item in find_notes(store, cube):
            console.print(item.origin, soft_wrap=True, highlight=False, markup=False)
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
    console = make_console()
    table = make_table(
        ["name", "kind", "last commit"], ["version", "datasets", "rows", "files", "size"]
    )
    for item in contents:
        table.add_row(item.name, item.kind, _changed(item), *_numbers(item))
    print_table(console, table)
    for item in contents:
        if item.problem:
            said = spoken(item.problem, listener().voice)
            console.print(f"\n{item.name}: {said}", style="red", soft_wrap=True)
    _show_orphans(store)


def _show_orphans(store: ObjectStore, name: str = "") -> None:
    """Show datasets that the dbt project in this folder no longer builds."""
    orphans = project_orphans(store)
    for orphan in orphans.found:
        if name in ("", orphan.scope) and orphans.generated:
            said = orphan.message.said(listener().voice)
            make_console().print(
                f"\nNo model of {orphans.project} builds {said}. (target/manifest.json of "
                f"{moment(orphans.generated)})",
                style="yellow",
                soft_wrap=True,
            )


def _changed(item: Summary) -> str:
    return moment(datetime.fromisoformat(item.changed)) if item.changed else "-"


def _numbers(item: Summary) -> list[str]:
    counts = [number(n) for n in (item.version, item.datasets, item.rows, item.files)]
    return [*counts, size(item.bytes)]


def _show(console: Console, cube: CubeDescription) -> None:
    console.print(f"{cube.kind} {cube.name}, version {cube.version}", style="bold")
    specification = cube.specification
    if specification is not None:
        _line(console, "dimensions", specification.dimension_columns)
        _line(console, "partitioned by", specification.partition_columns)
        _line(console, "indexed", sorted(specification.index_columns))
    if cube.last_commit is not None:
        console.print(f"last commit: {_last_commit(cube.last_commit)}", soft_wrap=True)
    if cube.tags:
        tags = ", ".join(f"{name} (version {number})" for name, number in cube.tags.items())
        console.print(f"tags: {tags}", soft_wrap=True)
    console.print()
    table = make_table(
        ["dataset", "role", "dimensions", "partitions", "indexes"], ["rows", "files", "size"]
    )
    for item in cube.datasets:
        table.add_row(*_cells(item))
    print_table(console, table)
    console.print()
    for item in cube.datasets:
        columns = ", ".join(f"{name} {class_}" for name, class_ in (item.columns or {}).items())
        console.print(f"{item.id}: {columns}", style="dim")
    _show_indices(console, cube)
    _show_documents(console, cube)
    _show_comments(console, cube)
    _show_metadata(console, cube)
    _show_remarks(console, cube)


def _show_indices(console: Console, cube: CubeDescription) -> None:
    """What large indexes consist of, a line each."""
    for item in cube.datasets:
        for name, found in item.segments.items():
            text = f"{number(found['pairs'])} pairs in {counted(found['segments'], 'segment')}"
            if "gone" in found:
                share = found["gone"] / max(found["pairs"], 1)
                text += f", {share:.0%} of them of files that are gone"
            console.print(f"{item.id}: index on {name}: {text}", soft_wrap=True)


def _show_documents(console: Console, cube: CubeDescription) -> None:
    """Which version Kartothek readers see, if it is not the newest one."""
    for item in cube.datasets:
        if item.documented_at and not item.published and not item.problem:
            at = moment(datetime.fromisoformat(item.documented_at))
            said = f"Kartothek readers see version {item.documented}, of {at}"
            console.print(f"{item.id}: {said}", style="yellow", soft_wrap=True)
    if not all(item.documents for item in cube.datasets):
        console.print("no documents for Kartothek, as set", soft_wrap=True)


def _show_comments(console: Console, cube: CubeDescription) -> None:
    """Comments, a paragraph each."""
    texts = dict(cube.comments)
    for item in cube.datasets:
        columns = {f"{item.id}.{name}": text for name, text in item.column_comments.items()}
        texts |= {item.id: item.comment, **columns}
    if any(texts.values()):
        console.print()
    for name, text in texts.items():
        if text:
            console.print(f"{name}: {' '.join(text.split())}", soft_wrap=True)


def _show_metadata(console: Console, cube: CubeDescription) -> None:
    """User metadata, a line per dataset."""
    for item in cube.datasets:
        if item.metadata:
            noted = ", ".join(f"{key}={_value(value)}" for key, value in item.metadata.items())
            console.print(f"\n{item.id}: {noted}", soft_wrap=True)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(console: Console, title: str, names: list[str] | tuple[str, ...]) -> None:
    if names:
        console.print(f"{title}: {', '.join(names)}", soft_wrap=True)


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


def _show_remarks(console: Console, cube: CubeDescription) -> None:
    if cube.problem:
        said = spoken(cube.problem, listener().voice)
        console.print(f"\n{said}", style="yellow", soft_wrap=True)
    for item in cube.datasets:
        if item.relation != item.id:
            console.print(f"\n{item.id}: SQL knows it as {item.relation}", soft_wrap=True)
        if item.published_as:
            forms = " and ".join(item.published_as)
            console.print(f"\n{item.id}: published as {forms}", soft_wrap=True)
        if item.problem:
            said = spoken(item.problem, listener().voice)
            console.print(f"\n{item.id}: {said}", style="red", soft_wrap=True)
        elif item.note:
            console.print(f"\n{item.id}: {item.note}", style="yellow", soft_wrap=True)
        elif not item.published and item.documents and not item.documented_at:
            waits = "not published for Kartothek readers yet"
            console.print(f"\n{item.id}: {waits}", style="yellow", soft_wrap=True)
