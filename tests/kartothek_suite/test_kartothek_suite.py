"""Kartothek's own suite for cubes passes against our Python interface, but where we differ.

The cases are those of the installed package (`kartothek/io/testing/*_cube.py`), unchanged. Its
cases of removed partitions are in no package: `remove_cube.py` has ours in their place. Those of
copies compare names of files: `copies_cube.py` has ours about what Kartothek reads of a copy.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kartothek_suite.expected import DIFFERENT, LEFT_OUT, OTHER_WORDS, WIDER

PYTHON = os.environ.get("KTK_ORACLE_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`"
)

HERE = Path(__file__).parent
VERBS = ("build", "extend", "append", "update", "query", "stats", "delete", "cleanup", "copy")
OURS = ("remove", "copies")


@dataclass(frozen=True)
class Case:
    """What came of a case.

    Attributes:
        name: module and function, with parameters.
        noted: what the driver wrote of it.
    """

    name: str
    noted: dict[str, Any]

    @property
    def function(self) -> str:
        return self.name.partition("[")[0]

    @property
    def outcome(self) -> str:
        noted = self.noted
        if noted["outcome"] != "passed":
            return f"{noted['outcome']}: {noted['why']}"
        if noted["words"]:
            return "refused, in other words"
        return "wider" if noted["widened"] else "passes"

    @property
    def expected(self) -> str:
        """The outcome, or what it has to match."""
        for name in (self.name, self.function):
            if name in DIFFERENT:
                return f"failed: .*{DIFFERENT[name].sign}"
            if name in LEFT_OUT:
                return "skipped: .*" + re.escape(LEFT_OUT[name])
            if name in OTHER_WORDS:
                return "refused, in other words$"
        return "(passes|wider)$" if re.match(WIDER, self.name) else "passes$"


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> list[Case]:
    folder = tmp_path_factory.mktemp("suite")
    report = folder / "report.json"
    root = HERE.parents[1]
    server = ["env", f"PYTHONPATH={root}", sys.executable, "-m", "tests.kartothek_suite.serve"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "KTK_SUITE_REPORT": str(report),
        "KTK_SUITE_SERVER": shlex.join(server),
    }
    options = "-c /dev/null -p kartothek_driver -p no:cacheprovider --noconftest --tb short -q"
    python_files = ("-W", "ignore", "-o", "python_files=*_cube.py", "--pyargs")
    modules = [f"kartothek.io.testing.{verb}_cube" for verb in VERBS]
    modules += [f"{verb}_cube" for verb in OURS]
    told = subprocess.run(
        [PYTHON, "-m", "pytest", *options.split(), "--rootdir", folder, *python_files, *modules],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert report.exists(), told.stdout + told.stderr
    return [Case(*item) for item in json.loads(report.read_text(encoding="utf-8")).items()]


@pytest.mark.parametrize("verb", [*VERBS, *OURS])
def test_every_case_has_the_outcome_that_is_written_down(cases, verb):
    own = [case for case in cases if case.name.startswith(f"{verb}_cube::")]
    assert own
    other = {
        case.name: (case.outcome, case.expected)
        for case in own
        if not re.match(case.expected, case.outcome, re.DOTALL)
    }
    assert other == {}


def test_a_refusal_leaves_the_store_as_it_was(cases):
    refusals = [(case.name, *refusal) for case in cases for refusal in case.noted["refusals"]]
    assert len(refusals) > 50
    assert [refusal for refusal in refusals if not refusal[-1]] == []


def test_nothing_is_written_down_that_did_not_run(cases):
    ran = {name for case in cases for name in (case.name, case.function)}
    assert {*DIFFERENT, *LEFT_OUT, *OTHER_WORDS} <= ran
    assert any(case.outcome == "wider" for case in cases)
