"""Nested columns through dbt: order of fields, what is always empty, types that have no class."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.spark.compatibility import spark_version
from tests.functional.relations import rows, store_of

FIRST = "named_struct('b', 1L, 'a', 'x')"
OTHER = "named_struct('a', 'y', 'b', 2L)"
SWITCH = "{%% if is_incremental() %%} %s {%% else %%} %s {%% endif %%}"


def config(**settings) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{{{{ config({given}) }}}} "


def values(project, name: str, columns: str, order: str = "id") -> list[tuple]:
    found = rows(project, f"select {columns} from {{s}}.{name} order by {order}")
    return [tuple(row) for row in found]


MERGES = {
    "merge": {"incremental_strategy": "merge", "unique_key": "id"},
    "delete": {"incremental_strategy": "delete+insert", "unique_key": "id"},
    "update": {
        "incremental_strategy": "merge", "unique_key": "id", "merge_update_columns": ["s"]
    },
    "predicate": {
        "incremental_strategy": "merge", "unique_key": "id",
        "incremental_predicates": ["DBT_INTERNAL_DEST.id < 100"],
    },
    "clauses": {
        "incremental_strategy": "merge", "unique_key": "id",
        "matched_condition": "DBT_INTERNAL_DEST.id < 100",
    },
    "where": {
        "incremental_strategy": "replace_where", "incremental_predicates": ["id = 1"],
    },
    "partition": {"incremental_strategy": "insert_overwrite", "partition_by": ["id"]},
    "in_cube": {
        "incremental_strategy": "merge", "cube": "c", "cube_role": "seed",
        "dimension_columns": ["id"],
    },
}  # fmt: skip
FORMS = ("{}", "array({0}, null)", "map('k', {0})", "named_struct('z', array({0}), 'f', 1)")
READ = ("s.a, s.b", "s[0].a, s[0].b", "s['k'].a, s['k'].b", "s.z[0].a, s.z[0].b")


class TestOrderOfFields:
    @pytest.fixture(scope="class")
    def models(self):
        models = {}
        for name, settings in MERGES.items():
            for number, form in enumerate(FORMS):
                cube = {"cube": f"c{number}"} if "cube" in settings else {}
                head = config(materialized="incremental", **{**settings, **cube})
                s = SWITCH % (form.format(OTHER), form.format(FIRST))
                models[f"{name}_{number}.sql"] = f"{head} select 1 as id, {s} as s"
        return models

    @pytest.mark.parametrize("number", range(len(FORMS)))
    @pytest.mark.parametrize("name", MERGES)
    def test_does_not_matter(self, project, name, number):
        for expected in (("x", 1), ("y", 2)):
            run_dbt(["run", "-s", f"{name}_{number}"])
            assert values(project, f"{name}_{number}", READ[number]) == [expected]

    def test_in_statements(self, project):
        s = project.test_schema
        project.run_sql(f"create table {s}.t as select 1 as id, {FIRST} as s, array({FIRST}) as l")
        project.run_sql(f"insert into {s}.t select 2, {OTHER}, array({OTHER})")
        project.run_sql(f"insert into {s}.t select 3, {FIRST}, array({FIRST})")
        project.run_sql(f"insert into {s}.t values (4, named_struct('A', 'z', 'B', 3), null)")
        project.run_sql(f"update {s}.t set s = {OTHER} where id = 3")
        project.run_sql(
            f"merge into {s}.t t using (select 5 as id, {OTHER} as s, array({FIRST}) as l "
            f"union all select 1, {OTHER}, array({FIRST})) n on t.id = n.id "
            "when matched then update set * when not matched then insert *"
        )
        found = values(project, "t", "id, s.a, s.b, l[0].a, l[0].b")
        assert found == [
            (1, "y", 2, "x", 1),
            (2, "y", 2, "y", 2),
            (3, "y", 2, "x", 1),
            (4, "z", 3, None, None),
            (5, "y", 2, "x", 1),
        ]
        with pytest.raises(
            Exception, match="`s` has the fields a, b, and the values have col1, col2"
        ):
            project.run_sql(f"insert into {s}.t values (6, struct(1, 'q'), null)")
        assert len(values(project, "t", "id")) == 5


EMPTY = {
    "arrays": ("array()", [([],)], "array(1L)", [([1],)]),
    "maps": ("map()", [({},)], "map(1L, 'v')", [({1: "v"},)]),
    "coalesced": ("coalesce(null, array())", [([],)], "array(date '2026-01-01')", None),
    "nested": ("array(array(), null)", [([[], None],)], "array(array(1.5D))", [([[1.5]],)]),
    "in_maps": ("map('k', array())", [({"k": []},)], "map('k', array(map('a', 1L)))", None),
    "of_maps": ("array(map())", [([{}],)], "array(map(2L, 3L))", [([{2: 3}],)]),
    "in_structs": (
        "named_struct('a', array(), 'b', null)", None,
        "named_struct('b', 1L, 'a', array('q'))", None,
    ),
    "nulls": ("if(false, map(), null)", [(None,)], "map(1L, 2L)", [({1: 2},)]),
}  # fmt: skip


class TestWhatIsAlwaysEmpty:
    """A null type, at any depth, takes the class of what comes later or was there before."""

    @pytest.fixture(scope="class")
    def models(self):
        models = {}
        for name, (empty, _, full, _) in EMPTY.items():
            head = config(materialized="incremental", incremental_strategy="append")
            merge = config(materialized="incremental", unique_key="id")
            cube = config(materialized="cube_seed", cube=f"k_{name}", dimension_columns=["id"])
            later = SWITCH % (f"1 as id, {empty} as e", f"0 as id, {full} as e")
            models[f"{name}_only.sql"] = (
                config(materialized="table") + f"select 1 as id, {empty} as e"
            )
            models[f"{name}_later.sql"] = f"{head} select {later}"
            models[f"{name}_merged.sql"] = f"{merge} select {later}"
            models[f"{name}_cube.sql"] = f"{cube} select 1 as id, {empty} as e"
            models[f"{name}_read.sql"] = (
                config(materialized="table") + f"select * from {{{{ ref('{name}_only') }}}}"
            )
        return models

    @pytest.mark.parametrize("name", EMPTY)
    def test_alone(self, project, name):
        run_dbt(["run", "-s", f"{name}_only", f"{name}_cube", f"{name}_read"])
        expected = EMPTY[name][1]
        for kind in ("only", "cube", "read"):
            found = values(project, f"{name}_{kind}", "e")
            if expected is not None:
                assert found == expected
            assert len(found) == 1

    @pytest.mark.parametrize("name", EMPTY)
    def test_beside_others(self, project, name):
        _, empty, _, full = EMPTY[name]
        for kind in ("later", "merged"):
            run_dbt(["run", "-s", f"{name}_{kind}"])
            run_dbt(["run", "-s", f"{name}_{kind}"])
            found = values(project, f"{name}_{kind}", "e")
            assert len(found) == 2
            if empty is not None and full is not None and name != "in_structs":
                assert found == [*full, *empty]


NO_CLASS = {
    "collated": ("'a' collate UTF8_LCASE", "cast(x as string)"),
    "variant": ("parse_json('{\"a\": 1}')", "to_json(x)"),
    "listed": ("array(parse_json('1'))", "to_json(x[])"),
}


class TestTypesWithoutClass:
    @pytest.fixture(scope="class")
    def models(self):
        if spark_version() < (4, 0):
            pytest.skip("Spark has these types since 4.0")
        models = {
            "source.sql": config(materialized="view") + "select 1 as id, 'a' as x",
            "by_python.py": (
                "def model(dbt, session):\n"
                "    dbt.config(materialized='table')\n"
                "    return session.sql(\"select 1 as id, 'a' collate UTF8_LCASE as x\")\n"
            ),
        }
        for name, (value, _) in NO_CLASS.items():
            models[f"{name}_table.sql"] = (
                config(materialized="table") + f"select 1 as id, {value} as x"
            )
            models[f"{name}_merge.sql"] = (
                config(materialized="incremental", unique_key="id")
                + f"select 1 as id, {value} as x"
            )
            models[f"{name}_cube.sql"] = (
                config(materialized="cube_seed", cube=name, dimension_columns=["id"])
                + f"select 1 as id, {value} as x"
            )
        return models

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {
            "kept.sql": "{% snapshot kept %}{{ config(strategy='check', check_cols='all', "
            "unique_key='id') }} select 1 as id, 'a' collate UTF8_LCASE as x {% endsnapshot %}"
        }

    def test_are_refused_in_models(self, project):
        results, _ = run_dbt_and_capture(["build"], expect_pass=False)
        failed = {item.node.name: item.message for item in results if item.status == "error"}
        for name, (_, fix) in NO_CLASS.items():
            for kind in ("table", "merge", "cube"):
                assert "has no type class" in failed[f"{name}_{kind}"]
                assert fix in failed[f"{name}_{kind}"]
        for name in ("by_python", "kept"):
            assert "string collate UTF8_LCASE has no type class" in failed[name]
        names = {item.name for item in store_of(project).root.rglob("*.parquet")}
        assert not names

    def test_are_refused_in_statements(self, project):
        s = project.test_schema
        for text in (
            f"create table {s}.v as select parse_json('1') as x",
            f"create table {s}.v (x variant)",
            f"create table {s}.v (x string collate UTF8_LCASE)",
        ):
            with pytest.raises(Exception, match="has no type class"):
                project.run_sql(text)
        project.run_sql(f"create table {s}.t (x string, s struct<value: binary, metadata: binary>)")
        project.run_sql(f"insert into {s}.t values ('A' collate UTF8_LCASE, null)")
        with pytest.raises(Exception, match="variant has no type class"):
            project.run_sql(f"insert into {s}.t select parse_json('1'), null")
        with pytest.raises(Exception, match="variant has no type class"):
            project.run_sql(f"insert into {s}.t select 'x', parse_json('1')")
        assert rows(project, "select count(*) from {s}.t where x = 'a'") == [(0,)]
        assert resolve(store_of(project), scope_of("v")).datasets == {}
