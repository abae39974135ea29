"""Threads that need PySpark for the first time at once: docs/design/architecture.md."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [*ROOT.glob("ktk_engine/**/*.py"), *ROOT.glob("dbt/**/*.py")]

TWO_THREADS = """
import importlib, sys, threading, time

failed = []

def load(module, delay):
    time.sleep(delay)
    try:
        importlib.import_module(module)
    except ImportError as error:
        failed.append(f"{module}: {error}")

import pandas, pyarrow, sqlglot
import dbt.adapters.ktk.credentials
whole = threading.Thread(target=load, args=("dbt.adapters.ktk.materialize.temporary_module", 0))
part = threading.Thread(target=load, args=(sys.argv[1], 0.05))
for thread in (whole, part):
    thread.start()
for thread in (whole, part):
    thread.join()
sys.exit("; ".join(failed) or 0)
"""


def parts_before_the_whole(body: list[ast.stmt], whole: bool = False) -> Iterator[int]:
    """Lines that import a part of PySpark where nothing before has imported all of it."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = [module or ""] if module else [item.name for item in node.names]
            whole = whole or "pyspark" in names
            if not whole and any(name.startswith("pyspark.") for name in names):
                yield node.lineno
        for block in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(node, block, None)
            if isinstance(inner, list):
                yield from parts_before_the_whole(inner, whole)


def test_the_whole_is_imported_before_its_parts():
    assert len(FILES) > 100
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in FILES
        for line in parts_before_the_whole(ast.parse(file.read_text()).body)
    ]
    assert found == []


@pytest.mark.parametrize(
    "module", ["ktk_engine.spark.arrow_types", "ktk_engine.spark.sql.sql_session"]
)
def test_two_threads_at_once(module):
    """A Python model and a SQL model that dbt starts at the same time."""
    done = subprocess.run(
        [sys.executable, "-c", TWO_THREADS, module], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
