"""dbt-tests-adapter: ephemeral."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def executed(project, model: str) -> str:
    """What was run for a model, without white space and the digits of the schema's name."""
    path = Path(project.project_root) / "target" / "run" / "test" / "models" / f"{model}.sql"
    return re.sub(r"\d+|\s+", "", path.read_text(encoding="utf-8"))


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestEphemeralMulti(BaseEphemeralMulti):
    """The base compares with Postgres's `create view`; a view of ours is the query alone."""

    def test_ephemeral_multi(self, project):
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        assert executed(project, "double_dependent") == re.sub(
            r"\s+",
            "",
            (
                "with __dbt__cte__base as (select * from test_test_ephemeral.seed),"
                "  __dbt__cte__base_copy as (select * from __dbt__cte__base)"
                "-- base_copy just pulls from base. Make sure the listed"
                "-- graph of CTEs all share the same dbt_cte__base cte"
                "select * from __dbt__cte__base where gender = 'Male' union all "
                "select * from __dbt__cte__base_copy where gender = 'Female'"
            ),
        )


# A row without an id: no column addresses both rows of the table.
@pytest.mark.cells(source_table=[])
class TestEphemeralNested(BaseEphemeralNested):
    """As above."""

    def test_ephemeral_nested(self, project):
        assert len(run_dbt(["run"])) == 2
        check_relations_equal(project.adapter, ["source_table", "root_view"])
        assert executed(project, "root_view") == re.sub(
            r"\s+",
            "",
            (
                "with __dbt__cte__ephemeral_level_two as "
                "(select * from test_test_ephemeral.source_table),"
                "  __dbt__cte__ephemeral as (select * from __dbt__cte__ephemeral_level_two)"
                "select * from __dbt__cte__ephemeral"
            ),
        )
