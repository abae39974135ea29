"""`ktk report`: an HTML file with an overview of a cube."""

from __future__ import annotations

from pathlib import Path

import click

from ktk_engine.cli.console import listener, say
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.project_orphans import project_orphans


@click.command()
@click.argument("cube")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Default: CUBE.html.")
@click.option(
    "--query", "queries", multiple=True, help="Show which files this condition opens; repeatable."
)
@store_option
def report(cube: str, output: str | None, queries: tuple[str, ...], store_url: str | None) -> None:
    """Draw CUBE (or a table) as one HTML file.

    It shows partitions, coverage, indexes, types and history.
    """
    from ktk_engine.report.cube_report import make_report
    from ktk_engine.report.html_report import render_html

    path = Path(output or f"{cube}.html")
    store = find_store(store_url)
    _, orphans = project_orphans(store)
    page = render_html(make_report(store, cube, queries, orphans), listener().voice)
    path.write_text(page, encoding="utf-8")
    say(f"Wrote {path} ({len(page) / 1e6:.1f} MB). It needs no network.")
