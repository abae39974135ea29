"""A changed `indexes` counts from the next run on, whatever that run writes or keeps."""

from __future__ import annotations

import json

import pyarrow.compute as pc
import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt

from tests.functional.relations import rows, store_of
from tests.support.committed import check, cube_scope, resolve, scope_of
from tests.support.documents import stored_index

ROWS = """
select id as x, cast(id % 2 as string) as p, concat(id, '%') as v, id * 10 as w,
  timestamp '2020-01-01' + make_interval(0, 0, 0, cast(id as int)) as at
from range({{ var('rows', 2) }})
"""
MODEL = """
{{{{ config(materialized='incremental', indexes=var('indexed', []), {config}) }}}}
select * from {{{{ ref('source_rows') }}}} where x >= {{{{ var('since', 0) }}}}
"""
SNAPSHOT = """
{{% snapshot {name} %}}
{{{{ config(indexes=var('indexed', []), unique_key='x', strategy='check', check_cols=['w'],
  {config}) }}}}
select x, v, w + {{{{ var('more', 0) }}}} as w from {{{{ ref('source_rows') }}}}
where x < {{{{ var('rows', 2) }}}}
{{% endsnapshot %}}
"""
CUBE = "cube='{}', cube_role='seed', dimension_columns=['x', 'at'], partition_by='p', "
STRATEGIES = {
    "append": "incremental_strategy='append'",
    "merge": "incremental_strategy='merge', unique_key=['x', 'at', 'p']",
    "overwrite": "incremental_strategy='insert_overwrite'",
    "where": "incremental_strategy='replace_where', "
    "incremental_predicates='x >= ' ~ var('since', 0)",
    "batches": "incremental_strategy='microbatch', event_time='at', batch_size='day', "
    "begin='2020-01-01', lookback=1",
}
NAMES = [*STRATEGIES, "versions"]


def models():
    made = {"source_rows.sql": "{{ config(materialized='view', event_time='at') }}" + ROWS}
    for name, config in STRATEGIES.items():
        made[f"{name}_t.sql"] = MODEL.format(config="partition_by='p', " + config)
        made[f"{name}_c.sql"] = MODEL.format(config=CUBE.format(name) + config)
    return made


def scope(name):
    return cube_scope(name[:-2]) if name.endswith("_c") else scope_of(name)


class TestChangedIndexes:
    @pytest.fixture(scope="class")
    def models(self):
        return models()

    @pytest.fixture(scope="class")
    def snapshots(self):
        in_cube = "cube='versions', cube_role='seed', dimension_columns=['x', 'dbt_valid_from']"
        return {
            "t.sql": SNAPSHOT.format(name="versions_t", config=""),
            "c.sql": SNAPSHOT.format(name="versions_c", config=in_cube),
        }

    def build(self, **variables):
        with patch_microbatch_end_time(f"2020-01-0{variables['rows']} 13:00:00"):
            run_dbt(["build", "--vars", json.dumps(variables)])

    def indexed(self, project, name):
        """The indexes that the configuration says, each verified against the rows."""
        store = store_of(project)
        ((_, snapshot),) = resolve(store, scope(name)).snapshots().items()
        asked = ", ".join(f"`{column}`" for column in snapshot.indices)
        stored = rows(project, f"select {asked} from {{s}}.{name}") if asked else []
        for position, (column, key) in enumerate(snapshot.indices.items()):
            found = stored_index(store, key)
            values = set(pc.unique(found["value"]).to_pylist())
            assert set(found["label"].to_pylist()) == set(snapshot.labels), (name, column)
            assert {str(value) for value in values} >= {
                str(row[position]) for row in stored if not hasattr(row[position], "tzinfo")
            }, (name, column)
        assert not check(store, scope(name).name).problems
        return frozenset(snapshot.indices) - {"x", "at", "dbt_valid_from"}

    def test_added_exchanged_and_dropped(self, project):
        assert self.after(project, rows=2) == {frozenset()}
        assert self.after(project, rows=4, since=2, indexed=["v"]) == {frozenset("v")}
        # Without any new row.
        assert self.after(project, rows=4, since=9, indexed=["w", "v"]) == {frozenset("vw")}
        assert self.after(project, rows=4, since=9, indexed=["w"]) == {frozenset("w")}
        assert self.after(project, rows=5, since=4, more=1) == {frozenset()}

    def after(self, project, **variables):
        """The different sets of indexes that relations have after a run: one, if all is well."""
        self.build(**variables)
        found = {
            f"{name}_{kind}": self.indexed(project, f"{name}_{kind}")
            for name in NAMES
            for kind in "tc"
        }
        return set(found.values()) if len(set(found.values())) == 1 else found
