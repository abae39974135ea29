"""Slim CI: what changed is built here, and stands on datasets that dbt defers to, or has cloned."""

from __future__ import annotations

import hashlib
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from ktk_engine.local.sql.local_sql import (
    LocalSql,  # deep: what it answers without Spark
)
from tests.functional.cube_models import ENRICHMENT, SEED
from tests.functional.relations import rows
from tests.support.queries import KnownStores
from tests.support.stores import Warehouse

NAMES = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L']) }}
select id as L, concat('p', id) as name from range(3)
"""
MODELS = {
    "cs.sql": SEED,
    "ce.sql": ENRICHMENT,
    "cn.sql": NAMES,
    "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cs'), ref('ce'), ref('cn')) }}",
    "sums.sql": "{{ config(materialized='table') }} "
    "select P, sum(v) as v, sum(w) as w, count(name) as n from {{ ref('c') }} group by P",
    "cells.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('c'), dimension_columns=['L']) }}",
    "schema.yml": """
models:
  - name: c
    data_tests: [cube_compatible, cube_cells_unique]
  - name: ce
    data_tests:
      - cube_orphans: {arguments: {seed: ref('cs')}}
      - cube_coverage: {at_least: 1, seed: ref('cs')}
      - cube_compatible
""",
}
CHANGED = ENRICHMENT.replace("id * 1.5D", "id * 2.5D")


def digests(folder: Path) -> dict[str, str]:
    """What lies in a folder, file by file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Deferring:
    """`default` is production; `an` is another schema of its store, `dev` another store."""

    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        other = {**production, "schema": f"{unique_schema}_an"}
        dev = {**other, "store": "./dev", "defer_store": "./warehouse"}
        outputs = {"default": production, "an": other, "dev": dev}
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture(scope="class")
    def production(self, project):
        """The project with its production built, and the state of that in `state`."""
        run_dbt(["build"])
        root = Path(project.project_root)
        shutil.copytree(root / "target", root / "state")
        return project

    @pytest.fixture(autouse=True)
    def untouched(self, production):
        """Nothing is ever written where dbt defers to; what a test built is gone after it."""
        root = Path(production.project_root)
        folder = root / "warehouse" / production.test_schema
        before = digests(folder)
        yield
        assert digests(folder) == before
        shutil.rmtree(root / "warehouse" / f"{production.test_schema}_an", ignore_errors=True)
        shutil.rmtree(root / "dev", ignore_errors=True)
        for name, text in MODELS.items():
            write_file(text, f"{root}/models/{name}")


def change(project, **models) -> None:
    for name, text in models.items():
        write_file(text, f"{project.project_root}/models/{name}.sql")


def shown(target: str, query: str) -> list[tuple]:
    found = run_dbt(["show", "--target", target, "--limit", "-1", "--inline", query])
    return [tuple(row) for row in found.results[0].agate_table.rows]


DEFER = ["--defer", "--state", "state"]
MODIFIED = ["--select", "state:modified+", *DEFER]


@pytest.mark.parametrize("target", ["an", "dev"])
class TestChangedEnrichment(Deferring):
    def test_the_cube_reads_it_beside_what_is_deferred(self, production, target):
        change(production, ce=CHANGED)
        results = run_dbt(["build", "--target", target, *MODIFIED])
        assert {str(item.status) for item in results} == {"success", "pass"}
        built = {item.node.name for item in results if item.node.resource_type == "model"}
        assert built == {"ce", "c", "sums", "cells"}
        found = shown(target, "select P, v, w, n from {{ ref('sums') }} order by P")
        expected = [
            (
                p,
                sum(2 * i for i in range(60) if i % 3 == p),
                sum(2.5 * i for i in range(60) if i % 3 == p),
                1,
            )
            for p in range(3)
        ]
        assert found == expected
        assert shown(target, "select count(*), sum(w) from {{ ref('c') }} where v < 10") == [
            (5, 25.0)
        ]
        assert shown(target, "select count(distinct P, L) from {{ ref('cells') }}") == [(60,)]

    def test_the_catalog_describes_it(self, production, target):
        change(production, ce=CHANGED)
        run_dbt(["build", "--target", target, *MODIFIED])
        catalog = run_dbt(["docs", "generate", "--target", target, *DEFER])
        (found,) = [item for key, item in catalog.nodes.items() if key.endswith(".c")]
        assert list(found.columns) == ["L", "P", "v", "w", "name"]

    def test_its_key_is_checked_against_the_deferred_seed_dataset(self, production, target):
        change(production, ce=CHANGED.replace("id as L", "cast(id as string) as L"))
        _, log = run_dbt_and_capture(["build", "--target", target, *MODIFIED], expect_pass=False)
        assert "type check failed for dataset c++ce (nothing was written)" in log

    def test_its_payload_is_checked_against_what_is_deferred(self, production, target):
        change(production, ce=CHANGED.replace("as w", "as w, id as v"))
        _, log = run_dbt_and_capture(["build", "--target", target, *MODIFIED], expect_pass=False)
        assert "payload column v is already owned by dataset cs" in log
        assert "let this run build cs as well (add cs to --select)" in log

    def test_its_partitions_are_checked(self, production, target):
        change(production, ce=CHANGED.replace(", partition_by=['P']", ""))
        _, log = run_dbt_and_capture(["build", "--target", target, *MODIFIED], expect_pass=False)
        assert "holds the cube's partition columns `P` as ordinary columns" in log

    def test_two_enrichments_are_changed(self, production, target):
        change(production, ce=CHANGED, cn=NAMES.replace("'p'", "'q'"))
        run_dbt(["build", "--target", target, *MODIFIED])
        query = "select L, w, name from {{ ref('c') }} where name is not null order by L"
        assert shown(target, query) == [(0, 0.0, "q0"), (1, 2.5, "q1"), (2, 5.0, "q2")]

    def test_the_seed_dataset_is_changed(self, production, target):
        change(production, cs=SEED.replace("id * 2", "id * 3"))
        run_dbt(["build", "--target", target, *MODIFIED])
        assert shown(target, "select sum(v), sum(w), count(name) from {{ ref('c') }}") == [
            (5310, 2655.0, 3)
        ]
        change(production, cs=SEED.replace("range(60)", "range(6)"))
        results = run_dbt(["build", "--target", target, *MODIFIED], expect_pass=False)
        assert {r.node.name.partition("_ref")[0] for r in results if str(r.status) == "fail"} == {
            "cube_orphans_ce"
        }

    def test_a_seed_dataset_that_breaks_what_is_deferred_is_refused(self, production, target):
        text = SEED.replace("id as L", "cast(id as string) as L")
        change(production, cs=text.replace("cube='c'", "cube='c', cascade=true"))
        _, log = run_dbt_and_capture(
            ["build", "--target", target, "--full-refresh", *MODIFIED], expect_pass=False
        )
        assert "This breaks 2 enrichments of cube c" in log
        assert "let this run build them as well (add them to --select)" in log
        cast = "cast(id as string) as L"
        change(
            production, ce=ENRICHMENT.replace("id as L", cast), cn=NAMES.replace("id as L", cast)
        )
        run_dbt(["build", "--target", target, *MODIFIED])
        assert shown(target, "select count(*) from {{ ref('c') }} where L = '7'") == [(1,)]

    def test_a_dataset_that_is_gone_there_is_named(self, production, target):
        change(production, ce=CHANGED)
        run_dbt(["run", "--target", target, *MODIFIED])
        root = Path(production.project_root)
        folder = root / "warehouse" / production.test_schema
        folder.rename(root / "away")
        try:
            with pytest.raises(Exception, match=r"is gone|There is no store at"):
                shown(target, "select * from {{ ref('c') }}")
        finally:
            (root / "away").rename(folder)

    def test_versions_of_several_logs_are_told_apart_by_time_alone(self, production, target):
        change(production, ce=CHANGED)
        run_dbt(["build", "--target", target, *MODIFIED])
        with pytest.raises(Exception, match="Ask for a time"):
            shown(target, "select * from {{ at_version(ref('c'), 1) }}")

    def test_favor_state(self, production, target):
        run_dbt(["run", "--target", target, "--vars", "{}"])
        change(production, ce=CHANGED)
        run_dbt(["build", "--target", target, "--favor-state", *MODIFIED])
        assert shown(target, "select sum(v), sum(w) from {{ ref('c') }}") == [(3540, 4425.0)]

    def test_after_a_clone(self, production, target):
        run_dbt(["clone", "--target", target, "--state", "state"])
        change(production, ce=CHANGED)
        results = run_dbt(
            ["build", "--target", target, "--select", "state:modified+", "--state", "state"]
        )
        assert {str(item.status) for item in results} == {"success", "pass"}
        assert shown(target, "select sum(v), sum(w), count(name) from {{ ref('c') }}") == [
            (3540, 4425.0, 3)
        ]
        change(production, ce=CHANGED.replace("id as L", "cast(id as string) as L"))
        _, log = run_dbt_and_capture(
            ["run", "--target", target, "--full-refresh", "-s", "ce"], expect_pass=False
        )
        assert "type check failed for dataset c++ce (nothing was written)" in log


class TestWithoutDeferring(Deferring):
    def test_the_message_says_what_helps(self, production):
        text = "{{ config(materialized='cube') }}{{ cube_of(source('prod', 'cs'), ref('ce')) }}"
        sources = f"""
sources: [{{name: prod, schema: {production.test_schema}, tables: [{{name: cs}}]}}]
"""
        write_file(sources, f"{production.project_root}/models/sources.yml")
        change(production, c=text)
        _, log = run_dbt_and_capture(["run", "--target", "an", "-s", "ce", "c"], expect_pass=False)
        Path(production.project_root, "models", "sources.yml").unlink()
        assert "is not a cube dataset of schema" in log
        assert "where dbt defers to it (`--defer --state`), or after `dbt clone`" in log
        assert rows(production, "select count(*) from {s}.c") == [(60,)]


OPTIONS = "{cube: c, cube_role: ROLE, dimension_columns: [L], column_types: {L: bigint}}"
CSV_YAML = f"""
seeds:
  - {{name: cs, config: {OPTIONS.replace("ROLE", "seed")}}}
  - name: ce
    config: {OPTIONS.replace("ROLE", "enrichment")}
    data_tests:
      - cube_orphans: {{arguments: {{seed: ref('cs')}}}}
      - cube_compatible
  - {{name: cn, config: {OPTIONS.replace("ROLE", "enrichment")}}}
models:
  - {{name: c, data_tests: [cube_cells_unique, cube_compatible]}}
"""


class TestWithoutSpark:
    """A cube of CSV files: all of it is done in dbt's process."""

    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "c.sql": "{{ config(materialized='cube') }}"
            "{{ cube_of(ref('cs'), ref('ce'), ref('cn')) }}",
            "schema.yml": CSV_YAML,
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"cs.csv": "L,v\n1,10\n2,20\n", "ce.csv": "L,w\n1,5\n", "cn.csv": "L,x\n2,7\n"}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        other = {**production, "schema": f"{unique_schema}_an"}
        return {"test": {"outputs": {"default": production, "an": other}, "target": "default"}}

    def write(self, project, name: str, text: str) -> None:
        write_file(text, f"{project.project_root}/seeds/{name}.csv")

    def rows_of(self, project, schema: str) -> list[tuple]:
        warehouse = Warehouse(Path(project.project_root) / "warehouse")
        sql = LocalSql(KnownStores(warehouse.find_schema, warehouse.trust))
        found = sql.rows(f"select L, v, w, x from {project.test_schema}{schema}.c")
        return [tuple(row.values()) for row in found.to_pylist()]

    def test_a_changed_file(self, project):
        run_dbt(["build"])
        root = Path(project.project_root)
        shutil.copytree(root / "target", root / "state")
        folder = root / "warehouse" / project.test_schema
        before = digests(folder)
        self.write(project, "ce", "L,w\n1,6\n2,8\n")
        results = run_dbt(["build", "--target", "an", *MODIFIED])
        assert {str(item.status) for item in results} == {"success", "pass"}
        assert self.rows_of(project, "_an") == [(1, 10, 6, None), (2, 20, 8, 7)]
        self.write(project, "ce", "L,v\n1,6\n")
        _, log = run_dbt_and_capture(
            ["build", "--target", "an", "--full-refresh", *MODIFIED], expect_pass=False
        )
        assert "let this run build cs as well (add cs to --select)" in log
        self.write(project, "cs", "L,u\n1,10\n2,20\n")
        run_dbt(["seed", "--target", "an", "--full-refresh", "-s", "ce", "cs", *DEFER])
        assert digests(folder) == before
        run_dbt(["build", "--full-refresh", "--threads", "1"])

    def test_what_ends_in_an_error_is_not_waited_for(self, project):
        self.write(project, "cs", "L,v\n1,10\n2,20\n")
        self.write(project, "ce", "L,w\n1,5\n")
        run_dbt(["build", "--full-refresh"])
        self.write(project, "ce", "L,w\n1\n")  # a short row
        self.write(project, "cn", "L,w\n2,7\n")
        results = run_dbt(["seed", "--full-refresh", "--threads", "1"], expect_pass=False)
        found = {item.node.name: str(item.status) for item in results}
        assert found == {"ce": "error", "cn": "error", "cs": "success"}
        assert self.rows_of(project, "") == [(1, 10, 5, None), (2, 20, None, 7)]
