"""Pages of the site that are made: the repository's own ones, and the reference.

Run by mkdocs (`make docs`). The reference is read from what it is about: tables of the pages, the
comments of macros, the commands and the docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from posixpath import normpath, relpath

import mkdocs_gen_files

from dbt.adapters.ktk.config.model_config import _KEYS as _MODEL_KEYS
from dbt.adapters.ktk.config.source_config import _KEYS as _SOURCE_KEYS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MACROS = ROOT / "dbt" / "include" / "ktk" / "macros"
# Where the site has what is elsewhere in the repository.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/README.md",
    **{
        f"benchmarks/results/{path.name}": f"benchmarks/results/{path.name}"
        for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    },
}
FOREIGN = "configs-of-other-adapters.md"
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
_MACRO = re.compile(
    r"\{#-?\s*(?P<comment>(?:(?!#\}).)*?)\s*-?#\}\s*"
    r"\{% (?P<kind>macro|test) (?P<name>\w+)\((?P<arguments>[^)]*)\)",
    re.DOTALL,
)
_COMMANDS = """# Commands

::: mkdocs-click
    :module: ktk_engine.cli.main
    :command: main
    :prog_name: ktk
    :depth: 1
"""
_CLASSES = {
    "A store and what is in it": ["api.store.Store", "api.cube.Cube", "api.table.Table"],
    "Questions and changes": ["api.query.Query", "api.as_of.AsOf", "api.transaction.Transaction"],
    "Lazy scans": ["polars", "duckdb"],
    "Descriptions": ["cube.specification.CubeSpecification", "describe.stats.DatasetStats"],
    "Errors": ["errors"],
}


@dataclass(frozen=True)
class Config:
    """A row of a table of configurations, with its other cells."""

    key: str
    cells: Sequence[str]
    page: str
    section: str


def at_its_place(text: str, source: str) -> str:
    """Let the links of a page lead to where the site has their targets.

    Args:
        text: the page.
        source: its path in the repository.
    """
    place = PLACES.get(source, source.removeprefix("docs/"))

    def link(match: re.Match[str]) -> str:
        target = normpath(f"{Path(source).parent.as_posix()}/{match[2]}")
        known = PLACES.get(target, target.removeprefix("docs/") if "docs/" in target else "")
        if not known:
            raise ValueError(f"{source} links to {target}, which the site does not have")
        return match[1] + relpath(known, Path(place).parent.as_posix())

    return _LINK.sub(link, text)


def configs() -> Iterator[Config]:
    """The configurations of models, from every table whose first column is `key`."""
    for path in sorted(DOCS.glob("*.md")):
        section, inside = "", False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("# ", "## ")):
                section = line.lstrip("# ")
            if not line.startswith("|"):
                inside = False
                continue
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if cells[0] in ("key", "config"):
                inside = True
            elif inside and not cells[0].startswith("--"):
                for key in re.findall(r"`([^`]+)`", cells[0]):
                    yield Config(key, cells[1:], path.name, section)


def config_page() -> str:
    """All configurations by name, each with the page that explains it.

    Raises:
        ValueError: no page explains one.
    """
    missing = {*_MODEL_KEYS, *_SOURCE_KEYS} - {item.key for item in configs()}
    if missing:
        raise ValueError(f"no table of a page has {', '.join(sorted(missing))}")
    found = list(configs())
    own = [item for item in found if item.page != FOREIGN]
    keys = {item.key for item in own}
    foreign = [item for item in found if item.page == FOREIGN and item.key not in keys]
    lines = ["# Configurations", "", "## Of this adapter", ""]
    # In the order of its table, since a key may speak of its neighbours.
    for (page, section), items in groupby(own, lambda item: (item.page, item.section)):
        lines += [f"### {section}", "", f"Explained in [{section}]({_address(page, section)}).", ""]
        lines += [*_config_table(["key", "meaning"], items), ""]
    lines += [
        *("## Of other adapters", ""),
        f"Models that come from another adapter may have these: [what happens](../{FOREIGN}).",
        *("", *_config_table(["config", "known from", "here", ""], foreign), ""),
    ]
    return "\n".join(lines)


def _address(page: str, section: str) -> str:
    anchor = re.sub(r"[^\w-]+", "-", section.lower()).strip("-")
    return f"../{page}#{anchor}"


def _config_table(headers: Sequence[str], items: Iterable[Config]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield "|---" * len(headers) + "|"
    for item in items:
        cells = [_LINK.sub(r"\1../\2", cell) for cell in item.cells]
        cells[len(headers) - 2 :] = ["; default: ".join(filter(None, cells[len(headers) - 2 :]))]
        cells = [cell.replace("](#", f"](../{item.page}#") for cell in cells]
        yield f"| `{item.key}`{{ .key }} | {' | '.join(cells)} |"


def macro_page() -> str:
    """Macros, operations and tests that have a comment, by their folders."""
    titles: Mapping[str, str] = {
        "materializations": "In models",
        "sql": "In SQL",
        "operations": "Operations: dbt run-operation",
        "tests": "Generic tests",
    }
    found: dict[str, list[str]] = {title: [] for title in titles.values()}
    for path in sorted(MACROS.rglob("*.sql")):
        for match in _MACRO.finditer(path.read_text(encoding="utf-8")):
            name = match["name"]
            if name.startswith(("spark__", "ktk__")) or _internal(path, name):
                continue
            comment = " ".join(match["comment"].split())
            said = f"### {name}\n\n```\n{name}({match['arguments']})\n```\n\n{comment}\n"
            found[titles[path.parent.name]].append(said)
    parts = [f"## {title}\n\n" + "\n".join(said) for title, said in found.items() if said]
    return "# Macros and tests\n\n" + "\n".join(parts)


def _internal(path: Path, name: str) -> bool:
    """Whether nobody but this package's own macros calls it."""
    return path.parent.name not in ("operations", "tests") and name not in (
        *("cube_of", "cube_query", "at_version", "is_incremental"),
    )


def class_page() -> str:
    """The classes that Python programs use."""
    lines = ["# Python classes", ""]
    for title, names in _CLASSES.items():
        lines += [f"## {title}", ""]
        lines += [
            f"::: ktk_engine.{name}\n    options:\n      heading_level: 3\n" for name in names
        ]
    return "\n".join(lines)


def write(path: str, text: str) -> None:
    """Put a page into the site."""
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)


for source, place in PLACES.items():
    write(place, at_its_place((ROOT / source).read_text(encoding="utf-8"), source))
for page in DOCS.rglob("*.md"):
    name = page.relative_to(ROOT).as_posix()
    write(name.removeprefix("docs/"), at_its_place(page.read_text(encoding="utf-8"), name))
write("reference/configs.md", config_page())
write("reference/commands.md", _COMMANDS)
write("reference/macros.md", macro_page())
write("reference/classes.md", class_page())
