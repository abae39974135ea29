"""What goes wrong with dbt-spark's session method, and does not here."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from dbt.tests.util import relation_from_name, run_dbt, run_dbt_and_capture, write_file
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError

from ktk_engine.errors import SessionError
from tests.conftest import SPARK_SETTINGS
from tests.functional.relations import rows
from tests.support.spark import start_session


class TestTheSession:
    """Where it comes from, its settings, and what it leaves behind."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        settings = {**dbt_profile_target["server_side_parameters"]}
        settings |= {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "3"}
        return {**dbt_profile_target, "server_side_parameters": settings}

    @pytest.fixture(scope="class")
    def models(self):
        hook = "set spark.sql.shuffle.partitions=7"
        return {
            "own.sql": "{{ config(materialized='table', pre_hook='" + hook + "') }}"
            "select current_timezone() as zone, '{{ this.schema }}' as s from range(3)",
            "divided.sql": "{{ config(materialized='table') }} select 1 / id as x from range(2)",
        }

    def test_settings_of_a_host_are_kept_and_what_cannot_change_is_said(self, project):
        start_session(SPARK_SETTINGS)  # the host's
        _, log = run_dbt_and_capture(["run", "-s", "own"])
        (warning,) = [line for line in log.splitlines() if "Spark was already running" in line]
        assert "spark.driver.memory of the profile can no longer be changed" in warning
        assert "shuffle.partitions" not in warning

    def test_a_setting_lasts_until_somebody_changes_it(self, project):
        with project.adapter.connection_named("one"):
            setting = "set spark.sql.shuffle.partitions"
            first = project.adapter.execute(setting, fetch=True)[1].rows[0][1]
            project.adapter.execute(f"{setting}=7")
            project.adapter.execute("select 1")
            assert (first, project.adapter.execute(setting, fetch=True)[1].rows[0][1]) == ("3", "7")

    def test_division_by_zero_is_an_error_as_in_spark(self, project):
        (result,) = run_dbt(["run", "-s", "divided"], expect_pass=False)
        assert "DIVIDE_BY_ZERO" in result.message or "Division by zero" in result.message

    def test_nothing_of_a_metastore_is_left_in_any_folder(self, project):
        run_dbt(["run", "-s", "own"])
        for folder in (Path.cwd(), Path(project.project_root)):
            for name in ("metastore_db", "derby.log", "spark-warehouse"):
                assert not (folder / name).exists()

    def test_a_thread_that_follows_another_begins_anew(self, project):
        found = []

        def work() -> None:
            with project.adapter.connection_named("one"):
                setting = "set spark.sql.shuffle.partitions"
                found.append(project.adapter.execute(setting, fetch=True)[1].rows[0][1])
                project.adapter.execute(f"{setting}=7")

        for _ in range(2):  # the second mostly gets the first one's number
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert found == ["3", "3"]

    def test_threads_do_not_see_each_others_settings_and_views(self, project):
        adapter = project.adapter
        seen = {}

        def work() -> None:
            with adapter.connection_named("two"):
                setting = "set spark.sql.shuffle.partitions"
                seen["setting"] = adapter.execute(setting, fetch=True)[1].rows[0][1]
                tables = adapter.execute("show views", fetch=True)[1].rows
                seen["views"] = [row[1] for row in tables]

        with adapter.connection_named("one"):
            adapter.execute("create temporary view mine as select 1 as id")
            adapter.execute("set spark.sql.shuffle.partitions=11")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            adapter.execute("drop view mine")
        assert seen["setting"] == "3"
        assert "mine" not in seen["views"]

    @pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
    def test_spark_connect_is_refused_and_not_tried(self, monkeypatch, name):
        monkeypatch.setenv(name, "sc://localhost")
        monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
        with pytest.raises(SessionError, match=f"{name} asks for Spark Connect"):
            start_session()


class TestTheCursor:
    def test_fetching_goes_on_where_it_stopped(self, project):
        with project.adapter.connection_named("c") as _:
            cursor = project.adapter.connections.get_thread_connection().handle.cursor()
            cursor.execute("select id from range(6) order by id")
            assert cursor.fetchone() == (0,)
            assert cursor.fetchmany(2) == [(1,), (2,)]
            assert cursor.fetchmany(1) == [(3,)]
            assert cursor.fetchall() == [(4,), (5,)]
            assert cursor.fetchone() is None
            cursor.execute("select 7 as id")
            assert cursor.fetchall() == [(7,)]

    def test_rows_are_limited_where_they_are_made(self, project):
        text = "select id + 100 as id from range(100)"
        _, log = run_dbt_and_capture(["show", "--inline-direct", text, "--limit", "3"])
        assert [n for n in range(100, 200) if f" {n} " in log] == [100, 101, 102]

    def test_errors_are_not_swallowed(self, project):
        with project.adapter.connection_named("c"):
            for statement in ("select wrong_name", "select raise_error('late') as x"):
                with pytest.raises(Exception, match=r"wrong_name|late"):
                    project.adapter.execute(statement, fetch=True)

    def test_an_error_in_another_thread_of_the_jvm_keeps_its_message(self, project):
        text = "select *, (select raise_error('early') from range(1)) as x from range(2)"
        with project.adapter.connection_named("c"), pytest.raises(DbtDatabaseError) as caught:
            project.adapter.execute(text, fetch=True)
        assert str(caught.value) == "Database Error\n  early"
        assert "awaitResult" not in str(caught.value)

    def test_columns_of_one_name(self, project):
        with project.adapter.connection_named("c"):
            table = project.adapter.execute("select 1 as x, 2 as x", fetch=True)[1]
            assert table.column_names == ("x", "x_2")


CSV = """id,name,at
9007199254740993,O'Brien,2025-01-01 00:00:00.123456
2,,2025-01-01 00:00:00.000001
"""


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"people.csv": CSV}

    def test_cells_are_what_the_file_says(self, project):
        run_dbt(["seed"])
        found = rows(project, "select id, name, at from {s}.people order by id")
        assert found == [
            (2, None, datetime(2025, 1, 1, 0, 0, 0, 1)),
            (9007199254740993, "O'Brien", datetime(2025, 1, 1, 0, 0, 0, 123456)),
        ]


class TestRelations:
    """Tables, views and incremental models."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "t.sql": "{{ config(materialized='table') }} select id from range(3)",
            "v.sql": "select * from {{ ref('t') }}",
            "grown.sql": "{{ config(materialized='incremental', unique_key='id', "
            "on_schema_change='sync_all_columns') }} select 1 as id, 2 as gone, 'x' as kept",
        }

    def test_a_failed_model_leaves_the_old_table(self, project):
        run_dbt(["run"])
        write_file(
            "{{ config(materialized='table') }} select 1 / (id - 2) as id from range(3)",
            project.project_root,
            "models",
            "t.sql",
        )
        run_dbt(["run", "-s", "t"], expect_pass=False)
        assert sorted(rows(project, "select id from {s}.t")) == [(0,), (1,), (2,)]

    def test_a_view_is_there_for_the_next_process(self, project):
        run_dbt(["run", "-s", "v"])
        document = Path(project.project_root) / "warehouse" / project.test_schema
        assert list(document.rglob("v.json")), "views are documents of the store"
        assert relation_from_name(project.adapter, "v") is not None

    def test_columns_may_leave(self, project):
        run_dbt(["run", "-s", "grown"])
        write_file(
            "{{ config(materialized='incremental', unique_key='id', "
            "on_schema_change='sync_all_columns') }} select 1 as id, 'y' as kept",
            project.project_root,
            "models",
            "grown.sql",
        )
        run_dbt(["run", "-s", "grown"])
        assert rows(project, "select * from {s}.grown") == [(1, "y")]

    def test_a_listing_that_fails_is_no_empty_listing(self, project):
        run_dbt(["run", "-s", "grown"])
        before = rows(project, "select * from {s}.grown")
        folder = Path(project.project_root) / "warehouse" / project.test_schema
        logs = [path for path in (folder / ".ktk").rglob("log/*.json") if "grown" in str(path)]
        damaged = max(logs, key=lambda path: path.name)
        text = damaged.read_bytes()
        damaged.chmod(0o644)
        damaged.write_bytes(b"{")
        results = run_dbt(["run", "-s", "grown"], expect_pass=False)
        damaged.write_bytes(text)
        assert results is None or results[0].status == "error"
        assert rows(project, "select * from {s}.grown") == before


class TestErrors:
    """Each is dbt's kind of error, is shown once, and keeps its stack for the log file."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return {**dbt_profile_target, "threads": 1}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "late.sql": "{{ config(materialized='table') }}\n\nselect 1 / id as x from range(2)",
            "early.sql": "select\n  wrong_name\nfrom range(3)",
            "hooked.sql": "{{ config(materialized='table', pre_hook=\"select raise_error('late')\")"
            " }} select 1 as id",
            "workers.py": WORKERS,
        }

    @pytest.fixture(scope="class")
    def tests(self):
        return {"late_test.sql": "select 1 as x where raise_error('late') is null"}

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            (["run", "-s", "late"], "[DIVIDE_BY_ZERO]"),
            (["run", "-s", "hooked"], "\n  late\n"),
            (["run", "-s", "early"], "`wrong_name` cannot be resolved"),
            (["test"], "\n  late\n"),
            (["run", "-s", "workers"], "ValueError: mine"),
        ],
        ids=lambda value: value[-1] if isinstance(value, list) else "",
    )
    def test_is_one_database_error(self, project, logs_dir, command, said):
        log_file = Path(logs_dir) / "dbt.log"
        logged = log_file.stat().st_size if log_file.exists() else 0
        results, log = run_dbt_and_capture(command, expect_pass=False)
        (result,) = results
        assert result.message.count(" Error in ") == 1
        assert result.message.startswith("Database Error in ")
        assert "Runtime Error" not in log
        assert "Unhandled error" not in log
        assert log.count(said) == 1
        assert "\tat " not in log
        assert "/pyspark/" not in log
        assert "\tat org.apache.spark" in log_file.read_text()[logged:]

    def test_names_the_line(self, project):
        (result,) = run_dbt(["run", "-s", "early"], expect_pass=False)
        assert "(line 2 of the SQL)" in result.message
        (result,) = run_dbt(["run", "-s", "late"], expect_pass=False)
        assert "== SQL (line 3, position 8) ==" in result.message

    def test_keeps_what_caused_it(self, project):
        with project.adapter.connection_named("c"), pytest.raises(DbtDatabaseError) as caught:
            project.adapter.execute("select raise_error('late') as x", fetch=True)
        assert type(caught.value.__cause__).__module__.startswith("pyspark.errors")

    def test_a_long_statement_is_shown_where_it_is_wrong(self, project):
        lines = ["select", *[f"  {n} as c{n}," for n in range(50)], "  from range(3) where where"]
        with project.adapter.connection_named("c"), pytest.raises(DbtDatabaseError) as caught:
            project.adapter.execute("\n".join(lines), fetch=True)
        assert "c49" in str(caught.value)
        assert "c40" not in str(caught.value)
        assert "^^^" in str(caught.value)


WORKERS = """
def model(dbt, session):
    dbt.config(materialized="table")

    def rows(batches):
        raise ValueError("mine")

    return session.range(1).mapInArrow(rows, "id bigint")
"""


class TestStatements:
    """Rows are computed when a statement runs, within the time that dbt's log shows."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        """Compiled: interpreted, the four million pairs of the slow question take seconds."""
        compiled = {
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.codegen.factoryMode": "FALLBACK",
        }
        settings = {**dbt_profile_target["server_side_parameters"], **compiled}
        return {**dbt_profile_target, "server_side_parameters": settings}

    @pytest.mark.parametrize("asked", [{"fetch": True}, {"fetch": True, "limit": 1}, {}], ids=str)
    def test_the_time_of_a_query_is_logged(self, project, asked):
        logged = []

        def note(event) -> None:
            if event.info.name == "SQLQueryStatus":
                logged.append(event.data.elapsed)

        add_callback_to_manager(note)
        slow = "select count(*) from range(4000) a cross join range(1000) b where a.id > b.id + 1"
        with project.adapter.connection_named("c"):
            start = time.perf_counter()
            project.adapter.execute(slow, **asked)
            took = time.perf_counter() - start
        assert sum(logged) > took / 2


class TestTheProfile:
    def test_needs_neither_host_nor_database(self, project):
        assert project.adapter.config.credentials.host is None
        assert project.adapter.config.credentials.database is None
        run_dbt(["debug", "--connection"])


class TestNamesWithADatabase:
    """Every project of Unity Catalog has names of three parts."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "m.sql": "{{ config(database='main', materialized='table') }} select 1 as a",
            "n.sql": "{{ config(database='main') }} "
            "select a from {{ source('raw', 'm') }} union all select a from {{ ref('m') }}",
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        config = "target_database='main', strategy='check', unique_key='a', check_cols='all'"
        text = "{{ config(" + config + ") }} select a from {{ ref('m') }}"
        return {"s.sql": "{% snapshot s %}" + text + "{% endsnapshot %}"}

    def sources(self, project, name: str = "raw", more: str = "") -> None:
        of = f"database: {name}, schema: {project.test_schema}"
        table = f"{{name: raw, {of}, tables: [{{name: m}}]}}"
        write_file(f"sources: [{table}{more}]", project.project_root, "models", "sources.yml")

    def test_mean_the_last_two_with_one_line(self, project):
        self.sources(project, "main")
        _, log = run_dbt_and_capture(["build"])
        assert log.count("`database: main` does nothing: names have two parts here") == 1
        assert log.count("Model m: config `database` does nothing: names have two parts here") == 1
        assert "Model n" not in log
        assert log.count("config `target_database` does nothing") == 1
        assert project.run_sql("select count(*) from {schema}.n", fetch="one")[0] == 2
        assert project.run_sql("select count(*) from {schema}.s", fetch="one")[0] == 1
        catalog = run_dbt(["docs", "generate"])
        assert sorted(catalog.sources) == ["source.test.raw.m"]
        assert sorted(catalog.nodes) == ["model.test.m", "model.test.n", "snapshot.test.s"]

    def test_that_only_a_database_tells_apart_are_refused(self, project):
        self.sources(project, "other")
        with pytest.raises(DbtConfigError) as caught:
            run_dbt(["run", "--no-partial-parse"])
        of = project.test_schema
        assert "are one name here: names have two parts, schema and name" in str(caught.value)
        assert f"other.{of}.m" in str(caught.value) and f"main.{of}.m" in str(caught.value)
        other = f", {{name: raw2, database: other, schema: {of}, tables: [{{name: m}}]}}"
        self.sources(project, "main", other)
        text = "select m.a from {{ source('raw', 'm') }} join {{ source('raw2', 'm') }} n using (a)"
        write_file(text, project.project_root, "models", "n.sql")
        with pytest.raises(DbtConfigError, match="are one name here"):
            run_dbt(["run", "--no-partial-parse"])
        # What the message names is what tells them apart.
        place = f"{project.project_root}/warehouse/{project.test_schema}"
        other = other.replace("tables:", f"config: {{meta: {{ktk_store: '{place}'}}}}, tables:")
        self.sources(project, "main", other)
        run_dbt(["run", "--no-partial-parse"])
