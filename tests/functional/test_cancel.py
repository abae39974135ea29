"""Ctrl-C, `--fail-fast` and time limits stop Spark's work, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtConfigError

from tests.conftest import SPARK_SETTINGS
from tests.functional.relations import rows
from tests.functional.waiting import wait_for
from tests.support.spark import start_session
from tests.support.stores import tree

ARTIFACTS = True

SLOW = "range(0, 10000000, 1, 1) a cross join range(0, 99999, 1, 1) b where hash(a.id, b.id) = 1"
ENDLESS = f"select a.id from {SLOW}"
BY_VARIABLE = "{% if var('slow', false) %} " + ENDLESS + " {% else %} select 1L as id {% endif %}"

# Its first task writes a file, its second one waits.
HALF_WRITTEN = """
def model(dbt, session):
    if dbt.config.get("wait") != "yes":
        return session.range(2)

    def rows(batches):
        import time
        for batch in batches:
            if 1 in batch["id"].to_pylist():
                time.sleep(600)
            yield batch

    return session.range(0, 2, 1, 2).mapInArrow(rows, "id bigint")
"""
COLLECTS = f"""
def model(dbt, session):
    if dbt.config.get("wait") == "yes":
        session.sql("select count(*) from {SLOW}").collect()
    return session.range(2)
"""
PYTHON_CONFIG = """
models:
  - name: half_written
    config: {materialized: table, wait: "{{ 'yes' if var('slow', false) else 'no' }}"}
  - name: collects
    config: {materialized: table, wait: "{{ 'yes' if var('slow', false) else 'no' }}"}
"""
CELLS = "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], indexes=[]) }} "


def log_of(project) -> str:
    """The log of the other process."""
    log = Path(project.project_root) / "other" / "dbt.log"
    return log.read_text() if log.exists() else ""


def is_writing(warehouse: Path, name: str) -> bool:
    """Whether a run has announced that it writes a dataset."""
    return any(f'{name}"' in path.read_text() for path in warehouse.rglob("intent/*.json"))


class TestInterrupt:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        """Slots for all models at once."""
        settings = {**SPARK_SETTINGS, "spark.master": "local[6]", "spark.driver.memory": "1g"}
        return {**dbt_profile_target, "server_side_parameters": settings}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "plain.sql": "{{ config(materialized='table') }} " + BY_VARIABLE,
            "cells.sql": CELLS + BY_VARIABLE,
            "half_written.py": HALF_WRITTEN,
            "collects.py": COLLECTS,
            "schema.yml": PYTHON_CONFIG,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        hook = f"{{{{ 'select count(*) from {SLOW}' if var('hook', false) else 'select 1' }}}}"
        return {"on-run-start": [hook]}

    @pytest.fixture(scope="class")
    def warehouse(self, project) -> Path:
        run_dbt(["run"])
        return Path(project.project_root) / "warehouse"

    @contextmanager
    def started(self, project, *arguments: str) -> Iterator[subprocess.Popen]:
        program = "from dbt.cli.main import cli; cli()"
        process = subprocess.Popen(
            [sys.executable, "-c", program, "run", "--log-path", "other", *arguments],
            cwd=project.project_root,
            env={**os.environ, "DBT_PROFILES_DIR": str(project.profiles_dir)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def interrupt(self, process: subprocess.Popen) -> str:
        """As a terminal does it: every process of the group gets the signal."""
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=30)
        return text

    def test_ends_what_spark_does_and_leaves_the_store_as_it_was(self, project, warehouse):
        before = tree(warehouse)
        files = len(list(warehouse.rglob("half_written/**/*.parquet")))
        written = ("plain", "cells", "half_written")
        with self.started(project, "--threads", "4", "--vars", "{slow: true}") as process:
            wait_for(lambda: all(is_writing(warehouse, name) for name in written))
            wait_for(lambda: len(list(warehouse.rglob("half_written/**/*.parquet"))) > files)
            wait_for(lambda: "executing node model.test.collects" in log_of(project))
            text = self.interrupt(process)
        assert process.returncode == 2
        for name in (*written, "collects"):
            assert f"model.test.{name} was cancelled. Uncommitted changes" in text
            assert f"CANCEL query model.test.{name}" in text
        assert "Exited because of keyboard interrupt" in text
        assert "py4j" not in text
        assert "\tat org.apache" not in text
        assert tree(warehouse) == before

    def test_ends_a_hook_in_dbts_main_thread(self, project, warehouse):
        before = tree(warehouse)
        with self.started(project, "--vars", "{hook: true}") as process:
            wait_for(lambda: "\nselect count(*) from range(0, 10000000" in log_of(project))
            text = self.interrupt(process)
        assert process.returncode == 2
        assert text.count("Traceback") == 1, text  # dbt's own, of the interrupt
        assert "START sql table" not in text
        assert tree(warehouse) == before


FAILS = """
import os, time

def model(dbt, session):
    while not os.path.exists(os.environ["KTK_TEST_STARTED"]):
        time.sleep(0.05)
    if dbt.config.get("materialized"):
        raise ValueError("on purpose")
    return session.range(1)
"""


class TestFailFast:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "fails.py": FAILS,
            "slow.sql": "{{ config(materialized='table') }} " + ENDLESS,
            "schema.yml": "models: [{name: fails, config: {materialized: table}}]",
        }

    def test_cancels_other_models_but_no_job_of_the_host(self, project, tmp_path, monkeypatch):
        started, finish = tmp_path / "started", tmp_path / "finish"
        monkeypatch.setenv("KTK_TEST_STARTED", str(started))
        host = start_session(SPARK_SETTINGS)
        found: list[int] = []

        def wait(value: int) -> int:
            while not finish.exists():
                time.sleep(0.05)
            return value

        def work() -> None:
            found.extend(host.sparkContext.parallelize([7], 1).map(wait).collect())

        jobs = threading.Thread(target=work)
        jobs.start()
        warehouse = Path(project.project_root) / "warehouse"

        def tell() -> None:
            wait_for(lambda: is_writing(warehouse, "slow"))
            wait_for(lambda: len(host.sparkContext.statusTracker().getActiveJobsIds()) == 2)
            started.touch()

        telling = threading.Thread(target=tell)
        telling.start()
        command = ["run", "--fail-fast", "--threads", "2"]
        try:
            results, log = run_dbt_and_capture(command, expect_pass=False)
        finally:
            finish.touch()
            jobs.join()
            telling.join()
        assert found == [7]
        assert "model.test.slow was cancelled. Uncommitted changes were discarded." in log
        assert {r.node.name: str(r.status) for r in results}["slow"] == "skipped"
        assert not list(warehouse.rglob("*.parquet"))
        assert not host.sparkContext.statusTracker().getActiveJobsIds()


class TestTimeLimit:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return {**dbt_profile_target, "query_timeout": 1}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "of_the_profile.sql": "{{ config(materialized='table') }} " + ENDLESS,
            "of_its_own.sql": "{{ config(materialized='table', query_timeout=1.5) }} " + ENDLESS,
            "python.py": f"def model(dbt, session):\n    dbt.config(materialized='table')\n"
            f"    session.sql('select count(*) from {SLOW}').collect()\n"
            "    return session.range(1)\n",
            "patient.py": PATIENT,
            "hooked.sql": "{{ config(materialized='table', query_timeout=6, "
            f"post_hook='select count(*) from {SLOW}') }}}} select 1 as id",
        }

    @pytest.fixture(scope="class")
    def tests(self):
        return {"slow_test.sql": ENDLESS}

    @pytest.fixture(scope="class")
    def snapshots(self):
        config = "unique_key='id', strategy='check', check_cols='all'"
        text = "{% snapshot kept %}{{ config(" + config + ") }} "
        return {"kept.sql": text + ENDLESS + " {% endsnapshot %}"}

    @pytest.mark.parametrize(
        ("model", "limit", "setting"),
        [
            ("of_the_profile", "1 second", "`query_timeout` in the profile"),
            ("of_its_own", "1.5 seconds", "the config `query_timeout`"),
            ("python", "1 second", "`query_timeout` in the profile"),
        ],
    )
    def test_says_model_limit_and_setting(self, project, model, limit, setting):
        (result,) = run_dbt(["run", "-s", model], expect_pass=False)
        said = f"model.test.{model} was cancelled after {limit}: {setting} allows no more."
        assert said in result.message
        assert result.message.count("Error") == 1
        assert not list((Path(project.project_root) / "warehouse").rglob(f"{model}/**/*.parquet"))
        assert not start_session(SPARK_SETTINGS).sparkContext.statusTracker().getActiveJobsIds()

    def test_holds_for_snapshots(self, project):
        (result,) = run_dbt(["snapshot"], expect_pass=False)
        assert "snapshot.test.kept was cancelled after 1 second" in result.message
        assert not list((Path(project.project_root) / "warehouse").rglob("kept/**/*.parquet"))

    def test_zero_is_no_limit(self, project):
        run_dbt(["run", "-s", "patient"])

    def test_holds_for_tests(self, project):
        (result,) = run_dbt(["test"], expect_pass=False)
        assert "test.test.slow_test was cancelled after 1 second" in result.message

    def test_holds_for_each_statement_and_keeps_what_was_committed(self, project):
        (result,) = run_dbt(["run", "-s", "hooked"], expect_pass=False)
        assert "model.test.hooked was cancelled after 6 seconds" in result.message
        run_dbt(["run", "-s", "patient"])
        assert rows(project, "select * from {s}.hooked") == [(1,)]


PATIENT = """
def model(dbt, session):
    dbt.config(materialized="table", query_timeout=0)

    def rows(batches):
        import time
        time.sleep(2)
        yield from batches

    return session.range(0, 1, 1, 1).mapInArrow(rows, "id bigint")
"""


class TestWrongTimeLimit:
    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "{{ config(materialized='table', query_timeout=-1) }} select 1 as id"}

    def test_is_refused_before_anything_runs(self, project):
        with pytest.raises(DbtConfigError, match="Model m: config `query_timeout` must be a"):
            run_dbt(["run"])
        assert not (Path(project.project_root) / "target" / "run_results.json").exists()
