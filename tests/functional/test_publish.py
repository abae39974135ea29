"""`publish` on models, seeds and snapshots: other engines read what was built last."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtConfigError

from tests.functional.relations import store_of
from tests.integration.delta.readers import READERS as OF_DELTA
from tests.integration.iceberg.readers import READERS as OF_ICEBERG
from tests.support.changes import check_publishing

READERS = {**OF_DELTA, **OF_ICEBERG}
FLIGHTS = """{{ config(materialized='cube_seed', cube='nyc', dimension_columns=['hour'],
    partition_by=['origin']) }}
select * from values ('EWR', 1, 5.0D, timestamp_ntz'2013-01-01 05:00:00'),
    ('JFK', 2, null, null) as t(origin, hour, delay, at)"""
WIDE = """{{ config(materialized='table', cluster_by=none) }}
select * from {{ ref('flights') }}"""
MORE = """{{ config(materialized='incremental', auto_compact=2, partition_by='p') }}
select 1 as x, 'a/b' as p {% if is_incremental() %} union all select 2, 'é' {% endif %}"""
TIMES = "{{ config(materialized='table') }} select 1 as a, cast(0.5 as double) as `a b`"
SNAPSHOT = """{% snapshot kept %}
{{ config(strategy='check', unique_key='hour', check_cols=['delay']) }}
select hour, delay from {{ ref('flights') }}
{% endsnapshot %}"""


class TestPublish:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "flights.sql": FLIGHTS,
            "wide.sql": WIDE.replace(", cluster_by=none", ""),
            "more.sql": MORE,
            "odd.sql": TIMES,
            "shown.sql": "{{ config(materialized='view') }} select 1 as a",
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"carriers.csv": "code,name\nUA,United\nAA,Ämerican\n"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        both = {"+publish": ["delta", "iceberg"]}
        return {"models": both, "seeds": both, "snapshots": {"+publish": "delta, iceberg"}}

    def read(self, project, name, reader="arrow"):
        root = store_of(project).uri(name).removeprefix("file://")
        return READERS[reader](root).to_pylist()

    def test_every_run_is_read_by_other_engines(self, project):
        run_dbt(["seed"])
        _, log = run_dbt_and_capture(["run"])
        assert "names with blanks" in log  # of the model that Delta cannot say
        run_dbt(["snapshot"])
        for reader in READERS:
            assert len(self.read(project, "nyc++flights", reader)) == 2
            assert len(self.read(project, "wide", reader)) == 2
            assert {row["name"] for row in self.read(project, "carriers", reader)} == {
                "United",
                "Ämerican",
            }
            assert len(self.read(project, "kept", reader)) == 2
        for _ in range(2):
            run_dbt(["run", "-s", "more"])
        assert sorted((row["x"], row["p"]) for row in self.read(project, "more", "polars")) == [
            (1, "a/b"),
            (1, "a/b"),
            (1, "a/b"),
            (2, "é"),
            (2, "é"),
        ]
        for name in ("nyc", "wide", "carriers", "kept", "more"):
            found = check_publishing(store_of(project), name)
            assert {item.problem for item in found} == {""}
            assert {item.format for item in found} == {"delta", "iceberg"}

    def test_an_unknown_format_is_an_error_of_the_configuration(self, project):
        write_file(WIDE.replace("cluster_by=none", "publish='delte'"), "models", "wide.sql")
        with pytest.raises(DbtConfigError, match=r"'delte' is not a format.* Did you mean `delta`"):
            run_dbt(["run", "-s", "wide"])
        write_file(WIDE.replace("cluster_by=none", "publish='iceberg'"), "models", "wide.sql")
        run_dbt(["run", "-s", "wide"])
        assert store_of(project).list_names("wide/_delta_log") == []
        assert len(self.read(project, "wide", "pyiceberg")) == 2
        write_file(WIDE.replace("cluster_by=none", "publish='none'"), "models", "wide.sql")
        run_dbt(["run", "-s", "wide"])
        assert store_of(project).list_names("wide/iceberg/metadata") == []


class TestTypesOfLiterals:
    """The types of literals change from run to run: 10.25 is decimal(4,2), 2.50 decimal(3,2)."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "prices.sql": """{{ config(materialized='incremental', publish=['delta', 'iceberg'],
                    unique_key='k', auto_compact=false) }}
                {% if is_incremental() %} select 2 as k, 2.50 as price, 1 as n, array(1) as l
                union all select 3, 2.50, 1, array(1)
                {% else %} select 1 as k, 10.25 as price, 1L as n, array(1L) as l
                union all select 2, 10.25, 1L, array(1L) {% endif %}"""
        }

    def test_every_run_is_published(self, project):
        for _ in range(3):
            _, log = run_dbt_and_capture(["run"])
            assert "not published" not in log and "hold different types" not in log
        root = store_of(project).uri("prices").removeprefix("file://")
        for name, read in READERS.items():
            found = read(root)
            assert sorted(found["k"].to_pylist()) == [1, 2, 3], name
            assert sorted(map(str, found["price"].to_pylist())) == ["10.25", "2.50", "2.50"], name
