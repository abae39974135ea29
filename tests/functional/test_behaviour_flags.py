"""dbt's flags of changed behaviour, all on and all off; docs/dbt.md lists them one by one."""

from __future__ import annotations

from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import pytest
from dbt.adapters.base.impl import DEFAULT_BASE_BEHAVIOR_FLAGS
from dbt.contracts.project import ProjectFlags
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtConfigError

from tests.functional.relations import rows

FLAGS = sorted(
    {*ProjectFlags().project_only_flags, *(item["name"] for item in DEFAULT_BASE_BEHAVIOR_FLAGS)}
    & {*(item.name for item in fields(ProjectFlags)), "enable_truthy_nulls_equals_macro"}
)
PAGE = (Path(__file__).parents[2] / "docs" / "dbt.md").read_text(encoding="utf-8")
since_1_12 = pytest.mark.skipif(
    version("dbt-core").startswith("1.11."), reason="what is tested came with dbt-core 1.12"
)

CELLS = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['id']) }}
select id, a from {{ ref('numbers') }} where {{ equals('a', 'a') }}
"""
BATCHES = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
  batch_size='year', begin=modules.datetime.date.today().strftime('%Y-01-01'), lookback=0) }}
select id, timestamp '{{ modules.datetime.date.today().year }}-01-01' as at from {{ ref('cells') }}
"""
SNAPSHOT = """
snapshots:
  - name: kept
    relation: ref('numbers')
    config: {unique_key: id, strategy: check, check_cols: all}
"""
MODELS = """
models:
  - name: cells
    columns:
      - name: id
        data_tests: [unique, not_null, {accepted_values: {<values>}}, {type_class: {<class>}}]
    data_tests: [cube_cells_unique]
sources:
  - name: stored
    schema: "{{ target.schema }}"
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: cells}]
"""


def test_the_page_lists_every_flag():
    assert {name for name in FLAGS if f"`{name}`" not in PAGE} == set()


class TestAllOn:
    value = True

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {
            "flags": dict.fromkeys(FLAGS, self.value),
            "on-run-start": ["select 1"],
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"numbers.csv": "id,a\n1,2\n2,\n"}

    @pytest.fixture(scope="class")
    def models(self):
        return self.own_models()

    def own_models(self):
        return {
            "cells.sql": CELLS,
            "batches.sql": BATCHES,
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('cells') }}",
            "models.yml": self.with_arguments(MODELS),
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.yml": SNAPSHOT}

    def test_a_project_is_built_as_ever(self, project):
        for _ in range(2):
            run_dbt(["build"])
        wanted = [(1, 2), (2, None)] if self.truthy_nulls else [(1, 2)]
        assert rows(project, "select id, a from {s}.seen order by id") == wanted
        assert rows(project, "select id from {s}.batches order by id") == [(i,) for i, _ in wanted]
        run_dbt(["source", "freshness"])
        run_dbt(["docs", "generate"])

    def with_arguments(self, text):
        """Arguments of tests have a key of their own, unless the flag is off."""
        for name, given in (
            ("<values>", "values: [1, 2]"),
            ("<class>", "is: signed integer"),
        ):
            text = text.replace(name, f"arguments: {{{given}}}" if self.value else given)
        return text

    @property
    def truthy_nulls(self):
        return self.value

    def test_nothing_of_ours_is_warned_of(self, project):
        _, log = run_dbt_and_capture(["--log-level", "warn", "parse", "--no-partial-parse"])
        assert "ktk" not in log.replace("Registered adapter: ktk", "")


class TestAllOff(TestAllOn):
    value = False


class TestNamesWithBlanks:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"flags": {"require_resource_names_without_spaces": False}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"two words.sql": "select 1 as id"}

    def test_are_refused(self, project):
        (result,) = run_dbt(["run"], expect_pass=False)
        assert "'two words': only letters, digits" in result.message


class TestMacrosOfStrategies:
    """Whether dbt makes batches for a macro of the project is a flag; it is refused with both."""

    value = True

    @pytest.fixture(scope="class")
    def project_config_update(self):
        name = "require_batched_execution_for_custom_microbatch_strategy"
        return {"flags": {name: self.value}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"batches.sql": BATCHES, "cells.sql": "select 1 as id"}

    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "own.sql": "{% macro get_incremental_microbatch_sql(arg_dict) %}"
            "insert into {{ arg_dict['target_relation'] }} select 1{% endmacro %}"
        }

    def test_the_macro_is_refused(self, project):
        with pytest.raises(DbtConfigError, match="get_incremental_microbatch_sql of test would"):
            run_dbt(["run"])


class TestMacrosOfStrategiesWithoutBatches(TestMacrosOfStrategies):
    value = False


@since_1_12
class TestLatestVersionPointer:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"flags": {"latest_version_pointer_enabled_by_default": True}}

    @pytest.fixture(scope="class")
    def models(self):
        head = "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id']) }} "
        return {
            "cells_v1.sql": head + "select 1 as id",
            "cells_v2.sql": head.replace("'c'", "'d'") + "select 2 as id",
            "models.yml": "models: [{name: cells, latest_version: 2, versions: [{v: 1}, {v: 2}]}]",
        }

    def test_a_view_shows_the_latest_version(self, project):
        for _ in range(2):
            run_dbt(["build"])
            assert rows(project, "select id from {s}.cells") == [(2,)]


@since_1_12
class TestSeedsAndSql:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"numbers.csv": "id,a\n1,2\n2,\n"}

    def test_seed_empty_keeps_columns_and_no_rows(self, project):
        run_dbt(["seed"])
        run_dbt(["seed", "--empty"])
        assert rows(project, "select id, a from {s}.numbers") == []

    def test_sql_of_an_operation(self, project):
        run_dbt(["seed"])
        run_dbt(["run-operation", "--sql", "delete from {{ ref('numbers') }} where a is null"])
        assert rows(project, "select id, a from {s}.numbers") == [(1, 2)]
        run_dbt(
            ["run-operation", "--sql", "delete from {{ ref('numbers') }} where nam = 1"],
            expect_pass=False,
        )
        assert rows(project, "select id, a from {s}.numbers") == [(1, 2)]


@since_1_12
class TestHeadersOfTests:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"flags": {"require_sql_header_in_test_configs": True}}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "numbers.sql": "{{ config(materialized='table') }} select 1 as id",
            "models.yml": """
models:
  - name: numbers
    columns:
      - name: id
        data_tests:
          - like_setting:
              config: &headed {sql_header: "set spark.sql.shuffle.partitions = 2;", severity: warn}
          - like_setting: {name: kept, config: {<<: *headed, store_failures: true}}
          - like_setting: {name: without}
""",
        }

    @pytest.fixture(scope="class")
    def macros(self):
        """Its rows are those below a setting, which is 1 in these tests."""
        return {
            "like_setting.sql": "{% test like_setting(model, column_name) %}"
            "select * from {{ model }} where {{ column_name }} < ${spark.sql.shuffle.partitions} "
            "{% endtest %}"
        }

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return {**dbt_profile_target, "threads": 1}

    def test_the_header_holds_for_its_test_alone(self, project):
        run_dbt(["run"])
        found = {item.node.name: str(item.status) for item in run_dbt(["test"])}
        named = {name: status for name, status in found.items() if name in ("kept", "without")}
        assert named == {"kept": "warn", "without": "pass"}
        assert sorted(found.values()) == ["pass", "warn", "warn"]


class TestCatalogs:
    """A store is its own catalog: catalogs.yml is for other adapters."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"numbers.sql": "{{ config(materialized='table') }} select 1 as id"}

    def test_catalogs_are_refused(self, project):
        text = """
catalogs:
  - name: lake
    active_write_integration: a
    write_integrations: [{name: a, catalog_type: iceberg_rest, external_volume: v}]
"""
        write_file(text, project.project_root, "catalogs.yml")
        with pytest.raises(DbtConfigError, match="a store is its own catalog"):
            run_dbt(["build"])
