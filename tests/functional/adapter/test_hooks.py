"""dbt-tests-adapter: hooks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dbt.tests.adapter.hooks import fixtures
from dbt.tests.adapter.hooks.test_model_hooks import (
    MODEL_POST_HOOK,
    MODEL_PRE_HOOK,
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks
from dbt.tests.util import run_dbt

from tests.functional.adapter.in_spark import run_in_spark

DATA = Path(fixtures.__file__).parent / "data"

# What the hooks of the base insert, and what is not the same for each run.
CONTEXT = {
    "target_dbname": "",
    "target_host": "",
    "target_name": "default",
    "target_threads": 2,
    "target_type": "spark",
    "target_user": "",
    "target_pass": "",
}
OF_A_RUN = ("run_started_at", "invocation_id", "thread_id")


def check_context(project, table: str, state: str, count: int, threads: tuple[str, ...]) -> None:
    """What hooks saw: the base quotes names as Postgres does and expects its target."""
    names = ["target_schema", *CONTEXT, *OF_A_RUN]
    rows = project.run_sql(
        f"select {', '.join(names)} from {project.test_schema}.{table} "
        f"where test_state = '{state}'",
        fetch="all",
    )
    assert len(rows) == count
    for row in rows:
        found = dict(zip(names, row, strict=True))
        of_a_run = [found.pop(name) for name in OF_A_RUN]
        assert found == {"target_schema": project.test_schema, **CONTEXT}
        assert all(of_a_run) and of_a_run[-1].startswith(threads)


class ModelHooks:
    """The table of the base, and what it checks, in Spark's words."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        run_in_spark(project, (DATA / "seed_model.sql").read_text())

    def check_hooks(self, state, project, host, count=1):
        check_context(project, "on_model_hook", state, count, ("Thread-",))


# Outside of a transaction; the base has a `vacuum` there.
OUTSIDE = {
    "sql": "insert into {{ this.schema }}.on_model_hook (test_state) values ('outside')",
    "transaction": False,
}
IN_PROJECT = {"pre-hook": [MODEL_PRE_HOOK, OUTSIDE], "post-hook": [OUTSIDE, MODEL_POST_HOOK]}


class TestPrePostModelHooks(ModelHooks, BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"test": IN_PROJECT}}

    def test_hooks_outside_of_a_transaction(self, project):
        run_dbt()
        query = f"select count(*) from {project.test_schema}.on_model_hook where test_state = "
        before = project.run_sql(f"{query} 'outside'", fetch="one")[0]
        run_dbt()
        assert project.run_sql(f"{query} 'outside'", fetch="one")[0] == before + 2


class TestHookRefs(ModelHooks, BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(ModelHooks, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigKwargs(ModelHooks, BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksInConfigWithCount(ModelHooks, BasePrePostModelHooksInConfigWithCount):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"test": IN_PROJECT}}


# A column more, with a value in each row: what `alter table` and `update` do in Postgres.
NEW_COLUMN = "create or replace table {{ this }} as select *, 1 as new_col from {{ this }}"


def seed_hooks(key: str, *more: str) -> dict:
    hooks = {key: [NEW_COLUMN, *more], "quote_columns": False}
    return {"seed-paths": ["seeds"], "models": {}, "seeds": hooks}


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return seed_hooks("post-hook", "select cast(null as {{ dbt.type_int() }}) as id")


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return seed_hooks("+post-hook")


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return seed_hooks("+post-hook")


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class HooksOnSnapshots:
    """The hooks of the base in one statement, since nothing changes a table in place."""

    @pytest.fixture(scope="class")
    def project_config_update(self, request):
        (base,) = (item for item in request.cls.__bases__ if item is not HooksOnSnapshots)
        found = base.project_config_update.__wrapped__(self)
        return {**found, "snapshots": {"post-hook": [NEW_COLUMN]}}


class TestPrePostModelHooksOnSnapshots(HooksOnSnapshots, BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(
    HooksOnSnapshots, BasePrePostSnapshotHooksInConfigKwargs
):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestAfterRunHooks(BaseAfterRunHooks):
    pass


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture(scope="function")
    def setUp(self, project):
        run_in_spark(project, (DATA / "seed_run.sql").read_text())
        for name in ("schemas", "db_schemas"):
            project.run_sql(f"drop table if exists {project.test_schema}.{name}")
        os.environ["TERM_TEST"] = "TESTING"

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """The base's hooks with Spark's name of a text."""
        base = BasePrePostRunHooks.project_config_update.__wrapped__(self)
        hooks = [hook.replace(" text", " string") for hook in base["on-run-end"]]
        assert hooks != base["on-run-end"]
        return {**base, "on-run-end": hooks}

    def check_hooks(self, state, project, host):
        check_context(project, "on_run_hook", state, 1, ("Thread-", "MainThread"))

    def assert_used_schemas(self, project):
        schema = project.test_schema
        assert project.run_sql(f"select * from {schema}.schemas", fetch="all") == [(schema,)]
        # There is no database: the hook's text holds Python's word for that.
        found = project.run_sql(f"select * from {schema}.db_schemas", fetch="all")
        assert found == [("None", schema)]
