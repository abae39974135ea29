"""Wheels of both distributions, built from their sdists; the engine's works alone.

`make test-wheels` also builds the sample project with both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.functional.snippets import snippets_of

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("ktk_engine", "dbt", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
# Of the engine's folder, what says how it is built and is not a part of the package.
BESIDE = {"ktk_engine/LICENSE", "ktk_engine/README.md", "ktk_engine/pyproject.toml"}
UV = os.environ.get("KTK_UV") or "uv"
# What is said in place of an index that cannot be reached.
NO_INDEX = re.compile(r"error sending request|client error \(Connect\)|dns error|timed out")

NEEDS = re.compile(r"# needs ktk-engine\[(\w+)\]")
PYTHON_BLOCKS = [
    block
    for page in ("start-python.md", "python.md")
    for block in snippets_of((ROOT / "docs" / page).read_text(encoding="utf-8"))
    if block.language == "python" and block.is_run
]
# What the page asks of the sample project's cube and table, and no more.
STORE = """
import datetime
import pyarrow as pa
from ktk_engine import Store

store = Store("./warehouse/analytics")
hours = [datetime.datetime(2013, 1, 1, hour) for hour in range(4)]
place = {"origin": ["EWR"] * 4, "month": [1] * 4, "time_hour": hours}
delays = {"carrier": ["UA"] * 4, "dest": ["SFO", "LAX"] * 2, "dep_delay": [1.0, 2.0, 3.0, 4.0]}
gusts = {"wind_gust": [20.0, 25.0, 35.0, 40.0]}
store.build(
    "nyc",
    {"flights": pa.table({**place, **delays}), "weather": pa.table({**place, **gusts})},
    seed="flights",
    dimension_columns=["carrier", "time_hour"],
    partition_by=["origin", "month"],
    indexes=["dest"],
)
late = pa.table({"airline": ["United", "Delta"], "minutes_lost": [120.0, 8.0]})
store.write_table("late_in_gusts", late)
"""
ALONE = """
import sys
from importlib.util import find_spec
others = {"dbt", "pyspark", "py4j", "pandas", "click", "rich", "yaml"}
assert [name for name in others if find_spec(name)] == []
"""


def uv(*arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run uv; the test is skipped where there is none, or no package index is reached."""
    try:
        done = subprocess.run([UV, *arguments], cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no uv here: KTK_UV names one")
    if done.returncode and NO_INDEX.search(done.stderr):
        pytest.skip("no package index is reached from here")
    if done.returncode == 127:
        pytest.skip("the uv on PATH does not start: KTK_UV names another")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheels, each built from the sdist, by the beginning of their names."""
    clone, built = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, clone / name, symlinks=True, ignore=NOT_SOURCES)
        else:
            shutil.copy(ROOT / name, clone)
    uv("build", "--quiet", "--all-packages", "--out-dir", built, cwd=clone)
    assert len(list(built.glob("*.tar.gz"))) == 2
    assert not (clone / "ktk_engine" / "build").exists()
    return {path.name.partition("-")[0]: path for path in built.glob("*.whl")}


class Environment:
    """A Python environment of its own, in a folder with the store that the page asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
        # The versions of the lock: they are there already.
        self.locked = folder / "constraints.txt"
        options = ("--quiet", "--frozen", "--no-default-groups", "--all-extras", "--no-hashes")
        exported = uv("export", *options, "--package", "ktk-engine", "--no-emit-workspace")
        self.locked.write_text(exported, encoding="utf-8")

    def install(self, requirement: str) -> None:
        options = ("--quiet", "--python", self.folder / "venv", "--constraint", self.locked)
        uv("pip", "install", *options, requirement, cwd=self.folder)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which knows nothing of this repository."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        command = [self.folder / "venv" / "bin" / program, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )

    def python(self, text: str) -> subprocess.CompletedProcess[str]:
        return self.run("python", "-c", text)


@pytest.fixture(scope="module")
def alone(wheels, tmp_path_factory) -> Environment:
    """An environment with the engine, and a store that it has built."""
    environment = Environment(tmp_path_factory.mktemp("alone"))
    environment.install(str(wheels["ktk_engine"]))
    built = environment.python(ALONE + STORE)
    assert built.returncode == 0, built.stderr
    return environment


@pytest.mark.parametrize(("name", "folder"), [("ktk_engine", "ktk_engine"), ("dbt_ktk", "dbt")])
def test_a_wheel_has_all_that_its_folder_has(wheels, name, folder):
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if not any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)
    }
    with ZipFile(wheels[name]) as wheel:
        packed = {path for path in wheel.namelist() if ".dist-info/" not in path}
        beside = {Path(path).name for path in wheel.namelist() if ".dist-info/" in path}
    assert packed == sources - BESIDE
    assert "LICENSE" in beside


def test_dbt_ktk_needs_the_engine_of_its_version(wheels):
    with ZipFile(wheels["dbt_ktk"]) as wheel:
        (name,) = (path for path in wheel.namelist() if path.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    version = wheels["ktk_engine"].name.split("-")[1]
    assert metadata["Version"] == version
    assert f"ktk-engine[cli,spark]=={version}" in metadata.get_all("Requires-Dist")


def test_the_engine_alone_runs_the_examples_of_its_page(alone):
    blocks = [block.text for block in PYTHON_BLOCKS if not NEEDS.search(block.text)]
    assert len(blocks) >= 5
    done = alone.python("\n".join([ALONE, *blocks]))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "block", [b for b in PYTHON_BLOCKS if NEEDS.search(b.text)], ids=lambda block: block.line
)
def test_an_example_that_needs_more_says_what_to_install(alone, block):
    (extra,) = NEEDS.findall(block.text)
    done = alone.python(block.text)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ktk_engine.errors.") and f"'ktk-engine[{extra}]'." in said


def test_the_command_says_what_to_install(alone):
    done = alone.run("ktk", "info", "nyc")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: The command ktk needs packages that are not installed here (click, rich, yaml): "
        "pip install 'ktk-engine[cli]'."
    ]


def test_extras_bring_what_is_missing(alone, wheels, tmp_path):
    shutil.copytree(alone.folder / "warehouse", tmp_path / "warehouse")
    environment = Environment(tmp_path)
    environment.install(f"{wheels['ktk_engine']}[cli,pandas]")
    blocks = [block.text for block in PYTHON_BLOCKS if "ktk-engine[pandas]" in block.text]
    done = environment.python("\n".join(blocks))
    assert blocks and done.returncode == 0, done.stderr
    assert environment.run("ktk", "--version").stdout.startswith("ktk, version ")
    done = environment.run("ktk", "--store", "warehouse/analytics", "explain", "nyc", "month = 1")
    assert "flights: files 1 -> 1 (partitions 1" in done.stdout
