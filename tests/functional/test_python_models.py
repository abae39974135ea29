"""Python models through dbt: what they get, what they may return, what is refused and how."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.relations import rows, store_of
from tests.support.committed import (
    cube_scope,
    list_relations,
    scope_of,
    snapshot_of,
    version_of,
)

ODD = ["a/b", "100%", "k=v", "Zürich", ""]

BASE = "{{ config(materialized='table') }} select id, id * 10 as v from range(6)"

SPARK = """
from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

@dataclass
class Rate:
    factor: int

def times(value: int) -> int:
    return value * Rate(3).factor

@F.udf("bigint")
def tripled(value):
    return times(value)

def model(dbt, session):
    dbt.config(materialized="table")
    frame = dbt.ref("base")
    assert "Rate" in globals() and dbt.config.get("materialized") == "table"
    return frame.where(frame.id < 3).withColumn("w", tripled("id"))
"""

PANDAS = f"""
import numpy as np
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="table", partition_by=["city", "late"])
    frame = pd.DataFrame({{
        "city": {ODD!r},
        "late": [True, False, True, False, True],
        "delay": [1.5, np.nan, None, 4.0, -0.0],
        "nothing": [None] * 5,
        "kind": pd.Categorical(["x", "y", "x", None, ""]),
        "at": pd.to_datetime(["2020-01-01 00:00:00.000001"] * 5, utc=True),
    }})
    return frame[frame["late"] | (frame["city"] != "never")]
"""

ARROW = """
import pyarrow as pa

def model(dbt, session):
    dbt.config(materialized="table")
    return pa.table({
        "id": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "share": pa.array([float("nan"), 0.5, None]),
        "nothing": pa.nulls(3),
    })
"""

BY_NAME = """
def model(dbt, session):
    dbt.config(materialized="table")
    schema = dbt.this.schema
    dbt.ref("base"), dbt.ref("low")
    assert session.table(f"{schema}.low").count() == 2
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    dbt.ref("base").createOrReplaceTempView("mine")
    return session.sql(
        f"select b.id, '{dbt.this}' as me from {schema}.base b join mine using (id) where id > :x",
        {"x": 3},
    )
"""


def stored(project, name: str) -> pa.Schema:
    return snapshot_of(store_of(project), name).schema


def head_of(project, scope):
    return version_of(store_of(project), scope)


def failure(*arguments: str) -> str:
    """The message of the only model that fails."""
    results = run_dbt(["run", *arguments], expect_pass=False)
    (message,) = [item.message for item in results if item.status == "error"]
    return message


class TestReturned:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "base.sql": BASE,
            "low.sql": "select * from {{ ref('base') }} where id < 2",
            "of_spark.py": SPARK,
            "of_pandas.py": PANDAS,
            "of_arrow.py": ARROW,
            "by_name.py": BY_NAME,
            "after.sql": "{{ config(materialized='table') }} select id, "
            "current_timezone() as zone from {{ ref('by_name') }}",
        }

    @pytest.fixture(scope="class")
    def modules_before(self, project):
        return set(sys.modules)

    @pytest.fixture(scope="class")
    def results(self, project, modules_before):
        return run_dbt(["run", "--threads", "1"])

    def test_a_spark_frame_with_functions_of_the_file(self, results, project):
        assert sorted(rows(project, "select * from {s}.of_spark")) == [
            (0, 0, 0),
            (1, 10, 3),
            (2, 20, 6),
        ]

    def test_a_pandas_frame(self, results, project):
        found = rows(project, "select city, late, delay, nothing, kind from {s}.of_pandas")
        assert {row[0]: row[1:] for row in found} == {
            "a/b": (True, 1.5, None, "x"),
            "100%": (False, None, None, "y"),
            "k=v": (True, None, None, "x"),
            "Zürich": (False, 4.0, None, None),
            "": (True, -0.0, None, ""),
        }
        assert stored(project, "of_pandas").field("at").type == pa.timestamp("us", "UTC")

    def test_an_arrow_table(self, results, project):
        found = rows(project, "select id, share, nothing from {s}.of_arrow order by id")
        assert [str(row) for row in found] == [
            "(None, None, None)",
            "(Decimal('1'), nan, None)",
            "(Decimal('18446744073709551615'), 0.5, None)",
        ]
        assert stored(project, "of_arrow").field("id").type == pa.uint64()

    def test_relations_by_name(self, results, project):
        me = f"{project.test_schema}.by_name"
        assert sorted(rows(project, "select * from {s}.by_name")) == [(4, me), (5, me)]

    def test_nothing_is_left_behind(self, results, project, modules_before):
        assert set(rows(project, "select zone from {s}.after")) == {("UTC",)}
        new = set(sys.modules) - modules_before
        assert not [name for name in new if "of_spark" in name or name.startswith("ktk_model")]
        assert not list(Path(project.project_root).rglob("*.pyc"))

    def test_a_preview_says_how_to_get_one(self, project):
        with pytest.raises(DbtRuntimeError, match="has no SQL that could be shown") as error:
            run_dbt(["show", "--select", "of_spark"])
        assert "select * from {{ ref('of_spark') }}" in str(error.value)

    def test_compile_and_list_need_no_model_to_run(self, project):
        run_dbt(["compile", "-s", "of_spark"])
        assert "of_spark" in " ".join(run_dbt(["ls"]))


STOCK = """
import pyarrow as pa

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", incremental_strategy="{strategy}")
    if not dbt.is_incremental:
        return pa.table({{"id": pa.array([1, 2], pa.uint32()), "n": [10, 20]}})
    highest = session.sql(f"select max(id) as id from {{dbt.this}}").first().id
    return pa.table({{"id": pa.array([2, int(highest) + 1], pa.uint64()), "n": [21, 30]}})
"""

PANDAS_STOCK = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", incremental_strategy="delete+insert")
    if dbt.is_incremental:
        return pd.DataFrame({"id": [2, 3], "n": ["b", None]})
    return pd.DataFrame({"id": [1, 2], "n": ["a", ""]})
"""


class TestIncremental:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "merged.py": STOCK.format(strategy="merge"),
            "added.py": STOCK.format(strategy="append"),
            "swapped.py": PANDAS_STOCK,
        }

    def test_strategies(self, project):
        run_dbt(["run"])
        assert stored(project, "merged").field("id").type == pa.uint64()
        results = run_dbt(["run"])
        (merged,) = [item for item in results if item.node.name == "merged"]
        assert merged.adapter_response["rows_updated"] == 1
        assert merged.adapter_response["rows_inserted"] == 1
        assert sorted(rows(project, "select * from {s}.merged")) == [(1, 10), (2, 21), (3, 30)]
        assert sorted(rows(project, "select n from {s}.added")) == [(10,), (20,), (21,), (30,)]
        assert sorted(rows(project, "select * from {s}.swapped")) == [
            (1, "a"),
            (2, "b"),
            (3, None),
        ]
        run_dbt(["run", "--full-refresh"])
        assert sorted(rows(project, "select * from {s}.merged")) == [(1, 10), (2, 20)]


SEED = """
def model(dbt, session):
    dbt.config(
        materialized="cube_seed", cube="nyc", dimension_columns=["f"], partition_by=["dest"],
        {more}
    )
    values = {values}
    return session.createDataFrame(values, "f bigint, dest string, v {type}")
"""
VALUES = [(i, dest, i) for i, dest in enumerate(ODD)]

EXTRA = """
import pandas as pd

def model(dbt, session):
    dbt.config(
        materialized="cube_enrichment", cube="nyc", dimension_columns=["f"], partition_by=["dest"]
    )
    flights = dbt.ref("flights").toPandas()
    return pd.DataFrame({"f": flights.f, "dest": flights.dest, "late": flights.v > 2})
"""

OF_CUBE = """
def model(dbt, session):
    dbt.config(materialized="table")
    by_frame = dbt.ref("nyc").where("late").select("f")
    by_name = session.sql(f"select f from {dbt.this.schema}.nyc where dest = 'k=v'")
    return by_frame.union(by_name)
"""


def seed(values=VALUES, kind="bigint", more="") -> str:
    return SEED.format(values=values, type=kind, more=more)


class TestCube:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "flights.py": seed(),
            "delays.py": EXTRA,
            "nyc.sql": "{{ config(materialized='cube') }}"
            "{{ cube_of(ref('flights'), ref('delays')) }}",
            "of_cube.py": OF_CUBE,
        }

    @pytest.fixture
    def restored(self, project):
        yield
        write_file(seed(), project.project_root, "models", "flights.py")

    def test_datasets_of_a_cube(self, project):
        _, log = run_dbt_and_capture(["run"])
        name = f"{project.test_schema}.of_cube"
        assert f"{name}: dbt.ref gives cube nyc: files " in log
        assert f"{name} reads cube nyc: files " in log
        assert sorted(rows(project, "select * from {s}.of_cube")) == [(2,), (3,), (4,)]
        assert sorted(rows(project, "select f, dest, v, late from {s}.nyc")) == [
            (i, dest, i, i > 2) for i, dest in enumerate(ODD)
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (seed(kind="double", values=[(1, "a", 1.0)]), "| v      | signed integer"),
            (seed(values=[*VALUES, (0, "a/b", 9)]), "1 row repeats a cell"),
            (seed(values=[(0, None, 1)]), "1 row has no value in `dest`"),
            (seed(more="incremental_strategy='sideways',"), "sideways"),
        ],
        ids=["class", "cells", "null", "strategy"],
    )
    def test_the_gate_is_that_of_sql(self, project, restored, text, expected):
        run_dbt(["run"])
        before = head_of(project, cube_scope("nyc"))
        write_file(text, project.project_root, "models", "flights.py")
        if "sideways" in text:
            with pytest.raises(DbtRuntimeError, match=expected):
                run_dbt(["run", "-s", "flights"])
        else:
            assert expected in failure("-s", "flights")
        assert head_of(project, cube_scope("nyc")) == before


DECLARED = """
models:
  - name: typed
    columns: [{name: id, data_type: uint32}, {name: w, data_type: string}]
"""
TYPED = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="table")
    return pd.DataFrame({columns})
"""


class TestDeclaredTypes:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "typed.py": TYPED.format(columns={"id": [1], "w": ["x"]}),
            "schema.yml": DECLARED,
        }

    def test_types_of_the_yaml(self, project):
        run_dbt(["run"])
        assert stored(project, "typed").field("id").type == pa.uint64()
        before = head_of(project, scope_of("typed"))
        for columns, expected in (({"id": [-1], "w": ["x"]}, "cannot hold exactly"),):
            write_file(TYPED.format(columns=columns), project.project_root, "models", "typed.py")
            assert expected in failure()
        assert head_of(project, scope_of("typed")) == before

    def test_dbt_itself_has_no_contracts_for_python(self, project):
        text = DECLARED.replace(
            "- name: typed", "- name: typed\n    config: {contract: {enforced: true}}"
        )
        write_file(text, project.project_root, "models", "schema.yml")
        with pytest.raises(DbtRuntimeError, match="Expected 'sql' but found 'python'"):
            run_dbt(["parse"])


RAISES = """


# The file begins with empty lines, which dbt strips.
def helper(frame):
    return frame["nope"] + 1


def model(dbt, session):
    dbt.config(materialized="table")
    {body}
"""
BODIES = {
    "python": "return helper({})",
    "analysis": 'return dbt.ref("base").select("nope")',
    "column_in_text": 'dbt.ref("base"); '
    'return session.sql(f"select nope from {dbt.this.schema}.base")',
    "lazy": 'return dbt.ref("base").select(__import__("pyspark").sql.functions.udf('
    'lambda x: helper({}), "bigint")("id").alias("x"))',
    "unknown_ref": 'return getattr(dbt, "ref")("elsewhere")',
    "unknown_source": 'return dbt.source("raw", "gone")',
    "nothing": "return None",
    "index": 'return dbt.ref("base").toPandas().set_index("id")',
    "mixed": 'return __import__("pandas").DataFrame({"x": [1, "a"]})',
    "twice": 'return __import__("pyarrow").table([[1], [2]], names=["x", "X"])',
    "fine": 'return __import__("pandas").DataFrame({0: [1]})',
}


class TestFailures:
    @pytest.fixture(scope="class")
    def models(self):
        bodies = {f"{name}.py": RAISES.replace("{body}", text) for name, text in BODIES.items()}
        sources = "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: gone}]}]"
        return {"base.sql": BASE, "sources.yml": sources, **bodies}

    @pytest.fixture(scope="class")
    def captured(self, project):
        results, log = run_dbt_and_capture(["run"], expect_pass=False)
        return {item.node.name: item.message for item in results}, log

    @pytest.mark.parametrize(
        ("model", "parts"),
        [
            (
                "python",
                [
                    'File "models/python.py", line 11, in model',
                    "return helper({})",
                    'File "models/python.py", line 6, in helper',
                    "KeyError: 'nope'",
                ],
            ),
            ("analysis", ['File "models/analysis.py", line 11, in model', "UNRESOLVED_COLUMN"]),
            ("column_in_text", ['models/column_in_text.py", line 11', "UNRESOLVED_COLUMN"]),
            ("lazy", ['models/lazy.py", line 6, in helper', "KeyError: 'nope'"]),
            ("unknown_ref", ['models/unknown_ref.py", line 11, in model', "elsewhere"]),
            ("unknown_source", ["If it is the source raw.gone: dbt does not build it. Load it"]),
            ("nothing", ["returned NoneType", "pandas DataFrame or an Arrow table"]),
            ("index", ["has id in its index", "reset_index()"]),
            ("mixed", ["column x"]),
            ("twice", ["x", "X"]),
            ("fine", ["names of columns must be text, but one is 0. Rename it"]),
        ],
    )
    def test_messages(self, captured, model, parts):
        message = captured[0][model]
        for part in parts:
            assert part in message
        for noise in ("\tat org", "JVM stacktrace", "py4j", "site-packages", "<dbt>"):
            assert noise not in message

    def test_an_error_is_shown_once(self, captured):
        shown = [line for line in captured[1].splitlines() if "KeyError: 'nope'" in line]
        assert len(shown) == 2  # of the models python and lazy

    def test_nothing_was_written(self, captured, project):
        assert [item.name for item in list_relations(store_of(project))] == ["base"]


REFUSED = "def model(dbt, session):\n    dbt.config(%s)\n    return dbt.ref('%s')\n"


class TestRefused:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cte.sql": "{{ config(materialized='ephemeral') }} select 1 as id",
            "plain.sql": "{{ config(materialized='table') }} select 1 as id",
        }

    @pytest.mark.parametrize(
        ("config", "ref", "expected"),
        [
            ("materialized='table', sql_header='set x=1;'", "plain", "m has a sql_header"),
            ("materialized='table'", "cte", "refers to cte, which is ephemeral"),
        ],
    )
    def test_what_only_sql_can_do(self, project, config, ref, expected):
        write_file(REFUSED % (config, ref), project.project_root, "models", "m.py")
        assert expected in failure()

    @pytest.mark.parametrize("kind", ["view", "cube"])
    def test_a_model_without_rows(self, project, kind):
        write_file(REFUSED % (f"materialized='{kind}'", "cte"), project.project_root, "models/m.py")
        with pytest.raises(DbtRuntimeError, match=f"is {kind}, which stores a query, but a Python"):
            run_dbt(["run"])


OF_SOURCE = """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.source("raw", "a-b").union(dbt.ref("base"))
"""


class TestSource:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "base.sql": BASE,
            "of_source.py": OF_SOURCE,
            "schema.yml": "sources: [{name: raw, schema: '{{ target.schema }}', "
            "tables: [{name: a-b}]}]",
        }

    def test_empty_is_for_sources(self, project):
        schema = project.test_schema
        project.run_sql(f"create table {schema}.`a-b` as select 7L as id, 8L as v")
        run_dbt(["run"])
        assert len(rows(project, "select * from {s}.of_source")) == 7
        run_dbt(["run", "--empty", "-s", "of_source"])
        assert len(rows(project, "select * from {s}.of_source")) == 6
