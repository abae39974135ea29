"""Tests take the engine from `tests.support`; what reaches deeper is of that room, or says why.

So a module that moves or gets another name changes one file of `tests/support`, and the tests of
its own room.
"""

import ast
import re
import token
from collections import defaultdict
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tokenize import generate_tokens

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
# What users have too.
PUBLIC = (
    *("ktk_engine", "ktk_engine.errors", "ktk_engine.api", "ktk_engine.cli.main"),
    *("ktk_engine.polars", "ktk_engine.duckdb", "ktk_engine.spark.data_source"),
)
# What the tests below a path are tests of, where its name is not that of the room in tests/unit.
ROOMS = {
    "corpus": ("types", "conditions", "format", "cube"),
    "integration/delta": ("publish",),
    "integration/iceberg": ("publish",),
    "integration/kartothek": ("maintain.adoption",),
    "integration/processes": ("spark.session", "java"),
    "integration/random": ("plan", "local"),
    "integration/stores": ("store",),
    "spark": ("spark", "sql", "change"),
    "spark/test_class_archive.py": ("spark", "java", "cli.commands.build_class_archive"),
    "spark/test_verify_in_memory.py": ("spark", "write"),
    "unit/test_extras.py": ("extras",),
    "unit/test_formatting.py": ("formatting",),
    "unit/publish": ("publish", "log"),
    "unit/snapshot": ("snapshot", "conditions"),
    "unit/types": ("types", "conditions"),
    "unit/write": ("write", "change"),
}
# Modules by name are what these are about.
NAMING = {
    *("integration/processes/test_imports.py", "integration/processes/test_pyspark_imports.py"),
    *("unit/test_rooms.py", "unit/test_support.py"),
}
MODULE = re.compile(r"\bktk_engine(?:\.[a-z_0-9]+)+")
TEXTS = (token.STRING, getattr(token, "FSTRING_MIDDLE", token.STRING))  # since Python 3.12
REASON = re.compile(r"# deep: \w")


def rooms_of(file: str) -> tuple[str, ...]:
    """The rooms, or parts of one, that a file below `tests` is a test of."""
    folder = file.rpartition("/")[0]
    own = (folder.removeprefix("unit/"),) if folder.startswith("unit/") else ()
    return ROOMS.get(file) or ROOMS.get(folder) or own


def named(text: str) -> Iterator[tuple[str, range]]:
    """Modules of the engine that a file names, each with the lines on which a reason may stand.

    Names in texts count too: what is patched by its name, and the programs of other processes.
    """
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, range(node.lineno, node.end_lineno + 1)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, range(node.lineno, node.end_lineno + 1)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.lineno)
    for found in generate_tokens(StringIO(text).readline):
        if found.type in TEXTS and found.start[0] not in docstrings:
            for number, line in enumerate(found.string.splitlines(), found.start[0]):
                for module in MODULE.findall(line):
                    yield module, range(number, number + 1)


def is_deep(module: str, rooms: tuple[str, ...]) -> bool:
    """Whether a module is one of the engine's that tests of these rooms do not import."""
    package, _, inner = module.partition(".")
    if package != "ktk_engine" or module in PUBLIC:
        return False
    room = inner.partition(".")[0]
    if not any((ROOT / package / name).exists() for name in (room, f"{room}.py")):
        return False  # a name that the face hands on
    return not any(f"{inner}.".startswith(f"{own}.") for own in rooms)


def wrong_lines(text: str, rooms: tuple[str, ...]) -> list[str]:
    """Lines that reach deeper without a reason, or have a reason and do not reach deeper."""
    lines = ["", *text.splitlines()]
    deep = [at for module, at in named(text) if is_deep(module, rooms)]
    bare = [at[0] for at in deep if not any(REASON.search(lines[number]) for number in at)]
    reached = {number for at in deep for number in at}
    idle = [n for n, line in enumerate(lines) if REASON.search(line) and n not in reached]
    return [f"{number}: {lines[number].strip()}" for number in sorted({*bare, *idle})]


def test_what_reaches_deeper_says_why():
    wrong = {}
    for path in sorted(TESTS.rglob("*.py")):
        file = path.relative_to(TESTS).as_posix()
        if file in NAMING or file.startswith("support/"):
            continue
        if found := wrong_lines(path.read_text(encoding="utf-8"), rooms_of(file)):
            wrong[file] = found
    assert wrong == {}, "take it from tests/support, or end the line with `# deep: <why>`"


def test_one_file_of_support_imports_a_module():
    importers = defaultdict(set)
    for path in (TESTS / "support").glob("*.py"):
        for module, _ in named(path.read_text(encoding="utf-8")):
            if is_deep(module, ()):
                importers[module].add(path.name)
    assert {module: files for module, files in importers.items() if len(files) > 1} == {}


def test_a_line_that_reaches_deeper_is_found():
    text = '''"""Of ktk_engine.log.state."""
from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.log.state import resolve
from ktk_engine.log.chain import (  # deep: entries by number
    read_entry,
)
import ktk_engine.local.tasks as tasks
from ktk_engine.local import merge  # deep: of its own room
patch("ktk_engine.log.commit.commit")
PROGRAM = """
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.write.build import build  # deep: in a process
print("ktk_engine.Store")
"""
'''

    def found(*rooms):
        return [int(line.partition(":")[0]) for line in wrong_lines(text, rooms)]

    assert found("local") == [4, 9, 10, 12]
    assert found("log") == [5, 8, 12]
    assert rooms_of("unit/local/test_merge.py") == ("local",)
    assert rooms_of("unit/test_rooms.py") == rooms_of("faults/verbs.py") == ()
