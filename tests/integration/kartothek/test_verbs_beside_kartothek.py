"""Random verbs on a cube that Kartothek wrote; Kartothek reads what comes of them."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize

from tests.support import kartothek
from tests.support.cube_verbs import EXAMPLES, CubeVerbs, joined

PYTHON = os.environ.get("KTK_ORACLE_PYTHON", "")
DAY = date(1970, 1, 1)
CELLS = [
    {"p": "a b", "d": 1, "k": DAY, "v": 0.5},
    {"p": "x", "d": 2, "k": DAY, "v": None},
    {"p": "x", "d": 3, "k": DAY, "v": -1.0},
]
MORE = [{"p": "x", "d": 3, "a": "ü"}, {"p": "x", "d": 5, "a": None}]


class Kartothek:
    """A process of Kartothek's that goes on."""

    def __init__(self) -> None:
        script = str(Path(kartothek.__file__).with_name("kartothek_verbs.py"))
        command = [PYTHON, "-I", "-W", "ignore", script]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, verb: str, folder: Path) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([verb, str(folder)]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class VerbsBesideKartothek(CubeVerbs):
    """The same verbs, on another program's files."""

    kartothek: Kartothek
    written: Path

    @initialize()
    def build(self):
        shutil.copytree(self.written, self.folder, dirs_exist_ok=True)
        self.committed(
            {
                "cells": {(row["p"], row["d"]): row for row in CELLS},
                "more": {(row["p"], row["d"]): row for row in MORE},
            }
        )

    def teardown(self) -> None:
        try:
            if self.model:
                found = self.kartothek.ask("ask", Path(self.folder) / "s")
                assert plain(found) == plain(joined(self.model))
        finally:
            super().teardown()


def plain(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as pandas can hold them: without large integers, NaN as null."""
    found = []
    for row in rows:
        values = {name: value for name, value in row.items() if name != "b"}
        for name, value in values.items():
            if isinstance(value, float) and math.isnan(value):
                values[name] = None
            elif isinstance(value, date):
                values[name] = str(value)
        found.append(repr(sorted(values.items())))
    return sorted(found)


@pytest.mark.skipif(
    not PYTHON, reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`"
)
class TestVerbsBesideKartothek(VerbsBesideKartothek.TestCase):
    settings = settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate, Phase.reuse],
        stateful_step_count=8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @pytest.fixture(autouse=True)
    def _kartothek(self, tmp_path):
        (tmp_path / "s").mkdir()
        VerbsBesideKartothek.kartothek = Kartothek()
        VerbsBesideKartothek.written = tmp_path
        VerbsBesideKartothek.kartothek.ask("build", tmp_path / "s")
        yield
        VerbsBesideKartothek.kartothek.close()
