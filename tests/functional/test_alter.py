"""`alter table` and `comment on` in hooks, by hand and through dbt's macros; Spark reads after."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, write_file

from tests.functional.cube_models import ENRICHMENT, SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, describe, resolve, snapshot_of

BASE = """
{{ config(materialized='table', post_hook=[
    "alter table {{ this }} rename column v to w",
    "alter table {{ this }} set tblproperties ('owner' = 'ops')",
    "comment on column {{ this }}.id is 'it''s a number'",
]) }}
select id, id * 2 as v, 'x' as old from range(3)
"""
READER = "{{ config(materialized='table') }} select id, w from {{ ref('base') }} where w > 1"
GROWN = """
{{ config(materialized='incremental', partition_by='p', on_schema_change='append_new_columns') }}
select 1 as p, 2 as a {% if is_incremental() %}, 'new' as b {% endif %}
"""
MACROS = """
{% macro change(name) %}
  {% set relation = adapter.get_relation(target.database, target.schema, name) %}
  {% do alter_relation_add_remove_columns(
      relation, [api.Column('Extra', 'decimal(5,1)')], [api.Column('OLD', 'string')]) %}
  {% do alter_column_type(relation, 'id', 'bigint') %}
  {% do alter_column_comment(relation, {'extra': {'description': 'said'}}) %}
{% endmacro %}
"""
CUBE = "{{ config(materialized='cube') }} {{ cube_of(ref('cells'), ref('extra')) }}"


class TestAlter:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "base.sql": BASE,
            "reader.sql": READER,
            "grown.sql": GROWN,
            "cells.sql": SEED,
            "extra.sql": ENRICHMENT,
            "c.sql": CUBE,
        }

    @pytest.fixture(scope="class")
    def macros(self):
        return {"change.sql": MACROS}

    def run(self, project, text):
        return project.run_sql(text.replace("{s}", project.test_schema))

    def test_hooks(self, project, built):
        assert rows(project, "select w from {s}.base order by w") == [(0,), (2,), (4,)]
        assert rows(project, "select id, w from {s}.reader order by id") == [(1, 2), (2, 4)]
        run_dbt(["run", "-s", "base"])
        (found,) = describe(store_of(project), "base").datasets
        assert found.metadata == {"owner": "ops"}
        assert found.column_comments == {"id": "it's a number"}

    def test_macros_of_dbt(self, project, built):
        run_dbt(["run-operation", "change", "--args", "{name: base}"])
        assert rows(project, "select * from {s}.base order by id limit 1") == [(0, 0, None)]
        snapshot = snapshot_of(store_of(project), "base")
        assert snapshot.schema.names == ["id", "w", "Extra"]
        assert snapshot.comments.columns["Extra"] == "said"
        self.run(project, "insert into {s}.base values (9, 9, 1.5)")
        assert rows(project, "select extra from {s}.base where id = 9")[0][0] == pytest.approx(1.5)

    def test_another_layout_needs_a_full_refresh(self, project, built):
        changed = GROWN.replace("'p'", "'a'", 1)
        write_file(changed, project.project_root, "models", "grown.sql")
        (result,) = run_dbt(["run", "-s", "grown"], expect_pass=False)
        assert "partition_by is a, the dataset has p" in result.message
        assert "--full-refresh" in result.message
        run_dbt(["run", "-s", "grown", "--full-refresh"])
        snapshot = snapshot_of(store_of(project), "grown")
        assert snapshot.partition_keys == ("a",)

    def test_payload_of_a_cube(self, project, built):
        before = rows(project, "select L, v, w from {s}.c order by L")
        self.run(project, "alter table {s}.cells rename column v to value")
        self.run(project, "alter table {s}.extra add column note string comment 'why'")
        after = rows(project, "select L, value, w, note from {s}.c order by L")
        assert after == [(*row, None) for row in before]
        state = resolve(store_of(project), cube_scope("c"))
        assert state.snapshot("c++extra").comments.columns == {"note": "why"}
        for text, reason in (
            ("alter table {s}.cells drop column L", "is a dimension column"),
            ("alter table {s}.cells rename column P to Q", "is a partition column"),
            ("alter table {s}.extra rename column w to value", "already owned by dataset cells"),
            ("alter table {s}.c drop column w", "is a view"),
            ("alter table {s}.cells drop partition (P = 1)", "is not supported. Supported:"),
            ("alter table {s}.nope add column a int", "There is no table"),
        ):
            with pytest.raises(Exception, match=reason):
                self.run(project, text)
        # The model's next run brings its own columns back, and takes nothing else away.
        (result,) = run_dbt(["run", "-s", "cells"], expect_pass=False)
        assert "value" in result.message and "v" in result.message
        run_dbt(["run", "-s", "cells", "--full-refresh"])
        assert rows(project, "select L, v, w from {s}.c order by L") == before
