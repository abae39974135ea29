"""Changes that concern several models of a cube, in one run; and a star schema's second try."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.cube_models import CUBE, ENRICHMENT, SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import list_relations

OTHER = ENRICHMENT.replace("as w", "as x")
MODELS = {
    "cells.sql": SEED,
    "a_extra.sql": ENRICHMENT,
    "extra.sql": OTHER,
    "c.sql": CUBE.replace("ref('extra')", "ref('a_extra'), ref('extra')"),
}
TEXT = "cast(id as string) as L"
ALL = ["run", "--full-refresh"]


@pytest.mark.parametrize("threads", ["1", "4"])
class TestRebuiltCube:
    """`a_extra` comes before, `extra` after the seed dataset in dbt's order."""

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(autouse=True)
    def fresh(self, project):
        for name, text in MODELS.items():
            write_file(text, f"{project.project_root}/models/{name}")
        run_dbt([*ALL])  # dbt adds to what it is given

    def change(self, project, **models) -> None:
        for name, text in models.items():
            write_file(text, f"{project.project_root}/models/{name}.sql")

    def test_a_key_gets_another_class(self, project, threads):
        self.change(
            project,
            **{
                name: MODELS[f"{name}.sql"].replace("id as L", TEXT)
                for name in ("cells", "a_extra", "extra")
            },
        )
        _, log = run_dbt_and_capture([*ALL, "--threads", threads])
        assert "taken out of the cube until this run builds it: " in log
        assert "has not built it again" not in log
        found = rows(project, "select L, v, w, x from {s}.c where L = '7'")
        assert found == [("7", 14, 10.5, 10.5)]

    def test_a_payload_column_moves(self, project, threads):
        both = ENRICHMENT.replace("as w", "as w, id as x")
        self.change(project, a_extra=both, extra=OTHER.replace("as x", "as y"))
        run_dbt([*ALL, "--threads", threads])
        assert rows(project, "select w, x, y from {s}.c where L = 2") == [(3.0, 2, 3.0)]
        both = OTHER.replace("as x", "as y, id as w")
        self.change(project, a_extra=ENRICHMENT.replace("as w", "as z"), extra=both)
        run_dbt([*ALL, "--threads", threads])
        assert rows(project, "select w, y, z from {s}.c where L = 2") == [(2, 3.0, 3.0)]

    def test_the_role_of_the_seed_dataset_moves(self, project, threads):
        seed = OTHER.replace("cube_enrichment", "cube_seed")
        extra = SEED.replace("cube_seed", "cube_enrichment")
        self.change(project, cells=extra, extra=seed)
        run_dbt([*ALL, "--threads", threads])
        assert rows(project, "select v, w, x from {s}.c where L = 2") == [(4, 3.0, 3.0)]

    def test_what_is_not_selected_stays(self, project, threads):
        self.change(project, a_extra=ENRICHMENT.replace("id as L", TEXT))
        before = list_relations(store_of(project))
        _, log = run_dbt_and_capture([*ALL, "-s", "a_extra"], expect_pass=False)
        assert "type check failed for dataset c++a_extra (nothing was written)" in log
        self.change(project, cells=SEED.replace("id as L", TEXT))
        results = run_dbt([*ALL, "-s", "a_extra", "cells"], expect_pass=False)
        assert [str(item.status) for item in results] == ["error", "error"]
        assert list_relations(store_of(project)) == before
        assert rows(project, "select v, w, x from {s}.c where L = 7") == [(14, 10.5, 10.5)]

    def test_without_full_refresh_nothing_leaves(self, project, threads):
        self.change(
            project,
            **{
                name: MODELS[f"{name}.sql"].replace("id as L", TEXT)
                for name in ("cells", "a_extra", "extra")
            },
        )
        run_dbt(["run", "--threads", threads], expect_pass=False)
        assert rows(project, "select L, v, w, x from {s}.c where L = 7") == [(7, 14, 10.5, 10.5)]

    def test_a_run_that_ends_in_between_says_what_is_missing(self, project, threads):
        broken = SEED.replace("id as L", TEXT).replace("range(60)", "range(60) where nothing")
        self.change(project, cells=broken, a_extra=ENRICHMENT.replace("id as L", TEXT))
        _, log = run_dbt_and_capture([*ALL, "--threads", "1"], expect_pass=False)
        assert "This run removed cells from cube c" in log
        with pytest.raises(Exception, match="Cube c has no dataset cells, extra"):
            run_dbt(["show", "--inline", "select * from {{ ref('c') }}"])
        self.change(
            project, cells=SEED.replace("id as L", TEXT), extra=OTHER.replace("id as L", TEXT)
        )
        run_dbt([*ALL, "--threads", threads])
        assert rows(project, "select count(*) from {s}.c where w is not null") == [(60,)]


class TestSkipped:
    """What dbt skips, since it reads a model that has failed, stays in the cube."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "a_first.sql": "{{ config(materialized='table') }} select id from range(3)",
            "cells.sql": SEED.replace("range(60)", "{{ ref('a_first') }}"),
            "extra.sql": ENRICHMENT,
            "c.sql": CUBE,
        }

    def test_it_is_not_taken_out(self, project):
        run_dbt(["run"])
        first = "{{ config(materialized='table') }} select nothing as id"
        write_file(first, f"{project.project_root}/models/a_first.sql")
        text = ENRICHMENT.replace("id as L", TEXT)
        write_file(text, f"{project.project_root}/models/extra.sql")
        results = run_dbt([*ALL, "--threads", "1"], expect_pass=False)
        found = {item.node.name: str(item.status) for item in results}
        assert found == {"a_first": "error", "extra": "error", "cells": "skipped", "c": "skipped"}
        assert rows(project, "select v, w from {s}.c where L = 2") == [(4, 3.0)]


SALES = """
{{ config(materialized='cube_seed', cube='shop', dimension_columns=KEYS) }}
select * from values (1, 10, 2.5), (2, 11, 1.0) as sales(sale_id, customer_id, amount)
"""


class TestStarSchema:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "a_sales.sql": SALES.replace("KEYS", "['sale_id']"),
            "customers.sql": "{{ config(materialized='cube_enrichment', cube='shop', "
            "dimension_columns=['customer_id']) }} "
            "select * from values (10, 'Ann'), (11, 'Bo') as customers(customer_id, customer)",
            "shop.sql": "{{ config(materialized='cube') }}"
            "{{ cube_of(ref('a_sales'), ref('customers')) }}",
        }

    def test_the_second_try_says_what_to_do(self, project):
        _, log = run_dbt_and_capture(["run", "--threads", "1"], expect_pass=False)
        assert "make its key one of the seed dataset's dimension columns" in log
        text = SALES.replace("KEYS", "['sale_id', 'customer_id']")
        write_file(text, f"{project.project_root}/models/a_sales.sql")
        _, log = run_dbt_and_capture(["run", "--threads", "1"], expect_pass=False)
        assert "dbt build --full-refresh -s a_sales" in log
        assert "dbt build --full-refresh -s a_sales customers rebuilds them in one run" in log
        run_dbt(["build", "--full-refresh", "-s", "a_sales", "customers", "shop"])
        query = "select customer, amount from {s}.shop order by sale_id"
        assert [(a, float(b)) for a, b in rows(project, query)] == [("Ann", 2.5), ("Bo", 1.0)]


class TestRename:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": SEED,
            "t.sql": "{{ config(materialized='table') }} select id as a from range(3)",
            "w.sql": "select 1 as b",
        }

    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "renamed.sql": """
{% macro renamed(old, new, schema=target.schema) %}
  {% set old = adapter.get_relation(none, target.schema, old) %}
  {% set new = api.Relation.create(schema=schema, identifier=new, type=old.type) %}
  {% do adapter.rename_relation(old, new) %}
  {{ log(adapter.get_relation(none, schema, new.identifier).type, info=true) }}
{% endmacro %}"""
        }

    def renamed(self, expect_pass=True, **args):
        text = "{" + ", ".join(f"{key}: {value}" for key, value in args.items()) + "}"
        command = ["run-operation", "renamed", "--args", text]
        return run_dbt_and_capture(command, expect_pass=expect_pass)[1]

    def test_tables_and_views(self, project):
        run_dbt(["run"])
        self.renamed(old="t", new="u")
        self.renamed(old="w", new="x")
        assert rows(project, "select a from {s}.u order by a") == [(0,), (1,), (2,)]
        assert rows(project, "select b from {s}.x") == [(1,)]
        found = {item.name for item in list_relations(store_of(project))}
        assert found == {"cells", "u", "x"}

    def test_what_cannot_be(self, project):
        run_dbt(["run"])
        log = self.renamed(expect_pass=False, old="cells", new="other")
        assert "is a dataset of cube c, which keeps its name" in log
        log = self.renamed(expect_pass=False, old="t", new="cells")
        assert "already" in log
        log = self.renamed(expect_pass=False, old="t", new="v", schema="elsewhere")
        assert "within its schema" in log
