"""`dbt init`: the profile that it writes works, with the example project that it makes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dbt.cli.main import dbtRunner

from tests.conftest import SPARK_SETTINGS
from tests.support.spark import start_session

ARTIFACTS = True

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, str]:
    """An environment in which the package `dbt` looks as after an installation that copies files.

    dbt lists the adapters whose folders lie next to its own. Those of an editable installation, as
    that of these tests may be, do not.
    """
    folder = tmp_path_factory.mktemp("installed")
    spec = importlib.util.find_spec("dbt")
    assert spec is not None and spec.origin is not None
    for path, own in (("dbt", None), ("dbt/adapters", "ktk"), ("dbt/include", "ktk")):
        (folder / path).mkdir()
        for item in (Path(spec.origin).parents[1] / path).iterdir():
            if item.name not in ("adapters", "include", "ktk"):
                (folder / path / item.name).symlink_to(item)
        if own:
            (folder / path / own).symlink_to(ROOT / path / own)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def init(folder: Path, environment: dict[str, str], answers: list[str]) -> dict:
    """Run `dbt init demo`, answer its questions, and give the target that it writes."""

    def dbt(text: str) -> str:
        command = [sys.executable, "-m", "dbt.cli.main", "init", "demo"]
        command += ["--profiles-dir", str(folder)]
        done = subprocess.run(
            command, cwd=folder, env=environment, input=text, capture_output=True, text=True
        )
        return done.stdout

    listed = re.search(r"\[(\d)\] ktk$", dbt(""), re.MULTILINE)
    assert listed
    for path in sorted((folder / "demo").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "demo").rmdir()
    said = dbt("\n".join([listed[1], *answers, ""]))
    assert "Profile demo written to" in said, said
    return yaml.safe_load((folder / "profiles.yml").read_text())["demo"]["outputs"]["dev"]


def test_the_example_project_runs_with_the_profile(installed, tmp_path, monkeypatch):
    target = init(tmp_path, installed, ["", "", ""])
    assert target == {"type": "ktk", "store": "./warehouse", "schema": "analytics", "threads": 2}
    start_session(SPARK_SETTINGS)
    monkeypatch.chdir(tmp_path / "demo")
    done = dbtRunner().invoke(["run", "--profiles-dir", str(tmp_path)])
    assert done.success, done.exception or [item.message for item in done.result]
    assert [item.message for item in done.result] != []
    stored = tmp_path / "demo" / "warehouse" / "analytics"
    assert (stored / "my_first_dbt_model" / "table").is_dir()
    assert (stored / ".ktk" / "view" / "my_second_dbt_model.json").is_file()


def test_answers_are_data_and_threads_a_number(installed, tmp_path):
    answers = ["/srv/Köln: #1 {x}", "a-b", "many", "4"]
    target = init(tmp_path, installed, answers)
    assert target == {"type": "ktk", "store": answers[0], "schema": "a-b", "threads": 4}
