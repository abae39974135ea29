"""Each rule of the gate through dbt: the message, the untouched store, and the suggested fix.

Golden texts lie in `golden/`; run with KTK_GOLDEN=write to rewrite them, and read the diff.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, write_file

from tests.functional.gate_cases import CASES, EXTRA, SEED, YAML, Case
from tests.support.stores import tree

GOLDEN = Path(__file__).parent / "golden"


class TestGateRules:
    @pytest.fixture(scope="class")
    def models(self):
        return {"cells.sql": SEED, "extra.sql": EXTRA, "schema.yml": YAML}

    @pytest.fixture
    def texts(self, project):
        """A fresh, built project; gives its texts."""
        root = Path(project.project_root)
        shutil.rmtree(root / "warehouse", ignore_errors=True)
        texts = {"cells.sql": SEED, "extra.sql": EXTRA, "schema.yml": YAML}
        _write(root, texts)
        run_dbt(["run"])
        return texts

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_rule(self, project, texts, case: Case):
        root = Path(project.project_root)
        broken = _changed(texts, case.broken)
        _write(root, broken)
        before = tree(root / "warehouse")
        (result,) = run_dbt(["run", "-s", case.model, *case.flags], expect_pass=False)
        assert tree(root / "warehouse") == before
        message = result.message.replace(project.test_schema, "<schema>")
        _compare(case.name, message)
        self.findings_are_data(root, case.model, message)
        _write(root, _changed(broken, case.fixed))
        run_dbt(["run", "-s", case.model, *case.fixed_flags])

    def findings_are_data(self, root: Path, model: str, message: str) -> None:
        name = f"target/ktk_findings/model.test.{model}.json"
        if "breaks" in message and name not in message:
            return
        assert name in message
        findings = json.loads((root / name).read_text())
        assert findings
        assert all(item["rule"] for item in findings)
        assert all(column in message for item in findings for column in item["column"].split(", "))


def _write(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        write_file(text, str(root / "models" / name))


def _changed(texts: dict[str, str], changes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Apply replacements; each must change something."""
    for old, new in changes:
        assert any(old in text for text in texts.values()), old
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    return texts


def _compare(name: str, message: str) -> None:
    lines = [line.rstrip() for line in message.strip().splitlines()]
    text = "\n".join(lines) + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("KTK_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
