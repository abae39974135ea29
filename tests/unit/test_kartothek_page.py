"""The page for people who come from Kartothek names all that it offers, and each line is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.kartothek_page import (
    COMMANDS,
    CUBES,
    DATASETS,
    NO_ARGUMENTS,
    TESTS,
)

_ROOT = Path(__file__).parents[2]


def tables():
    """The lines of each table that has tests: first cells and second cells."""
    found, title = {}, ""
    for line in (_ROOT / "docs" / "kartothek.md").read_text().splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("| argument |"):
            title = "arguments of datasets"
        elif line.startswith("| ") and title in TESTS and " here |" not in line:
            theirs, ours = re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=1)
            if theirs != "`kartothek_cube`":
                found.setdefault(title, []).append((theirs, ours))
    return found


def names(*titles):
    """All names in the first cells of tables."""
    cells = [theirs for title in titles for theirs, _ in tables()[title]]
    return {
        word for cell in cells for name in re.findall("`([^`]+)`", cell) for word in name.split()
    }


def test_every_line_has_a_test_or_a_reason():
    assert tables().keys() == TESTS.keys()
    for title, lines in tables().items():
        tested = {re.findall("`([^` ]+)", theirs)[0]: ours for theirs, ours in lines}
        assert len(tested) == len(lines), title
        left_out = {name for name, ours in tested.items() if ours.startswith("left out")}
        assert all(len(ours) > 20 for name, ours in tested.items() if name in left_out)
        missing = tested.keys() - left_out - TESTS[title].keys()
        assert missing == set(), title
        assert TESTS[title].keys() - tested.keys() == set(), title


def test_every_named_test_exists():
    for node in {node for lines in TESTS.values() for node in lines.values()}:
        path, name = node.split("::")
        assert re.search(rf"^ *def {name}\(", (_ROOT / "tests" / path).read_text(), re.MULTILINE), (
            node
        )


@pytest.mark.parametrize(
    ("api", "table"), [(CUBES, "Functions"), (DATASETS, "Datasets"), (COMMANDS, "Commands")]
)
def test_everything_is_on_the_page(api, table):
    assert api.keys() - {""} - names(table) == set()
    taken = {word for words in api.values() for word in words.split()} - NO_ARGUMENTS
    known = "Commands" if table == "Commands" else "Arguments"
    assert taken - names(known, "arguments of datasets") == set()
