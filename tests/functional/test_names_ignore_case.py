"""Names of relations and columns mean the same in any letter case, wherever they are given."""

from __future__ import annotations

import os
import re

import pyarrow.parquet as pq
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, scope_of

ROUND = "{% if is_incremental() %} 2 {% else %} 1 {% endif %}"
SOURCE = f"select id as id, {ROUND} as part, concat('n', id, {ROUND}) as name, " + (
    f"{ROUND} as created_at from range(3)"
)


def config(materialized: str, **settings) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{{{{ config(materialized={materialized!r}, {given}) }}}} "


def incremental(**settings) -> str:
    return config("incremental", incremental_strategy="merge", **settings) + SOURCE


def schema_of(project, name: str):
    return resolve(store_of(project), scope_of(name)).snapshot(name).schema


def stored_names(project, folder: str) -> set[str]:
    """The columns of all files below a folder of the store."""
    root = store_of(project).root / folder
    return {name for path in root.rglob("*.parquet") for name in pq.read_schema(path).names}


def run_fails(arguments) -> str:
    """Run dbt, which fails in a model or before the first one, and give what it says."""
    try:
        _, text = run_dbt_and_capture(arguments, expect_pass=False)
    except DbtRuntimeError as error:
        text = str(error)
    return " ".join(text.split())


class TestConfigs:
    @pytest.fixture(scope="class")
    def models(self):
        cube = {"cube": "c", "dimension_columns": ["ID"]}
        return {
            "excluded.sql": incremental(unique_key="id", merge_exclude_columns=["CREATED_AT"]),
            "updated.sql": incremental(unique_key="ID", merge_update_columns=["NAME"]),
            "clauses.sql": incremental(
                unique_key="Id",
                merge_exclude_columns=["Created_At"],
                matched_condition="DBT_INTERNAL_DEST.PART = 1",
            ),
            "deleted.sql": config(
                "incremental", incremental_strategy="delete+insert", unique_key=["ID"]
            )
            + SOURCE,
            "placed.sql": config(
                "table",
                partition_by=["PART"],
                indexes=["NAME"],
                clustered_by=["ID"],
            )
            + SOURCE,
            "bucketed.sql": config("table", partition_by="Part", bucket_by=["ID"], num_buckets=2)
            + SOURCE,
            "overwritten.sql": config(
                "incremental", incremental_strategy="insert_overwrite", partition_by=["PART"]
            )
            + SOURCE,
            "where.sql": config(
                "incremental",
                incremental_strategy="replace_where",
                incremental_predicates=["PART = 2"],
            )
            + SOURCE,
            "batched.sql": config(
                "incremental",
                incremental_strategy="microbatch",
                event_time="AT",
                batch_size="day",
                begin="2026-01-01",
                concurrent_batches=False,
            )
            + "select 1 as id, timestamp '2026-01-01 05:00:00' as at",
            "cells.sql": config(
                "cube_seed",
                partition_by=["PART"],
                suppress_index_on=["iD"],
                indexes=["nAME"],
                bucket_by=["Id"],
                num_buckets=2,
                **cube,
            )
            + SOURCE,
            "more.sql": config("cube_enrichment", **cube)
            + "select id as Id, id * 2 as extra from {{ ref('cells') }}",
            "declared.sql": config("table", contract={"enforced": True})
            + "select 1 as Id, 'x' as name",
            "seen.sql": config("view", contract={"enforced": True}) + "select 1 as Id, 'x' as name",
            "schema.yml": """
models:
  - name: declared
    constraints: [{type: primary_key, columns: [ID]}, {type: check, expression: "ID > 0"}]
    columns: &columns
      - {name: ID, data_type: uint8, constraints: [{type: not_null}]}
      - {name: NAME, data_type: string}
  - name: seen
    columns: [{name: ID, data_type: int}, {name: NAME, data_type: string}]
""",
        }

    @pytest.fixture(scope="class")
    def twice(self, project):
        run_dbt(["run", "--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02"])
        run_dbt(["run", "--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02"])
        return project

    @pytest.mark.parametrize(
        ("model", "name", "created_at"),
        [
            ("excluded", "n02", 1),
            ("updated", "n02", 1),
            ("clauses", "n02", 1),
            ("deleted", "n02", 2),
        ],
    )
    def test_merges(self, twice, model, name, created_at):
        found = rows(twice, f"select name, created_at from {{s}}.{model} where id = 0")
        assert found == [(name, created_at)]
        assert rows(twice, f"select count(*) from {{s}}.{model}") == [(3,)]
        assert schema_of(twice, model).names == ["id", "part", "name", "created_at"]

    def test_layouts(self, twice):
        state = resolve(store_of(twice), scope_of("placed"))
        placed = state.snapshot("placed")
        assert placed.partition_keys == ("part",)
        assert tuple(placed.indices) == ("name",)
        assert placed.clustered_by == ("id",)
        assert rows(twice, "select count(*) from {s}.placed where Part = 1 and name = 'n21'") == [
            (1,)
        ]
        assert rows(twice, "select count(*) from {s}.bucketed where part = 1") == [(3,)]

    def test_partitions_and_predicates(self, twice):
        assert rows(twice, "select part, count(*) from {s}.overwritten group by 1 order by 1") == [
            (1, 3), (2, 3),
        ]  # fmt: skip
        assert rows(twice, "select part, count(*) from {s}.where group by 1 order by 1") == [
            (1, 3), (2, 3),
        ]  # fmt: skip
        assert rows(twice, "select count(*) from {s}.batched") == [(1,)]

    def test_a_cube(self, twice):
        state = resolve(store_of(twice), cube_scope("c"))
        seed, more = (state.snapshot(f"c++{name}") for name in ("cells", "more"))
        assert seed.dimension_columns == more.dimension_columns == ("id",)
        assert seed.partition_keys == ("part",)
        assert tuple(seed.indices) == ("name",)
        assert more.schema.names == ["id", "extra"]
        assert stored_names(twice, "c++more") == {"id", "extra"}

    def test_contracts(self, twice):
        assert [str(t) for t in schema_of(twice, "declared").types] == ["uint64", "string"]
        assert rows(twice, "select id, NAME from {s}.seen") == [(1, "x")]
        with pytest.raises(Exception, match="primary_key"):
            twice.run_sql(f"insert into {twice.test_schema}.declared values (1, 'again')")


REFUSED = {
    "merge_exclude_columns names CREATED, .*Did you mean `created_at`": {
        "merge_exclude_columns": ["CREATED"]
    },
    "merge_update_columns names nam, .*Did you mean `name`": {"merge_update_columns": ["nam"]},
    "unique_key names IDD, .*Did you mean `id`": {"unique_key": "IDD"},
    "partition_by names `PARTS`.*Did you mean `part`": {"partition_by": ["PARTS"]},
    "indexes names `NAMES`.*Did you mean `name`": {"indexes": ["NAMES"]},
    "clustered_by names IDS.*Did you mean `id`": {"clustered_by": ["IDS"]},
    "bucket_by names IDS.*Did you mean `id`": {"bucket_by": ["IDS"], "num_buckets": 2},
    "partition_by` names PART, part twice": {"partition_by": ["part", "PART"]},
}


class TestNamesOfNoColumn:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            f"m{number}.sql": incremental(**{"unique_key": "id", **settings})
            for number, settings in enumerate(list(REFUSED.values())[:-1])
        }

    def test_each_is_refused_with_the_nearest(self, project):
        text = run_fails(["run"])
        for message in list(REFUSED)[:-1]:
            assert re.search(message, text), (message, text)

    def test_one_column_twice(self, project):
        path = f"{project.project_root}/models/twice.sql"
        write_file(config("table", partition_by=["part", "PART"]) + SOURCE, path)
        assert "names PART, part twice" in run_fails(["run", "-s", "twice"])
        write_file("select 1 as a", path)


SEED = "select id, {} as {} from range(2)"


class TestFirstSpelling:
    """What is committed first stays, in files too, whatever a model calls it later."""

    @pytest.fixture(scope="class")
    def models(self):
        late, first = "id as ID, 'b' as name", "id, 'a' as Name"
        columns = f"{{% if var('late', false) %}} {late} {{% else %}} {first} {{% endif %}}"
        models = {
            f"{policy}.sql": config(
                "cube_seed", cube=f"c_{policy}", dimension_columns=["id"], on_schema_change=policy
            )
            + f"select {columns} from range(2)"
            for policy in ("sync_all_columns", "append_new_columns", "fail", "ignore")
        }
        merged = config("incremental", unique_key="id", on_schema_change="sync_all_columns")
        appended = config("incremental", on_schema_change="append_new_columns")
        for name, how in (("merged", merged), ("appended", appended)):
            models[f"{name}.sql"] = how + f"select {columns} from range(2)"
        python = (
            "def model(dbt, session):\n"
            "    dbt.config(materialized='incremental', unique_key='ID')\n"
            "    late = dbt.config.get('late')\n"
            "    names = ('iD', 'naME') if dbt.is_incremental else ('Id', 'Name')\n"
            "    return session.createDataFrame([(1, 'a')], list(names))\n"
        )
        return {**models, "by_python.py": python}

    @pytest.fixture(scope="class")
    def twice(self, project):
        run_dbt(["run"])
        run_dbt(["run", "--vars", "late: true"])
        return project

    @pytest.mark.parametrize("policy", ["sync_all_columns", "append_new_columns", "fail", "ignore"])
    def test_a_cube_that_is_rebuilt(self, twice, policy):
        uuid = f"c_{policy}++{policy}"
        found = resolve(store_of(twice), cube_scope(f"c_{policy}")).snapshot(uuid)
        assert found.schema.names == ["id", "Name"]
        assert stored_names(twice, uuid) >= {"id", "Name"}
        assert stored_names(twice, uuid) & {"ID", "name"} == set()
        assert rows(twice, f"select id, name from {{s}}.{policy} order by 1") == [
            (0, "b"),
            (1, "b"),
        ]

    def test_rows_that_stay(self, twice):
        assert rows(twice, "select ID, name from {s}.merged order by 1") == [(0, "b"), (1, "b")]
        found = rows(twice, "select id, NAME from {s}.appended order by 1, 2")
        assert found == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
        assert schema_of(twice, "appended").names == ["id", "Name"]
        assert stored_names(twice, "appended") == {"id", "Name"}
        assert schema_of(twice, "by_python").names == ["Id", "Name"]

    def test_statements(self, twice):
        twice.run_sql(f"create table {twice.test_schema}.s as select 1 as Id, 'x' as `Größe`")
        twice.run_sql(f"insert into {twice.test_schema}.s (`GRÖßE`, ID) values ('y', 2)")
        twice.run_sql(f"update {twice.test_schema}.s set `GRÖßE` = 'z' where iD = 2")
        twice.run_sql(
            f"merge into {twice.test_schema}.s as t using (select 3 as ID, 'm' as `GRÖßE`) as n "
            "on t.iD = n.id when matched then update set * when not matched then insert *"
        )
        twice.run_sql(f"delete from {twice.test_schema}.s where ID = 1")
        assert rows(twice, "select `größe`, id from {s}.s order by 2") == [("z", 2), ("m", 3)]
        assert schema_of(twice, "s").names == ["Id", "Größe"]
        assert stored_names(twice, "s") == {"Id", "Größe"}


class TestPayloadOfOthers:
    @pytest.fixture(scope="class")
    def models(self):
        cube = {"cube": "c", "dimension_columns": ["id"]}
        return {
            "cells.sql": config("cube_seed", **cube) + "select id, 'a' as Name from range(2)",
            "more.sql": config("cube_enrichment", **cube)
            + "select id, 'b' as NAME from {{ ref('cells') }}",
        }

    def test_a_column_belongs_to_one_dataset(self, project):
        text = run_fails(["run"])
        assert "payload column NAME is already owned by dataset cells" in text
        assert rows(project, "select name from {s}.cells where id = 0") == [("a",)]


class TestRelations:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "usedim.sql": config("table") + "select 1 as a",
            "cells.sql": config("cube_seed", cube="c", dimension_columns=["a"]) + "select 1 as a",
            "nyc.sql": config("cube") + "{{ cube_of(ref('cells')) }}",
            "seen.sql": config("view") + "select * from {{ ref('usedim') }}",
        }

    @pytest.mark.parametrize("name", ["USEDIM", "Cells", "NYC", "sEEn", "usedim"])
    def test_are_found_in_any_case(self, built, name):
        schema = built.test_schema.upper()
        for text in (
            f"select A from {schema}.{name}",
            f"select {schema}.{name}.a from {schema}.{name}",
            f"select * from `{schema}`.`{name}` x where x.A = (select max(A) from {{s}}.usedim)",
            f"with q as (select * from {schema}.{name}, {{s}}.usedim as y where y.a = 1) "
            "select count(*) from q",
        ):
            assert rows(built, text)[0][0] == 1

    def test_two_spellings_in_a_statement(self, built):
        schema = built.test_schema.upper()
        text = f"select x.a, y.a from {{s}}.nyc x join {schema}.NYC y on x.a = y.A where y.a > 0"
        assert rows(built, text) == [(1, 1)]

    def test_statements_change_what_is_there(self, built):
        schema = built.test_schema.upper()
        built.run_sql(f"create table {schema}.Made as select 1 as a")
        built.run_sql(f"insert into {schema}.MADE values (2)")
        built.run_sql(
            "create table if not exists {s}.made as select 9 as a".replace("{s}", built.test_schema)
        )
        built.run_sql(f"alter table {schema}.MADE add column B int")
        built.run_sql(f"delete from {schema}.mADE where A = 1")
        assert rows(built, "select a, b from {s}.made") == [(2, None)]
        with pytest.raises(Exception, match="exists: use create or replace table"):
            built.run_sql(f"create table {built.test_schema}.made as select 9 as a")
        built.run_sql(f"create or replace table {built.test_schema}.made as select 7 as a")
        assert rows(built, "select * from {s}.MADE") == [(7,)]
        built.run_sql(f"create or replace view {built.test_schema}.SEEN as select 5 as a")
        assert rows(built, "select * from {s}.seen") == [(5,)]
        assert built.run_sql(f"drop table {schema}.MADE") is None
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            rows(built, "select * from {s}.made")
        assert {item.name for item in store_of(built).root.parent.iterdir()} >= {built.test_schema}
        assert schema not in {item.name for item in store_of(built).root.parent.iterdir()}

    def test_schemas(self, built):
        schema = built.test_schema.upper()
        with pytest.raises(Exception, match="exists: use create schema if not exists"):
            built.run_sql(f"create schema {schema}")
        built.run_sql(f"create schema if not exists {schema}")
        assert schema not in {item.name for item in store_of(built).root.parent.iterdir()}

    def test_a_second_model_is_refused(self, built):
        path = f"{built.project_root}/models/other.sql"
        write_file(config("table", alias="UseDim") + "select 99 as a", path)
        text = run_fails(["run", "-s", "other"])
        assert "model.test.other" in text and "model.test.usedim" in text
        assert "the names differ only in letter case" in text
        os.remove(path)
        assert rows(built, "select a from {s}.usedim") == [(1,)]

    @pytest.mark.parametrize(
        ("model", "change"),
        [
            ("usedim", config("table", alias="UseDim")),
            ("usedim", config("incremental", alias="UseDim")),
            ("usedim", config("view", alias="UseDim")),
            ("cells", config("cube_seed", cube="C", dimension_columns=["a"])),
        ],
    )
    def test_another_letter_case_is_refused(self, built, model, change):
        path = f"{built.project_root}/models/{model}.sql"
        with open(path) as file:
            before = file.read()
        write_file(change + "select 2 as a", path)
        text = run_fails(["run", "-s", model])
        write_file(before, path)
        assert "they differ only in letter case, which SQL ignores. Nothing was written" in text
        assert rows(built, f"select a from {{s}}.{model}") == [(1,)]


class TestTemporaryViews:
    @pytest.fixture(scope="class")
    def models(self):
        view = "create temporary view `{{ schema }}.u` as select 99 as a"
        reading = "select a from {{ ref('u') }}"
        return {
            "u.sql": config("table") + "select 1 as a",
            "shadowed.sql": config("table", pre_hook=["select * from {{ ref('u') }}", view])
            + reading,
            "headed.sql": config("table")
            + "{% call set_sql_header(config) %}"
            + view.replace("create", "create or replace")
            + ";{% endcall %}"
            + reading,
        }

    def test_do_not_hide_tables(self, built):
        assert rows(built, "select * from {s}.shadowed") == [(1,)]
        assert rows(built, "select * from {s}.headed") == [(1,)]


SNAPSHOT = """
{{% snapshot {name} %}}
{{{{ config({config}) }}}}
select {columns} from {{{{ ref('source') }}}}
{{% endsnapshot %}}
"""


def snapshot(name: str, columns: str = "*", **settings) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return SNAPSHOT.format(name=name, columns=columns, config=given)


class TestSnapshots:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "source.sql": "select 1 as id, '{{ var('who', 'ann') }}' as who, 5 as other, "
            "timestamp '2026-01-0{{ var('day', 1) }} 00:00:00' as at"
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        check = {"strategy": "check", "unique_key": "ID"}
        columns = "id, who as {{ 'WHO' if var('late', false) else 'who' }}, at"
        return {
            "listed.sql": snapshot("listed", check_cols=["WHO"], **check),
            "quoted.sql": snapshot("quoted", check_cols=["`Who`"], **check),
            "all_of.sql": snapshot("all_of", columns, check_cols="all", **check),
            "timed.sql": snapshot("timed", strategy="timestamp", unique_key="Id", updated_at="AT"),
            "named.sql": snapshot(
                "named",
                check_cols=["who"],
                snapshot_meta_column_names={"dbt_valid_to": "Until"},
                **check,
            ),
            "in_cube.sql": snapshot(
                "in_cube",
                check_cols=["WHO"],
                cube="s",
                cube_role="seed",
                dimension_columns=["ID", "DBT_SCD_ID"],
                **check,
            ),
        }

    def test_a_version_for_each_change(self, project):
        run_dbt(["build"])
        run_dbt(["build", "--vars", "late: true"])
        names = ("listed", "quoted", "all_of", "timed", "named", "in_cube")
        for name in names:
            assert rows(project, f"select count(*), max(who) from {{s}}.{name}") == [(1, "ann")]
        run_dbt(["build", "--vars", "{late: true, who: bob, day: 2}"])
        for name in names:
            found = rows(project, f"select Who from {{s}}.{name} order by 1")
            assert found == [("ann",), ("bob",)]
        path = f"{project.project_root}/snapshots/named.sql"
        with open(path) as file:
            text = file.read()
        write_file(text.replace("Until", "until"), path)
        run_dbt(["build", "-s", "source+", "--vars", "{late: true, who: cid, day: 3}"])
        found = rows(project, "select who, until is null from {s}.named order by 1")
        assert found == [("ann", False), ("bob", False), ("cid", True)]
        assert "Until" in schema_of(project, "named").names

    def test_a_name_of_no_column(self, project):
        path = f"{project.project_root}/snapshots/wrong.sql"
        settings = {"strategy": "check", "unique_key": "id", "check_cols": ["whom"]}
        write_file(snapshot("wrong", **settings), path)
        text = run_fails(["snapshot", "-s", "wrong"])
        assert "check_cols` names whom, which the query lacks. Did you mean `who`?" in text


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"people.csv": "id,Name\n1,007\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"test": {"people": {"+column_types": {"NAME": "string", "Id": "uint8"}}}}}

    def test_types_are_declared_in_any_case(self, project):
        run_dbt(["seed"])
        assert rows(project, "select name from {s}.people") == [("007",)]
        assert [str(t) for t in schema_of(project, "people").types] == ["uint64", "string"]
        path = f"{project.project_root}/seeds/people.csv"
        write_file("ID,NAME\n2,008\n", path)
        run_dbt(["seed"])
        assert rows(project, "select id, name from {s}.people") == [(2, "008")]
