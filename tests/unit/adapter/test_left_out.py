"""docs/dbt-tests.md lists what is left out of dbt-tests-adapter's suites, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import dbt.tests.adapter
import pytest

from tests.functional.adapter.left_out import NOT_INHERITED, LeftOut, parse_marker

ROOT = Path(__file__).parents[3]
SUITES = sorted((ROOT / "tests" / "functional" / "adapter").glob("test_*.py"))
PAGE = (ROOT / "docs" / "dbt-tests.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("| ").split(" | "))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| Case", "| Class", "| ---"))
]


def own_classes(path: Path) -> Iterator[type]:
    module = importlib.import_module(f"tests.functional.adapter.{path.stem}")
    for _, item in inspect.getmembers(module, inspect.isclass):
        if item.__module__ == module.__name__ and item.__name__.startswith("Test"):
            yield item


def markers(item: object) -> Iterator[tuple[str, pytest.Mark]]:
    """Markers of a class or function, and those of its parameters."""
    for mark in getattr(item, "pytestmark", []):
        yield "", mark
        if mark.name == "parametrize":
            for value in mark.args[1]:
                for inner in getattr(value, "marks", ()):
                    yield f"[{'-'.join(map(str, value.values))}]", inner


def skipped() -> Iterator[tuple[str, LeftOut]]:
    for path in SUITES:
        for owner in own_classes(path):
            tests = inspect.getmembers(owner, inspect.isfunction)
            for name, item in [("", owner), *(t for t in tests if t[0].startswith("test_"))]:
                for parameter, mark in markers(item):
                    if mark.name == "left_out":
                        case = ".".join(filter(None, (owner.__name__, name))) + parameter
                        yield case, parse_marker(mark, case)


def bases(path: Path) -> Iterator[str]:
    """Classes with tests that the package offers for a group."""
    group = path.stem.removeprefix("test_")
    package = Path(dbt.tests.adapter.__path__[0])
    (folder,) = [f for f in (package / group, package / f"{group}_tests") if f.is_dir()]
    prefix = f"dbt.tests.adapter.{folder.name}."
    found = [item.name for item in pkgutil.iter_modules([str(folder)], prefix)]
    inner = [f for f in folder.iterdir() if f.is_dir() and not f.name.startswith("_")]
    for child in inner:
        found += [m.name for m in pkgutil.iter_modules([str(child)], f"{prefix}{child.name}.")]
    for name in found:
        for _, item in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            tests = [t for t, _ in inspect.getmembers(item, inspect.isfunction)]
            own = item.__module__ == name and not item.__name__.startswith("Test")
            if own and any(test.startswith("test_") for test in tests):
                yield item.__name__


def test_the_page_lists_every_skipped_case():
    rows = {(c, item.storage or "both", item.reason, item.why) for c, item in skipped()}
    assert {row for row in ROWS if len(row) == 4} == rows


def test_the_page_lists_every_class_that_is_not_inherited():
    rows = {(name, *reason) for name, reason in NOT_INHERITED.items()}
    assert {row for row in ROWS if len(row) == 3} == rows


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_class_of_the_package_is_inherited_or_listed(path):
    inherited = {base.__name__ for item in own_classes(path) for base in item.__mro__}
    missing = set(bases(path)) - inherited - set(NOT_INHERITED)
    assert not missing


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "missing 2 required"),
        (("it is slow", "very"), {}, "left_out needs a reason"),
        (("refused by a decision", "which?"), {}, "left_out needs a reason"),
        (("a defect of the suite (somewhere)", "x"), {}, "left_out needs a reason"),
        (("not a Spark feature", " "), {}, "left_out needs a reason"),
        (("not a Spark feature", "x"), {"storage": "disk"}, "knows no storage 'disk'"),
        (("not a Spark feature", "x"), {"when": "cube"}, "unexpected keyword"),
    ],
)
def test_a_skip_without_one_of_the_reasons_is_refused(args, keywords, message):
    with pytest.raises(pytest.UsageError, match=message):
        parse_marker(pytest.Mark("left_out", args, keywords, _ispytest=True), "here")
