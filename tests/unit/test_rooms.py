"""The rooms of the house: what may import what (docs/design/architecture.md)."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# From the ground up: a room imports only rooms before it.
ROOMS = (
    *("errors", "formatting", "progress", "temporary_files", "java"),
    *("types", "sql", "conditions", "store", "format", "cube", "log", "catalog"),
    *("files", "plan", "gate", "merge", "spark", "write", "maintain", "describe", "warehouse"),
    *("report", "facade", "cli"),
)
# Within Spark's room, likewise.
SPARK = ("compatibility", "jvm", "arrow_types", "frames", "session", "read", "write", "sql")
LARGEST_FILE, LARGEST_FOLDER = 500, 17
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


def modules() -> dict[str, set[str]]:
    """The engine's modules, each with those that it imports, if only for its types.

    The library's face imports whatever it shows, so that it says nothing of layers.
    """
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in ENGINE
        if file != ROOT / "ktk_engine" / "__init__.py"
    }

    def module_of(name: str) -> str:
        while name and name not in files:
            name = name.rpartition(".")[0]
        return name

    return {
        module: {module_of(name) for name in imports(file)} - {"", module}
        for module, file in files.items()
    }


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that all reach one another (strongly connected components)."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        ahead = [start]
        while ahead:
            new = graph[ahead.pop()] - found
            found |= new
            ahead += new
        return found

    reach = {module: reached(module) for module in graph}
    groups = {
        tuple(sorted(other for other in reach[module] if module in reach[other]))
        for module in graph
    }
    return [list(group) for group in sorted(groups) if group]


def packages(file: Path) -> set[str]:
    """The packages that a run of a file imports."""
    return {name.partition(".")[0] for name in imports(file, at_run_time=True)}


def upward(parts: tuple[str, ...], order: tuple[str, ...], prefix: str) -> list[str]:
    """Imports of a file from rooms that are not below its own."""
    name, file = parts[0].removesuffix(".py"), ROOT.joinpath(*prefix.split("."), *parts)
    found = []
    for module in imports(file):
        if module.startswith(f"{prefix}."):
            room = module.removeprefix(f"{prefix}.").partition(".")[0]
            if room != name and order.index(room) > order.index(name):
                found.append(module)
    return found


@pytest.mark.parametrize("file", ENGINE, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_import_runs_up(file):
    parts = file.relative_to(ROOT / "ktk_engine").parts
    if parts == ("__init__.py",):
        return  # the library's face
    assert upward(parts, ROOMS, "ktk_engine") == []
    if parts[0] == "spark" and parts[1] != "__init__.py":
        assert upward(parts[1:], SPARK, "ktk_engine.spark") == []


def test_nobody_inside_needs_the_face():
    """`ktk_engine` itself hands on `Store`, which stands above all rooms: it is for outsiders."""
    wrong = [
        str(file.relative_to(ROOT))
        for file in (*ENGINE, *ADAPTER)
        for node in ast.walk(parsed(file))
        if (isinstance(node, ast.ImportFrom) and node.module == "ktk_engine")
        or (isinstance(node, ast.Import) and "ktk_engine" in {item.name for item in node.names})
    ]
    assert wrong == []


def test_no_imports_run_in_a_circle():
    """Not for types either: of two modules that need each other's words, none can be read alone."""
    assert circles(modules()) == []


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"e", "a"}}
    assert circles(graph) == [["b", "c"], ["e", "f"]]


def test_only_sparks_room_needs_spark():
    outside = [file for file in ENGINE if "spark" not in file.relative_to(ROOT).parts]
    assert [file for file in outside if "pyspark" in packages(file)] == []


def test_the_engine_knows_no_dbt():
    assert [file for file in ENGINE if "dbt" in packages(file)] == []


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
    assert found == {"jvm.py", "compatibility.py", "gateway.py"}  # the last starts the JVM


def test_files_and_folders_are_small():
    files = [file for file in (*ENGINE, *ADAPTER) if file.name != "__init__.py"]
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert [file for file, count in lines.items() if count > LARGEST_FILE] == []
    folders = {file.parent for file in files}
    sizes = {folder: len([f for f in files if f.parent == folder]) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > LARGEST_FOLDER} == {}


def test_tests_import_from_no_other_test():
    """What several tests need has a module of its own."""
    wrong = [
        (str(file.relative_to(ROOT)), module)
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for module in imports(file)
        if module.startswith("tests.") and ".test_" in module
    ]
    assert wrong == []
