"""Every clause of a statement on a relation of a store is carried out, or refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from ktk_engine.errors import ConfigurationError, DataError, DatasetNotFoundError, TypeClassError
from ktk_engine.sql.statement import read_statement
from ktk_engine.sql.token import split_statements
from tests.support.changes import Relations, WriteRequest, build, run_statement
from tests.support.committed import describe, resolve, scope_of
from tests.support.spark import SqlSession
from tests.support.stores import Warehouse, tree

pytestmark = pytest.mark.usefixtures("few_rows")


@pytest.fixture
def relations(store):
    warehouse = Warehouse(str(store.root.parent))
    warehouse.create_schema("an")
    return Relations(warehouse)


@pytest.fixture
def session(sql, relations, tmp_path):
    return SqlSession(sql.session, relations.warehouse.find_schema, tmp_path / "scratch")


@pytest.fixture
def run(session, relations):
    """Runs statements on the schema `an` as dbt's cursor does; gives the last one's rows."""

    def run(text):
        rows = None
        for statement in map(read_statement, split_statements(text)):
            done = run_statement(lambda: session, relations, statement)
            if done is None:
                rows = [tuple(row) for row in session.sql(statement).collect()]
            elif done.answer is not None:
                rows = list(done.answer.rows)
        return rows

    return run


@pytest.fixture
def t(run, relations):
    """A table of three days, in three partitions."""
    rows = pa.table({"a": ["x", "y", "z"], "b": ["p", "q", "r"], "day": [1, 2, 3]})
    build(relations.store_of("an"), rows, WriteRequest("t", partition_by=("day",)))
    return lambda: sorted(run("select a, b, day from an.t"), key=str)


THREE = [("x", "p", 1), ("y", "q", 2), ("z", "r", 3)]


@pytest.fixture
def refused(run, relations, t):
    """Says how a statement is refused, and that the store is as it was."""

    def refused(text, kind=ConfigurationError):
        before = tree(relations.warehouse.find_schema("an").root)
        with pytest.raises(kind) as caught:
            run(text)
        assert tree(relations.warehouse.find_schema("an").root) == before
        return str(caught.value)

    return refused


@pytest.mark.parametrize("line_feed", ["\\n", "\n"])
def test_a_line_feed_in_a_text_hides_nothing(run, t, line_feed):
    replaced = f"replace(a, '{line_feed}', ' ')"
    assert len(run(f"select {replaced} as p from an.t")) == 3
    assert len(run(f"select * from an.t where {replaced} = 'x'")) == 1
    join = f"on x.a = replace(y.a, '{line_feed}', '') join an.t z on z.a = x.a"
    assert len(run(f"select z.a from an.t x join an.t y {join}")) == 3
    assert len(run(f"with c as (select {replaced} as p from an.t) select p from c, an.t")) == 9
    assert len(run(f"select {replaced} from an.t union all select b from an.t")) == 6
    run(f"create view an.v as select {replaced} as p from an.t")
    assert len(run("select p from an.v")) == 3
    run(f"create or replace temporary view tv as\nselect {replaced} as p\nfrom an.t")
    assert len(run("select p from tv")) == 3
    run(f"cache table ct as\nselect {replaced} as p\nfrom an.t")
    assert len(run("select p from ct")) == 3
    run(f"update an.t set b = {replaced} where {replaced} in (select a from an.t where day = 1)")
    run(f"delete from an.t where {replaced} = 'z' and day in (select day from an.t)")
    assert t() == [("x", "x", 1), ("y", "q", 2)]


def test_by_name(run, t, refused):
    run("insert into an.t by name select 'B' as b, 'A' as A, 4 as day")
    run("insert into an.t by name select 5 as day")
    assert t() == [("A", "B", 4), *THREE, (None, None, 5)]
    assert "has no column c" in refused("insert into an.t by name select 1 as c")
    assert "two values for one column" in refused("insert into an.t by name select 1 as a, 2 as A")


def test_replace_where(run, t, refused):
    run("insert into an.t replace where day = 2 select 'n', 'n', 2")
    assert t() == [("n", "n", 2), THREE[0], THREE[2]]
    message = refused("insert into an.t replace where day = 2 select 'n', 'n', 4", DataError)
    assert "not true for 1 new row" in message
    assert "replace where upper(a)" in refused(
        "insert into an.t replace where upper(a) = b select 'n', 'n', 4"
    )


def test_replace_using(run, t, refused):
    run("insert into an.t replace using (DAY) values ('n', 'n', 2), ('m', 'm', 2), ('o', 'o', 7)")
    assert t() == [("m", "m", 2), ("n", "n", 2), ("o", "o", 7), THREE[0], THREE[2]]
    assert "has no column c" in refused("insert into an.t replace using (c) values ('n', 'n', 2)")


def test_replace_on(run, t):
    run(
        "insert into an.t as t replace on t.day = s.day and t.b = 'q' "
        "(select 'n' as a, 'n' as b, 2 as day union all values ('m', 'm', 2), ('o', 'o', 3)) as s"
    )
    assert t() == [("m", "m", 2), ("n", "n", 2), ("o", "o", 3), THREE[0], THREE[2]]


def test_statements_one_after_the_other(run, t, relations):
    run("alter table an.t set tblproperties ('x' = '1'); delete from an.t where a = 'x';")
    assert t() == THREE[1:]
    store = relations.store_of("an")
    assert resolve(store, scope_of("t")).snapshot("t").metadata["x"] == "1"


def test_queries_of_with_and_of_several_inserts(run, t):
    run("with w as (select * from an.t where day = 1) insert into an.t select * from w")
    assert t() == [THREE[0], *THREE]
    run("create table an.u (a string)")
    run("from an.t insert overwrite an.t select a, b, day where day > 1 insert into an.u select a")
    assert t() == THREE[1:]
    assert sorted(run("select a from an.u")) == [("x",), ("x",), ("y",), ("z",)]


def test_dynamic_overwrite_keeps_other_partitions(run, t, sql):
    sql.session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    run("insert overwrite an.t select 'n', 'n', 2")
    assert t() == [("n", "n", 2), THREE[0], THREE[2]]
    sql.session.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    run("insert overwrite an.t select 'n', 'n', 2")
    assert t() == [("n", "n", 2)]


def test_what_a_new_table_is(run, refused, relations):
    run("create table an.n (x int not null comment 'no', z int, constraint c check (x > 0)) "
        "comment 'hello' tblproperties ('a' = 'b')")  # fmt: skip
    run("insert into an.n values (1, 2)")
    assert "x" in refused("insert into an.n values (null, 2)", DataError)
    assert "c check" in refused("insert into an.n values (0, 2)", DataError)
    found = describe(relations.store_of("an"), "n").datasets[0]
    assert (found.comment, found.metadata) == ("hello", {"a": "b"})
    assert run("describe an.n") == [("x", "bigint", "no"), ("z", "bigint", "")]
    run("create or replace table an.c comment 'other' tblproperties ('d' = 'e') as select 1 as x")
    assert run("show tblproperties an.c") == [("d", "e")]
    for clause in (
        "default 5",
        "generated always as (x + 1)",
        "check (x > 0) not enforced",
    ):
        assert clause.partition(" ")[2] in refused(f"create table an.m (x int, y int {clause})")
    for type_ in ("interval day", "array<interval day>", "struct<a: interval day>"):
        said = refused(f"create table an.m (y {type_})", TypeClassError)
        assert "interval day has no type class" in said
    foreign = "foreign key (x) references an.n (x)"
    assert foreign in refused(f"create table an.m (x int, {foreign})")


def test_a_view_does_not_read_itself(run, t, refused):
    run("create view an.v as select a from an.t; create view an.w as select a from an.v")
    for text in ("create or replace view an.v as select * from an.v", "alter view an.v as "
                 "select * from an.w", "create or replace view an.v as select (select max(a) "
                 "from an.w) as a"):  # fmt: skip
        assert "would read itself" in refused(text)
    run("alter view an.v as select b as a from an.t where day = 1")
    assert run("select * from an.w") == [("p",)]


def test_the_store_is_shown(run, t, relations):
    run("create view an.odd as select a from an.t; create view an.o_1 as select a from an.t")
    assert run("show tables in an") == [("an", name, False) for name in ("o_1", "odd", "t")]
    assert run("show tables in an like 'o_*|T'") == [("an", "o_1", False), ("an", "t", False)]
    assert run("show views from an like 'odd'") == [("an", "odd", False)]
    assert ("an",) in run("show schemas") and run("show databases like 'x*'") == []
    assert run("show columns in an.t") == [("a",), ("b",), ("day",)]
    assert run("show columns in t in an") == [("a",), ("b",), ("day",)]
    ((schema, name, temporary, information),) = run("show table extended in an like 't'")
    assert (schema, name, temporary) == ("an", "t", False)
    assert "Type: MANAGED\n" in information and " |-- a: string (nullable = true)" in information
    assert run("describe table an.t")[:3] == [
        ("a", "string", ""), ("b", "string", ""), ("day", "bigint", ""),
    ]  # fmt: skip
    assert ("Type", "VIEW", "") in run("desc extended an.odd")


def test_use_is_the_schema_of_names_without_one(run, t):
    run("use an")
    assert len(run("select * from t join (select day from t) using (day)")) == 3
    assert run("show tables") == [("an", "t", False)]
    run("create or replace temporary view t_2 as select 7 as a")
    assert run("select a from t_2") == [(7,)]
    run("delete from t where day = 1; insert into t values ('n', 'n', 1); use default")
    assert t() == [("n", "n", 1), *THREE[1:]]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("select * from t")


@pytest.mark.parametrize(
    "text",
    [
        "explain insert into an.t select 'a', 'b', 1",
        "execute immediate 'delete from an.t'",
        "begin delete from an.t; end",
        "create table an.u like an.t",
        "create table an.u shallow clone an.t",
        "create or replace table an.u deep clone an.t version as of 1",
        "create table an.u clone an.t",
        "create table an.u (a int) using orc",
        "create table an.u (a int) using csv location 'x'",
        "create table an.u using delta location 'x'",
        "create table an.u (a int) using parquet options (compression = 'lzo')",
        "create table an.u (a int) row format delimited",
        "create table an.u (a int) stored as textfile",
        "create external table an.u (a int) location 'x'",
        "create table an.u (a int) clustered by (a) into 0 buckets",
        "create table an.u (a int) default collation unicode_ci",
        "create materialized view an.u as select a from an.t",
        "create or replace materialized view an.u as select a from an.t",
        "describe history an.t",
        "describe detail an.t",
        "restore table an.t to version as of 1",
        "copy into an.t from 'x' fileformat = csv",
        "revoke select on table an.t from `x`",
        "deny select on table an.t to x",
        "show grants on table an.t",
        "generate symlink_format_manifest for table an.t",
        "fsck repair table an.t",
        "alter table an.t add partition (day = 4) location 'x'",
        "alter table an.t drop partition (day = 1)",
        "alter table an.t set location 'x'",
        "alter table an.t set fileformat orc",
        "describe an.t a",
        "show create table an.t",
        "drop table an.t purge",
        "create function f(x int) returns int return (select 1 from an.t)",
        "insert into an.t partition (a = 'x') select 'b', 1",
        "insert into an.t partition (day = 1, DAY = 2) select 'a', 'b'",
        "insert into an.t partition (day = 1) replace where day = 1 select 'a', 'b'",
        "insert into an.t partition (day = 4) if not exists select 'a', 'b'",
        "insert overwrite an.t partition (day) if not exists select 'a', 'b', 4",
        "insert overwrite an.t partition (day = 1 + 1) select 'a', 'b'",
        "insert into an.t partition (day = 1) select 'a', 'b', 1",
        "set var x = (select max(a) from an.t)",
        "insert overwrite an.t replace where day = 1 select 'a', 'b', 1",
        "delete from an.t where day = 1 )",
        "update an.t set x.a = 1",
        "declare v int default (select max(day) from an.t)",
        "call f('an.t')",
        "alter view an.t set tblproperties ('a' = 'b')",
        "create view an.t2 tblproperties ('a' = 'b') as select 1 as x from an.t",
    ],
)
def test_everything_else_is_refused_by_name(refused, text):
    assert refused(text)


NEEDLESS = (
    *(
        f"{text} an.t{more}"
        for text, more in {
            "analyze table": " compute statistics",
            "ANALYZE TABLE": " partition (day = 1) compute statistics for all columns",
            "optimize": " where day > 1 zorder by (a, b)",
            "vacuum": " retain 168 hours",
            "refresh table": "",
            "refresh": "",
            "msck repair table": " sync partitions",
            "repair table": "",
            "cache table": "",
            "cache lazy table": " options ('storageLevel' 'DISK_ONLY')",
            "uncache table if exists": "",
            "reorg table": " apply (purge)",
            "alter table": " recover partitions",
            "/* of dbt */ alter table": " add if not exists partition (day = 9)",
            "alter /* */ table": " cluster by (a)",
            "alter  table": " set owner to x",
            "grant select on table": " to `x`",
        }.items()
    ),
    *("use an; analyze table t compute statistics for columns a", "use an; optimize t"),
    *("use an; vacuum t", "optimize `an`.`t` full", "grant select on an.t to x"),
)


@pytest.mark.parametrize("text", NEEDLESS)
def test_what_tells_another_engine_how_to_work_does_nothing_and_says_so(
    session, relations, run, t, text
):
    before = tree(relations.store_of("an").root)
    *first, last = split_statements(text)
    for statement in first:
        run(statement)
    done = run_statement(lambda: session, relations, read_statement(last))
    ((about, line),) = done.needless.items()
    assert str(line).startswith(f"{about} does nothing: ") and str(line).endswith(".")
    assert tree(relations.store_of("an").root) == before
    assert t() == THREE


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("using delta", ["using delta"]),
        ("using ICEBERG", ["using ICEBERG"]),
        ("using hudi options ('type' 'cow', 'precombineKey' = 'ts')",
         ["using hudi", "options (type)", "options (precombineKey)"]),
        ("using parquet options (compression = 'SNAPPY')", []),
        ("stored as parquet", []),
        ("location 's3://x/y'", ["location"]),
        ("clustered by (id) into 2 buckets", []),
        ("clustered by (id) sorted by (day desc, id) into 2 buckets", []),
        ("cluster by (id)", []),
        ("cluster by auto", ["cluster by auto"]),
        ("skewed by (id) on (1, 2) stored as directories", ["skewed by"]),
        ("using delta partitioned by (day) location 'x' tblproperties ('a' = 'b')",
         ["using delta", "location"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "form",
    [
        "create table if not exists an.audit (id bigint, day int) {}",
        "create or replace table an.audit {} as select 1L as id, 2 as day",
    ],
)
def test_clauses_that_tell_another_engine_how_to_work(session, relations, form, clauses, said):
    done = run_statement(lambda: session, relations, read_statement(form.format(clauses)))
    assert [text.split("`")[1] for text in done.needless] == said
    assert all(str(line).endswith(".") for line in done.needless.values())
    found = resolve(relations.store_of("an"), scope_of("audit")).snapshot("audit")
    assert sorted(found.schema.names) == ["day", "id"]
    assert found.partition_keys == (("day",) if "partitioned" in clauses else ())
    sorted_by = ("day", "id") if "sorted by" in clauses else ("id",)
    assert found.clustered_by == (sorted_by if "(id)" in clauses and "clus" in clauses else ())


def test_a_relation_in_a_schema_that_is_not_there(session, relations):
    for text in ("create table nowhere.t (a int)", "create view nowhere.v as select 1 as a"):
        with pytest.raises(ConfigurationError, match="Create it first: create schema `nowhere`"):
            run_statement(lambda: session, relations, read_statement(text))


def test_what_touches_no_store_is_sparks(run, t):
    assert run("set spark.sql.shuffle.partitions = 3; select 1") == [(1,)]
    run("create or replace temporary view spare as select 1 as a; drop view spare")
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR") as caught:
        run("select a fro m an.t")
    assert "select a fro m an.t" in str(caught.value)
    with pytest.raises(DatasetNotFoundError, match="There is no table"):
        run("delete from an.none")


def test_what_spark_does(run, t):
    run("update an.t set an.t.b = '0' where an.t.day = 1")
    run("delete from an.t where null")
    run("insert into an.t values ('d', default, 1); delete from an.t where b is null and day = 1")
    assert len(run("table an.t")) == 3
    assert run("select an.t.b from an.t tablesample (100 percent) where t.day = 1") == [("0",)]
    assert run("select count(*) from identifier('an.t') where t.day > 1") == [(2,)]
    assert run("explain select * from an.t")


NEW = ("n", "m")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("insert into an.t partition (day = 2) select 'n', 'm'", [*THREE, (*NEW, 2)]),
        ("insert into an.t partition (DAY) select 'n', 'm', 2", [*THREE, (*NEW, 2)]),
        ("insert into an.t partition (day = 4) by name select 'm' as b, 'n' as a", None),
        ("insert into an.t partition (day = 4) (b, a) select 'm', 'n'", None),
        ("insert overwrite an.t partition (day = 2) select 'n', 'm'", [0, (*NEW, 2), 2]),
        ("insert overwrite table an.t partition (day = 2) select 'n', 'm' where 1 = 0", [0, 2]),
        ("insert overwrite an.t partition (day) select 'n', 'm', 2", [(*NEW, 2)]),
        ("insert overwrite an.t partition (day = 2) if not exists select 'n', 'm'", THREE),
        ("insert overwrite an.t partition (day = 4) if not exists select 'n', 'm'", None),
    ],
)
def test_a_partition_that_is_named(run, t, text, expected):
    run(text)
    rows = [*THREE, (*NEW, 4)] if expected is None else expected
    assert t() == sorted((THREE[row] if isinstance(row, int) else row for row in rows), key=str)


def test_a_partition_of_several_columns(run, session, relations):
    rows = pa.table({"v": [1, 2, 3], "p": ["a", "a", "b"], "q": [1, 2, 1]})
    build(relations.store_of("an"), rows, WriteRequest("s", partition_by=("p", "q")))
    found = lambda: sorted(run("select v, p, q from an.s"), key=str)  # noqa: E731
    run("insert overwrite an.s partition (p = 'b', q = 1) select 9")
    assert found() == [(1, "a", 1), (2, "a", 2), (9, "b", 1)]
    run("insert overwrite an.s partition (p = 'a', q) select 8, 3")
    assert found() == [(8, "a", 3), (9, "b", 1)]
    session.session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    run("insert overwrite an.s partition (p = 'a', q) select 7, 4")
    assert found() == [(7, "a", 4), (8, "a", 3), (9, "b", 1)]
    run("insert overwrite an.s partition (p = 'a', q = 3) select 7 where 1 = 0")
    assert found() == [(7, "a", 4), (9, "b", 1)]


@pytest.mark.parametrize(
    ("column", "value", "other"),
    [
        (pa.array(["a=b/ü", "x"]), "'a=b/ü'", "1"),
        (pa.array([20_000, 20_001], pa.date32()), "date '2024-10-04'", "2"),
        (pa.array([True, False]), "true", "'a'"),
        (pa.array([-5, 7]), "-5", "'a'"),
    ],
    ids=["text", "date", "flag", "negative"],
)
def test_values_of_a_partition(run, relations, column, value, other):
    store = relations.store_of("an")
    build(store, pa.table({"v": [1, 2], "p": column}), WriteRequest("kinds", partition_by=("p",)))
    run(f"insert overwrite an.kinds partition (p = {value}) if not exists select 8")
    run(f"insert into an.kinds partition (p = {value}) select 9")
    found = run(f"select v from an.kinds where p = {value} order by v")
    assert found == [(1,), (9,)]
    run(f"insert overwrite an.kinds partition (P = {value}) select 3")
    assert run(f"select v from an.kinds where p = {value}") == [(3,)]
    assert run("select count(*) from an.kinds") == [(2,)]
    before = tree(relations.warehouse.find_schema("an").root)
    with pytest.raises((ConfigurationError, PySparkException)):  # a value of another class
        run(f"insert overwrite an.kinds partition (p = {other}) select 3")
    assert tree(relations.warehouse.find_schema("an").root) == before
