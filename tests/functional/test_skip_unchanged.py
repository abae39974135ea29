"""Models that are not run, since their rows would be those that are there: `skip_unchanged`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from copy import deepcopy

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.ktk.materialize import computed_from
from tests.functional.relations import rows, store_of
from tests.support.committed import read_computed, resolve, scope_of
from tests.support.dataset_builder import append_as_kartothek
from tests.support.stores import LocalStore

SEED = "id,v\n1,10\n2,20\n"
MODELS = {
    "shown.sql": "{{ config(materialized='view') }} select id, v from {{ ref('raw') }}",
    "kept.sql": "{{ config(materialized='table') }} select id, v + 1 as w from {{ ref('shown') }}",
    "below.sql": "{{ config(materialized='table') }} select sum(w) as s from {{ ref('kept') }}",
    "daily.sql": "{{ config(materialized='table') }} select *, current_date() as day\n"
    "from {{ ref('kept') }}",
    "hooked.sql": "{{ config(materialized='table', post_hook='select 1') }} select 1 as n",
    "grown.sql": "{{ config(materialized='incremental', unique_key='id') }}"
    "select id, v from {{ ref('raw') }}"
    "{% if is_incremental() %} where id > (select max(id) from {{ this }}) - 5{% endif %}",
    "told.py": "def model(dbt, session):\n"
    "    dbt.config(materialized='table', deterministic=True)\n"
    "    return dbt.ref('raw').select('v')\n",
    "untold.py": "def model(dbt, session):\n    return dbt.ref('raw').select('v')\n",
    "cells.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id']) }}"
    "select id from {{ ref('raw') }}",
    "more.sql": "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['id']) }}"
    "select id, v as m from {{ ref('raw') }}",
}


def built(*args, expect_pass=True):
    """The results of a run, and what it says."""
    results, said = run_dbt_and_capture([*args], expect_pass=None)
    assert all(str(i.status) in ("success", "pass") for i in results) == expect_pass, said
    return results, said


def messages(results):
    """The message of each node, for dbt's log."""
    return {item.node.name: str(item.message) for item in results}


def skipped(results):
    """The nodes that were not run."""
    return {
        item.node.name for item in results if dict(item.adapter_response or {}).get("unchanged")
    }


class Base:
    @pytest.fixture(scope="class")
    def snapshots(self):
        return {
            "held.sql": "{% snapshot held %}{{ config(strategy='check', unique_key='id', "
            "check_cols=['v']) }} select id, v from {{ ref('raw') }}{% endsnapshot %}"
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"raw.csv": SEED}

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS


class TestSkipped(Base):
    @pytest.fixture(scope="class")
    def tests(self):
        return {"hashed.sql": "select hash(id) from {{ ref('kept') }} where hash(id) is null"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": True}
        return {"models": on, "seeds": on, "snapshots": on}

    def test_only_what_changed_runs(self, project):
        store = store_of(project)
        assert skipped(run_dbt(["build"])) == set()
        before = resolve(store, scope_of("kept")).version
        results, said = built(*["build"])
        assert skipped(results) == {"raw", "kept", "below", "cells", "more", "told"}
        assert "unchanged since version 1, less than a minute ago" in messages(results)["kept"]
        assert all(
            "rows_affected" not in i.adapter_response for i in results if i.node.name == "kept"
        )
        assert "daily runs: calls `current_date`" in said
        assert "hooked runs: it has hooks" in said
        assert "untold runs: it is a Python model that does not say `deterministic: true`" in said
        assert "grown runs: its SQL changed" in said
        assert "held runs: its last run stored rows, and may have more to add" in said
        assert "7 of 12 nodes unchanged, 2 could not be judged (ktk why)" in said
        assert resolve(store, scope_of("kept")).version == before
        assert messages(results)["shown"] == "unchanged"
        # At its fixed point an incremental model is left out too.
        results = run_dbt(["build"])
        assert skipped(results) == {
            "raw",
            "kept",
            "below",
            "cells",
            "more",
            "grown",
            "told",
            "held",
        }

        # Other rows: all that reads them, with the reason.
        write_file(SEED + "3,30\n", project.project_root, "seeds", "raw.csv")
        results, said = built(*["build"])
        assert skipped(results) == set()
        assert "raw runs: its code changed" in said
        assert "kept runs: " in said and ".raw changed, version 1 -> 2" in said
        assert sorted(rows(project, "select id, w from {s}.kept")) == [(1, 11), (2, 21), (3, 31)]

        # The upstream runs, and gives the same rows.
        write_file(MODELS["kept.sql"] + " where 1 = 1", project.project_root, "models", "kept.sql")
        results, said = built(*["run"])
        assert "kept runs: its SQL changed" in said
        assert {"below", "cells", "more"} <= skipped(results)
        assert "kept" not in skipped(results)

        # By hand, by the caller, and by a view's text.
        assert skipped(run_dbt(["run", "--full-refresh", "--select", "below"])) == set()
        run_dbt(["run", "--select", "below"])
        assert skipped(run_dbt(["run", "--select", "below"])) == {"below"}
        from ktk_engine import Store

        Store.of(store).table("below").delete("1 = 1")
        results, said = built(*["run", "--select", "below"])
        assert "below runs: its rows changed by hand in version" in said
        assert rows(project, "select s from {s}.below") == [(63,)]
        write_file(
            MODELS["shown.sql"] + " where id > 1", project.project_root, "models", "shown.sql"
        )
        results, said = built(*["run"])
        assert "kept runs: its view" in said
        assert messages(results)["shown"] == "view, 2 columns"
        assert sorted(rows(project, "select id, w from {s}.kept")) == [(2, 21), (3, 31)]

    def test_the_environment_runs_all(self, project, monkeypatch):
        run_dbt(["build"])
        monkeypatch.setenv("KTK_RERUN", "1")
        results, said = built(*["build"])
        assert skipped(results) == set()
        assert "kept runs: KTK_RERUN is set" in said
        assert "1 of 1 test needed Spark" in said


class TestBetweenRuns(Base):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": True}
        return {"models": on, "seeds": on, "snapshots": on}

    def test_what_else_may_have_happened(self, project, monkeypatch):
        """Between the runs: to a note, and to what is read."""
        from ktk_engine import Store

        store, key = store_of(project), scope_of("kept").computed_key("kept")
        one = ["run", "--select", "kept"]
        built("build")
        raw = Store.of(store).table("raw")

        def runs(change) -> bool:
            assert skipped(built(*one)[0]) == {"kept"}
            change()
            found = skipped(built(*one)[0]) == set()
            if not found:
                built("run", "--full-refresh", "--select", "kept")
                built(*one)
            return found

        assert not runs(raw.compact)
        document = store.root / "kept.by-dataset-metadata.json"
        before = document.read_bytes()
        mark = scope_of("kept").published_key("kept")
        assert not runs(lambda: store.delete([document.name, mark]))
        assert document.read_bytes() == before
        assert not runs(lambda: Store.of(store).table("raw").delete("id = 2").restore(1))
        assert runs(lambda: store.delete([key]))
        assert runs(lambda: store.put(key, store.get(key)[:-9]))
        assert runs(lambda: Store.of(store).table("raw").delete("id = 2"))
        assert runs(lambda: built("run", "--empty", "--select", "kept"))
        assert runs(lambda: Store.of(store).table("kept").rename("x").rename("kept"))
        assert not runs(lambda: Store.of(store).table("raw").rename("y").rename("raw"))
        assert sorted(rows(project, "select id, w from {s}.kept")) == [(1, 11)]

        # A copy takes the place of what was read, with the rows of another time.
        tables = Store.of(store)

        def copied() -> None:
            tables.table("raw").at(1).copy_to(tables, "earlier")
            tables.drop("raw")
            tables.table("earlier").rename("raw")

        assert runs(copied)
        assert len(rows(project, "select id, w from {s}.kept")) == 2
        # Another program appends to it.
        more = pa.table({"id": [9], "v": [90]})
        assert runs(lambda: append_as_kartothek(store, "raw", more))
        assert (9, 91) in rows(project, "select id, w from {s}.kept")

        # A run is killed after its commit, before its note.
        def killed() -> None:
            Store.of(store).table("kept").delete("id = 9")
            with monkeypatch.context() as patch:
                patch.setattr(computed_from, "write_computed", lambda *_: 1 / 0)
                built(*one)

        assert runs(killed)
        assert (9, 91) in rows(project, "select id, w from {s}.kept")


class TestWithoutSpark(Base):
    @pytest.fixture(scope="class")
    def models(self):
        others = {"daily.sql", "hooked.sql", "grown.sql", "untold.py"}
        found = {name: text for name, text in MODELS.items() if name not in others}
        found["c.sql"] = (
            "{{ config(materialized='cube') }} {{ cube_of(ref('cells'), ref('more')) }}"
        )
        found["asked.sql"] = (
            "{{ config(materialized='table') }} select m from {{ ref('c') }} where id = 1"
        )
        column = "{name: w, data_tests: [not_null]}"
        found["schema.yml"] = f"models: [{{name: kept, columns: [{column}]}}]"
        return found

    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": True}
        return {"models": on, "seeds": on, "snapshots": on}

    def test_a_process_of_its_own_starts_no_spark_and_writes_nothing(self, project):
        """As a user's next run, with a `java` that cannot start."""
        for _ in range(2):  # the snapshot finds nothing new
            built("build")
        store = store_of(project)
        before = {info.key: info.modified for info in store.list("")}
        command = (sys.executable, "-m", "dbt.cli.main", "build", "--profiles-dir")
        done = subprocess.run(
            [*command, str(project.profiles_dir)],
            cwd=project.project_root,
            env={**os.environ, "JAVA_HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "9 of 9 nodes unchanged" in done.stdout
        assert "0 of 1 test needed Spark" in done.stdout
        assert "Spark is starting" not in done.stdout
        assert {info.key: info.modified for info in store.list("")} == before

    def test_each_log_is_read_once(self, project, monkeypatch):
        for _ in range(2):
            built("build")
        read, get = list[str](), LocalStore.get
        monkeypatch.setattr(
            LocalStore, "get", lambda store, key: read.append(key) or get(store, key)
        )
        assert len(skipped(built("run")[0])) == 6
        found = Counter(key for key in read if ".ktk/dataset/" in key and "/log/" in key)
        assert set(found.values()) == {1}, found


class TestOtherRuns(Base):
    """Runs that read elsewhere, read less, or take place at the same time."""

    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        first = MODELS["kept.sql"].replace("+ 1", "+ {{ env_var('KTK_TEST_ADDED', '1') }}")
        return {
            "shown.sql": MODELS["shown.sql"],
            "kept.sql": first,
            "below.sql": MODELS["below.sql"],
            "events.sql": "{{ config(materialized='table', event_time='at') }}"
            "select id, timestamp '2026-01-01' + make_dt_interval(id) as at from {{ ref('raw') }}",
            "recent.sql": "{{ config(materialized='table') }} select id from {{ ref('events') }}",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": True}
        return {"models": on, "seeds": on, "snapshots": on}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        outputs = {"default": production, "dev": {**production, "schema": f"{unique_schema}_dev"}}
        return {"test": {"outputs": outputs, "target": "default"}}

    def test_deferred(self, project):
        built("build")
        shutil.copytree(f"{project.project_root}/target", f"{project.project_root}/state")
        dev = ["--target", "dev", "--defer", "--state", "state"]
        run = ["run", "--select", "below", *dev]
        assert skipped(built(*run)[0]) == set()
        assert skipped(built(*run)[0]) == {"below"}
        # What it defers to has other rows.
        write_file(SEED + "3,30\n", project.project_root, "seeds", "raw.csv")
        built("build")
        results, said = built(*run)
        assert skipped(results) == set()
        assert ".kept changed, version 1 -> 2" in said
        assert rows(project, "select s from {s}_dev.below") == [(63,)]
        # What it deferred to is here now, with the same rows.
        built("build", "--select", "raw", "shown", "kept", "--target", "dev")
        results, said = built(*run)
        assert skipped(results) == set()
        assert "below runs: its SQL changed" in said
        assert skipped(built(*run)[0]) == {"below"}
        assert skipped(built("run", "--select", "below")[0]) == {"below"}

    def test_sampled(self, project):
        built("build")
        run = ["run", "--select", "recent"]
        sample = "{'start': '2026-01-03', 'end': '2026-01-04'}"
        assert skipped(built(*run)[0]) == {"recent"}
        assert skipped(built(*run, "--sample", sample)[0]) == set()
        assert rows(project, "select id from {s}.recent") == [(2,)]
        assert skipped(built(*run)[0]) == set()
        assert len(rows(project, "select id from {s}.recent")) > 1
        assert skipped(built(*run)[0]) == {"recent"}

    def test_at_the_same_time(self, project, monkeypatch):
        """Each of two processes computes other rows; whichever ends last, the next run is right."""
        write_file(SEED, project.project_root, "seeds", "raw.csv")
        built("build")
        command = [sys.executable, "-c", PROCESS, str(project.profiles_dir)]
        processes = [
            subprocess.Popen(
                [*command, number],
                cwd=project.project_root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in "12"
        ]
        try:
            for added in (5, 6):
                for number, process in enumerate(processes):
                    process.stdin.write(f"{added * 10 + number}\n")
                    process.stdin.flush()
                said = [process.stdout.readline().strip() for process in processes]
                assert "ran" in said, said  # the other one may have met a conflict
                monkeypatch.setenv("KTK_TEST_ADDED", str(added * 10 + added % 2))
                built("build", "--select", "raw", "shown", "kept", "below")
                expected = [(10 + added * 10 + added % 2,), (20 + added * 10 + added % 2,)]
                assert sorted(rows(project, "select w from {s}.kept")) == expected
                total = sum(value for (value,) in expected)
                assert rows(project, "select s from {s}.below") == [(total,)]
        finally:
            for process in processes:
                process.communicate(timeout=60)


# Runs dbt each time when a line comes in.
PROCESS = """
import os, sys
from dbt.cli.main import dbtRunner
folder, number = sys.argv[1:]
for line in sys.stdin:
    os.environ["KTK_TEST_ADDED"] = line.strip()
    done = dbtRunner().invoke(["--quiet", "--log-level", "none", "run", "--select", "kept", "below",
                               "--profiles-dir", folder, "--target-path", "target_" + number,
                               "--log-path", "logs_" + number])
    failed = [item.message for item in done.result or () if str(item.status) == "error"]
    print("ran" if done.success else repr(failed), flush=True)
"""


class TestStaged(Base):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": True}
        hook = "{{ ktk_publish_stage(results) }}"
        return {"models": on, "seeds": on, "on-run-end": hook, "vars": {"ktk_stage": True}}

    def test_what_a_run_publishes_counts_for_the_next_one(self, project):
        names = ["raw", "shown", "kept", "below"]
        run = ["build", "--select", *names]
        assert skipped(built(*run)[0]) == set()
        results, said = built(*run)
        assert skipped(results) == {"raw", "kept", "below"}
        assert "The staged run was published: nothing changed" in said
        write_file(SEED + "3,30\n", project.project_root, "seeds", "raw.csv")
        # A run that is discarded leaves the notes of what is published.
        bad = "{{ config(materialized='table') }} select raise_error('no') as n"
        write_file(bad, project.project_root, "models", "bad.sql")
        built("build", "--select", *names, "bad", expect_pass=False)
        assert rows(project, "select s from {s}.below") == [(32,)]
        assert skipped(built(*run)[0]) == set()
        assert rows(project, "select s from {s}.below") == [(63,)]
        assert skipped(built(*run)[0]) == {"raw", "kept", "below"}
        # What is not staged goes on from the same notes.
        assert skipped(built(*run, "--vars", "{ktk_stage: false}")[0]) >= {"raw", "kept"}


class TestChecked(Base):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        on = {"+skip_unchanged": "check"}
        return {"models": on, "seeds": on, "snapshots": on}

    def test_it_runs_and_is_compared(self, project, monkeypatch):
        run_dbt(["build"])
        results, said = built(*["build"])
        assert skipped(results) == set()
        assert "kept runs to be checked: it is unchanged" in said
        assert "7 of 12 nodes unchanged" in said
        # A cause that nobody knows.
        monkeypatch.setattr(computed_from, "unknowns", lambda *_: [])
        from ktk_engine.plan.statement import trace  # deep: what a text may compute

        monkeypatch.setattr(trace, "unknowns", lambda *_: [])
        write_file(
            "{{ config(materialized='table') }} select rand() as r",
            project.project_root,
            "models",
            "daily.sql",
        )
        run_dbt(["run", "--select", "daily"])
        results = run_dbt(["run", "--select", "daily"], expect_pass=False)
        said = messages(results)["daily"]
        assert "could have been skipped" in said
        assert "removed: r=0." in said
        assert read_computed(store_of(project), scope_of("daily"), "daily") is not None
