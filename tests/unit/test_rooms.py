"""The rooms of the house: what import-linter cannot check (docs/design/architecture.md).

It reads no adapter, since parts of `dbt.adapters` lie elsewhere, and knows imports for types alone
only in all its rules or in none.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST_FILE = 500
ENGINE = sorted((ROOT / "ktk_engine").rglob("*.py"))
ADAPTER = sorted((ROOT / "dbt" / "adapters" / "ktk").rglob("*.py"))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path, at_run_time: bool = False) -> Iterator[str]:
    """Names of the modules that a file imports, or only of those that a run of it imports."""
    tree = parsed(file)
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if at_run_time and id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages(file: Path) -> set[str]:
    """The packages that a run of a file imports."""
    return {name.partition(".")[0] for name in imports(file, at_run_time=True)}


def test_the_adapter_needs_not_the_face():
    """`ktk_engine` itself hands on `Store`, which stands above all rooms: it is for outsiders."""
    wrong = [
        str(file.relative_to(ROOT))
        for file in ADAPTER
        for node in ast.walk(parsed(file))
        if (isinstance(node, ast.ImportFrom) and node.module == "ktk_engine")
        or (isinstance(node, ast.Import) and "ktk_engine" in {item.name for item in node.names})
    ]
    assert wrong == []


def test_only_sparks_room_needs_spark():
    outside = [file for file in ENGINE if "spark" not in file.relative_to(ROOT).parts]
    assert [file for file in outside if packages(file) & {"pyspark", "py4j"}] == []


def test_the_adapter_needs_no_dbt_core():
    own = ("dbt.adapters", "dbt_common", "dbt.include.ktk")
    wrong = [
        (file.name, module)
        for file in ADAPTER
        for module in imports(file)
        if module.startswith("dbt") and not module.startswith(own)
    ]
    assert wrong == []


def test_one_file_touches_sparks_internals():
    words = ("_jvm", "_jsc", "_jdf", "_jsparkSession", "_gateway")
    found = {
        file.name
        for file in (*ENGINE, *ADAPTER)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Attribute) and node.attr in words
    }
    java = {"classic.py", "classic_jobs.py", "gateway.py"}  # the last starts it
    assert found == {*java, "compatibility.py"}


def test_files_are_small():
    files = [file for file in (*ENGINE, *ADAPTER) if file.name != "__init__.py"]
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert [file for file, count in lines.items() if count > LARGEST_FILE] == []


def test_the_distribution_names_all_packages():
    """`tests/integration/processes/test_wheels.py` builds it; this says at once what is missing."""
    folder = ROOT / "ktk_engine"
    built = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {".".join(file.parent.relative_to(ROOT).parts) for file in ENGINE}
    assert sorted(packages) == built["tool"]["setuptools"]["packages"]


def test_pages_list_the_rooms_in_their_order():
    """As import-linter has them, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = [name for name in layers if (ROOT / "ktk_engine" / name).is_dir()]
    said = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[1].splitlines()
    (engine,) = (i for i, line in enumerate(said) if line.startswith("ktk_engine/"))
    (adapter,) = (i for i, line in enumerate(said) if line.startswith("dbt/adapters/ktk/"))
    assert said[engine + 1].split() == rooms[::-1]
    folders = {file.relative_to(ADAPTER[0].parent).parts[0] for file in ADAPTER}
    named = said[adapter + 1].partition(",")[0].split()
    assert sorted(named) == sorted(name for name in folders if not name.endswith(".py"))
    page = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?`) \|", page.partition("\n## Rooms\n")[2], re.M)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == rooms


def test_contributing_names_the_files_that_decide_by_type():
    """Its list is what its command prints, without times of commits."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Adding a type")[2].partition("\n## ")[0]
    (words,) = re.findall(r"git grep -nwE '(.+)' ktk_engine dbt", section)
    pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
    found = [file for file in (*ENGINE, *ADAPTER) if pattern.search(file.read_text("utf-8"))]
    of_commits = {"describe", "log", "report"}
    found = [file for file in found if not of_commits & set(file.relative_to(ROOT).parts)]
    named = re.findall(r"`((?!tests/)[\w/]+\.py)`", section)
    assert [file for file in found if not str(file).endswith(tuple(f"/{n}" for n in named))] == []
    assert [n for n in named if not any(str(file).endswith(f"/{n}") for file in found)] == []


def test_tests_import_from_no_other_test():
    """What several tests need has a module of its own."""
    wrong = [
        (str(file.relative_to(ROOT)), module)
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for module in imports(file)
        if module.startswith("tests.") and ".test_" in module
    ]
    assert wrong == []
