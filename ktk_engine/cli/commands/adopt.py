"""`ktk adopt`: takes over what other programs made of cubes and tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ktk_engine.cli.console import say, say_json, warn
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.sources_file import SourcesFile, open_sources, store_in_project
from ktk_engine.errors import KtkError
from ktk_engine.formatting import counted
from ktk_engine.messages import Remedy
from ktk_engine.progress import progress_bar

if TYPE_CHECKING:
    from ktk_engine.maintain.adoption.adopt import Adoption
    from ktk_engine.maintain.adoption.recover_cube import CubeWords
    from ktk_engine.store.interface import ObjectStore


@click.command()
@click.argument("cube", required=False)
@click.option("--all", "everything", is_flag=True, help="Every cube and table of the store.")
@click.option(
    "--write-sources",
    "sources_path",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write definitions of dbt sources into sources.yml there, or into a file named *.yml.",
)
@click.option("--yes", is_flag=True, help="Overwrite a file of sources that is different.")
@click.option("--seed", default="", help="The seed dataset, of a cube that does not say so.")
@click.option("--dimensions", default="", help="Its dimension columns, separated by commas.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--force", is_flag=True, help="Adopt even if rows of the newest version are lost.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def adopt(
    cube: str | None,
    everything: bool,
    sources_path: Path | None,
    yes: bool,
    seed: str,
    dimensions: str,
    dry_run: bool,
    force: bool,
    as_json: bool,
    store_url: str | None,
) -> None:
    """Take over CUBE or a table from Kartothek, or all.

    For stores that Kartothek wrote, and for datasets that it changed since. Footers are read once,
    so that the log knows rows, sizes and bounds; no data file is touched. Run again, it has nothing
    to do. Ends with 1 if anything could not be taken over.
    """
    from ktk_engine.catalog.find_scope import present_scopes
    from ktk_engine.maintain.adoption.recover_cube import CubeWords

    if (cube is None) != everything:
        raise click.UsageError("Give the name of a cube or table, or --all.")
    if everything and (seed or dimensions):
        raise click.UsageError("--seed and --dimensions need the name of a cube.")
    store = find_store(store_url, quiet=as_json)
    words = CubeWords(seed, tuple(name.strip() for name in dimensions.split(",") if name.strip()))
    file = open_sources(sources_path) if sources_path is not None else None
    names = [cube] if cube is not None else sorted({s.name for s in present_scopes(store)})
    found = [_plan(store, name, words, everything) for name in names]
    found = [item for item in found if item.adoption or item.problem]
    text = _render(store, file, found) if file is not None else ""
    stop = _differs(file, text) and not (yes or dry_run)
    if not (dry_run or stop):
        found = [_run(item, force) for item in found]
        if file is not None and any(item.adoption and item.problem for item in found):
            text = _render(store, file, found)  # without refused ones
    taken = any(item.adoption and not item.problem for item in found)
    changes = file is not None and bool(file.diff(text)) and taken
    written = changes and not dry_run and (yes or not _differs(file, text))
    if file is not None and written:
        file.write(text)
    if as_json:
        say_json(_as_dict(found, file, text, dry_run, written))
    else:
        _show(found, dry_run or stop, everything)
        _show_sources(file, text, written, stop)
    if stop or any(item.problem for item in found):
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Adopted:
    """A cube or table, what was or would be taken over, and what prevents it."""

    name: str
    adoption: Adoption | None
    problem: str = ""
    version: int = 0
    warning: str = ""


def _plan(store: ObjectStore, name: str, words: CubeWords, everything: bool) -> _Adopted:
    """Plan one cube or table; an error must not keep others from it."""
    from ktk_engine.errors import DatasetNotFoundError
    from ktk_engine.maintain.adoption.adopt import plan_adoption

    try:
        with progress_bar(f"reading footers of {name}") as tell:
            adoption = plan_adoption(store, name, words, tell)
    except DatasetNotFoundError:
        if everything:  # removed: only its log is left
            return _Adopted(name, None, "")
        raise
    except KtkError as error:
        if not everything:
            raise
        return _Adopted(name, None, error.message)
    return _Adopted(name, adoption, version=adoption.state.version)


def _run(item: _Adopted, force: bool) -> _Adopted:
    from ktk_engine.maintain.adoption.adopt import run_adoption

    if item.adoption is None or not item.adoption.datasets:
        return item
    try:
        done = run_adoption(item.adoption, {"command": "ktk adopt"}, force=force)
    except KtkError as error:
        return replace(item, problem=error.message)
    return replace(item, version=done.version, warning=done.warning)


def _render(store: ObjectStore, file: SourcesFile, found: list[_Adopted]) -> str:
    """The source definitions for everything that is, or will be, in the log."""
    from ktk_engine.maintain.adoption.adopt import specification_of
    from ktk_engine.warehouse.source_definitions import DescribedScope, render_sources

    described = []
    for item in found:
        if item.adoption is not None and not item.problem:
            scope, after = item.adoption.state.scope, item.adoption.after
            described.append(DescribedScope(scope, after, specification_of(scope, after)))
    name = store.url.rstrip("/").rpartition("/")[2]
    return render_sources(name, store_in_project(store, file.path), described)


def _differs(file: SourcesFile | None, text: str) -> bool:
    return file is not None and file.before is not None and file.before != text


def _show(found: list[_Adopted], planned: bool, everything: bool) -> None:
    from ktk_engine.maintain.adoption.kartothek_readers import ABOUT_READERS

    for item in found:
        if item.adoption is not None and not item.adoption.datasets:
            say(f"{item.name}, version {item.version}: no other program changed it.")
        elif item.adoption is not None:
            _show_adoption(item, item.adoption, planned, everything)
        if item.problem:
            say("Error: ", item.problem, err=True)
        warn(item.warning)
    taken = sum(bool(i.adoption and i.adoption.datasets and not i.problem) for i in found)
    if everything:
        verb = "would be taken over" if planned else "taken over"
        rest = sum(bool(item.problem) for item in found)
        say(f"{counted(taken, 'cube or table', 'cubes and tables')} {verb}, {rest} not.")
    if taken:
        say(ABOUT_READERS)


def _show_adoption(item: _Adopted, adoption: Adoption, planned: bool, everything: bool) -> None:
    known = adoption.specification
    if known is not None:
        say(
            f"Cube {item.name}: seed dataset {known.seed_dataset}; dimensions "
            f"{', '.join(known.dimension_columns)}; partitioned by "
            f"{', '.join(known.partition_columns) or 'nothing'}"
        )
    elif adoption.state.scope.cube:
        say(f"Cube {item.name}: it has no seed dataset, and cannot be queried before one is built.")
    for dataset in adoption.datasets:
        say(f"  {dataset}")
        for note in dataset.notes:
            say(f"    {note}")
    if planned and not everything:
        kind = "adopt_with_loss" if adoption.loses else "adopt"
        say("Nothing was changed. To take it over: ", Remedy(kind, name=item.name))
    elif not (planned or item.problem):
        say(f"Taken over: version {item.version}.")


def _show_sources(file: SourcesFile | None, text: str, written: bool, stop: bool) -> None:
    if file is None:
        return
    diff = file.diff(text)
    if not diff:
        say(f"{file.path} is up to date.")
    elif stop:
        say(diff)
        say(
            f"Error: {file.path} is different, as shown. Nothing was changed, neither there nor in "
            "the store. To overwrite it, add --yes.",
            err=True,
        )
    elif written:
        say(f"Wrote {file.path}.")
    else:
        say(diff)
        say(f"{file.path} was not written.")


def _as_dict(
    found: list[_Adopted], file: SourcesFile | None, text: str, dry_run: bool, written: bool
) -> dict[str, Any]:
    sources = None
    if file is not None:
        sources = {"path": str(file.path), "written": written, "diff": file.diff(text)}
    return {"dry_run": dry_run, "adopted": [_item(item) for item in found], "sources": sources}


def _item(item: _Adopted) -> dict[str, Any]:
    adoption = item.adoption
    known = adoption.specification if adoption else None
    return {
        "name": item.name,
        "version": item.version,
        "cube": None
        if known is None
        else {
            "seed": known.seed_dataset,
            "dimension_columns": known.dimension_columns,
            "partition_columns": known.partition_columns,
            "index_columns": sorted(known.index_columns),
        },
        "datasets": [
            {
                "name": dataset.name,
                "files": dataset.snapshot.file_table.num_rows,
                "rows": dataset.snapshot.rows,
                "bytes": dataset.snapshot.bytes,
                "kept": dataset.kept,
                "gained": dataset.gained,
                "lost": len(dataset.lost),
                "lost_rows": dataset.lost_rows,
                "notes": dataset.notes,
            }
            for dataset in (adoption.datasets if adoption else ())
        ],
        "problem": item.problem,
        "warning": item.warning,
    }
