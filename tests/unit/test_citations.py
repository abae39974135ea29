"""What comments, docstrings, tests and pages cite is in the repository."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("ktk_engine", "dbt", "tests", "benchmarks")
SUFFIXES = {".py", ".sql", ".yml"}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = ROOT / "docs" / "design" / "decisions.md"

# A page, and behind it the heading of a section if a comma and a capital or digit follow.
_PAGE = re.compile(r"(?<![\w/{}*.\"'-])((?:[\w-]+/)*[\w-]+\.md)\b(?:, (?=[A-Z0-9])([^).;:`\"]+))?")
_DECISIONS = re.compile(r"\b[dD]ecisions? (\d+(?:(?:, | and | to )\d+)*)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Documents that were next to the project, and were cited without their pages' names.
_BESIDE = re.compile(r"\b(?:type-system|cube-query|parallel-execution)\.txt\b|\bseed documents?\b")
_PATH = re.compile(r"`((?:ktk_engine|dbt|tests|benchmarks|docs|sample_project)/[\w./-]*)`")
# Pages that programs write, or that lie in an archive.
_WRITTEN = {"query.md"}


def sources() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    here = Path(__file__).resolve()
    return [path for path in found if path.suffix in SUFFIXES and path != here] + [
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
        ROOT / "setup.py",
        ROOT / "ktk_engine" / "pyproject.toml",
    ]


def text_of(path: Path) -> str:
    """The text with comments that go on over several lines joined."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*(?:#|--)?\s*", " ", text) if path.suffix != ".md" else text


@cache
def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)


@cache
def decision_numbers() -> frozenset[int]:
    numbers = [re.match(r"(\d+)\. ", heading) for heading in headings(DECISIONS)]
    return frozenset(int(match[1]) for match in numbers if match)


def unknown_citations(text: str) -> list[str]:
    """What a text cites and the repository does not have."""
    wrong = [match[0] for match in _BESIDE.finditer(text)]
    for match in _PAGE.finditer(text):
        page, section = ROOT / match[1], match[2]
        if match[1] in _WRITTEN:
            continue
        if not page.is_file():
            wrong.append(match[1])
        elif section and not any(section.startswith(heading) for heading in headings(page)):
            wrong.append(match[0])
    for match in _DECISIONS.finditer(text):
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        wrong += [match[0]] if set(numbers) - decision_numbers() else []
    return wrong


def test_sources_cite_what_exists():
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sources()
        if (found := unknown_citations(text_of(path)))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("see docs/spark.md and README.md.", []),
        ("Commits (docs/design/files-and-commits.md, Order of a commit).", []),
        ("Literals (decision 21), classes (decisions 7 to 10 and 37).", []),
        ("Commits (commit.md, Order of a commit).", ["commit.md"]),
        (
            "Commits (docs/design/files-and-commits.md, Order of a dinner).",
            ["docs/design/files-and-commits.md, Order of a dinner"],
        ),
        ("Literals (decision 99).", ["decision 99"]),
        ("The classes of type-system.txt.", ["type-system.txt"]),
    ],
)
def test_a_citation_of_nothing_is_found(text, wrong):
    assert unknown_citations(text) == wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_link_to_what_exists(page):
    wrong = []
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        anchors = map(anchor_of, headings(target)) if anchor and target.exists() else ()
        if not target.exists() or (anchor and anchor not in anchors):
            wrong.append(link)
    for path in _PATH.findall(text):
        if not (ROOT / path).exists():
            wrong.append(path)
    for match in _DECISIONS.finditer(text):
        numbers = {int(number) for number in re.findall(r"\d+", match[1])}
        wrong += [match[0]] if numbers - decision_numbers() else []
    assert not wrong


def anchor_of(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"[`*]", "", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
