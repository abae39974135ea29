"""Random statements, oddly written, give what plain Spark gives over the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.sql.statement import read_statement
from ktk_engine.sql.token import split_statements
from tests.spark.statement_writer import COLUMNS, NAMES, TEXTS, Writer, Written, plain
from tests.support.changes import Relations, WriteRequest, build, run_statement
from tests.support.random_cubes import examples
from tests.support.spark import SqlSession, frame_of_table
from tests.support.stores import Warehouse

pytestmark = pytest.mark.usefixtures("few_rows")

ROWS = pa.table(
    {
        "a": ["x", "\n", None, "it's", ";", "x"],
        "n": pa.array([1, 2, 3, None, 5, 6]),
        "p p": ["1", "1", "2", "2", "3", "3"],
    }
)
STATEMENTS = 4  # an example
_numbers = itertools.count()


class Both:
    """A store and plain Spark with the same rows."""

    def __init__(self, spark, root) -> None:
        self.spark = spark
        self.root = root
        self.rows: dict[str, list[str]] = {}

    def start_again(self) -> None:
        """Let the tables have their first rows, in a store of their own.

        What other examples have dropped would be looked at for each statement.
        """
        root = self.root / str(next(_numbers))
        warehouse = Warehouse(str(root))
        self.store = warehouse.create_schema("an")
        self.relations = Relations(warehouse)
        self.session = SqlSession(self.spark, warehouse.find_schema, root / "scratch")
        self.facade = Store(str(root / "an"))
        for name in NAMES:
            build(
                self.store, ROWS, WriteRequest(name, partition_by=("p p",) if name == "t" else ())
            )
            self.let(name, ROWS)

    def let(self, name: str, rows: pa.Table) -> None:
        """Let plain Spark have these rows."""
        frame_of_table(self.spark, rows).createOrReplaceTempView(plain(name))
        self.rows[name] = as_rows(rows)

    def plain(self, text: str) -> pa.Table:
        """Ask plain Spark for rows of the tables' columns."""
        columns = list(zip(*self.spark.sql(text).collect(), strict=True)) or [()] * len(COLUMNS)
        return pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)), schema=ROWS.schema)

    def ask(self, text: str) -> list[str]:
        return as_rows(self.spark.sql(text))

    def run(self, text: str) -> list[str]:
        """Run statements on the store; gives the rows of queries."""
        found: list[str] = []
        try:
            for statement in map(read_statement, split_statements(text)):
                if run_statement(lambda: self.session, self.relations, statement) is None:
                    found = as_rows(self.session.sql(statement))
        except Exception as error:
            error.add_note(text)
            raise
        return found

    def change(self, text: str, after: Mapping[str, str]) -> str:
        """Run a statement after which plain Spark gives these rows, or which is refused."""
        wanted = {name: self.plain(query) for name, query in after.items()}
        if "t" in wanted and wanted["t"]["p p"].null_count:  # partition columns are never null
            if len(after) == 1:
                with pytest.raises(KtkError):
                    self.run(text)
        else:
            self.run(text)
            for name, rows in wanted.items():
                self.let(name, rows)
        for name in NAMES:
            found = self.facade.table(name).query().to_arrow().select(COLUMNS)
            assert as_rows(found) == self.rows[name], text
        return text


def as_rows(found) -> list[str]:
    """Rows of a frame or a table, which have no order."""
    if isinstance(found, pa.Table):
        return sorted(map(repr, zip(*map(pa.ChunkedArray.to_pylist, found.columns), strict=True)))
    return sorted(map(repr, map(tuple, found.collect())))


def quoted(name: str) -> Written:
    return Written(f"`{name.replace('`', '``')}`")


def query(both: Both, w: Writer) -> str:
    written = w.query()
    assert both.run(written.ours) == both.ask(written.plain), written.ours
    return written.ours


def temporary_view(both: Both, w: Writer) -> str:
    inner, view = w.query(), f"v{next(_numbers)}"
    head = w.one((f"create temp view `{view}` as", f"cache table `{view}` as"))
    written = w.text(head, inner)
    both.run(written.ours)
    assert both.run(f"select * from {view}") == both.ask(inner.plain), written.ours
    return written.ours


def views(both: Both, w: Writer) -> str:
    """A view, one over it, and the first one replaced and dropped."""
    first, second, number = w.query(), w.query(), next(_numbers)
    inner, outer = Written(f"an.`v{number}`"), Written(f"an.o{number}")
    columns = Written(w.one(("(`x y`, `select`, Z)", "(`x y` comment 'as', `select`, z)")))
    head = w.text("create or replace view", inner, columns, w.one(("", "comment 'as'")), "as")
    over = w.text("create view", outer, "as select z,", "`X Y`", "from", inner,
                  "where", "`select`", "> 1")  # fmt: skip
    both.run(w.text(head, first, ";", over).ours)
    for now in (first, second):
        asked = f"select z, `x y` from ({now.plain} ) as q (`x y`, `select`, z) where `select` > 1"
        assert both.run(f"select * from {outer.ours}") == both.ask(asked), (now.ours, over.ours)
        both.run(w.text(head, second).ours)
    both.run(w.text("drop view", w.one(("", "if exists")), inner).ours)
    with pytest.raises(Exception, match=r"(?i)not found|cannot be found"):
        both.run(f"select * from {outer.ours}")
    both.run(f"drop view {outer.ours}")
    return f"{head.ours} {first.ours}; {over.ours}"


def create(both: Both, w: Writer) -> str:
    inner, new = w.query(), Written(f"an.c{next(_numbers)}")
    head = w.one(("create table", "create table if not exists", "create or replace table"))
    clauses = ("using parquet as", "as", "comment 'as' as", "",
               "tblproperties ('as' = 'select', b.c = 1) as",
               "using parquet comment 'x' tblproperties ('a' = '''') as")  # fmt: skip
    written = w.text(head, new, w.one(clauses), inner)
    both.run(written.ours)
    assert both.run(f"select * from {new.ours}") == both.ask(inner.plain), written.ours
    both.run(f"drop table {new.ours}")
    return written.ours


def create_columns(both: Both, w: Writer) -> str:
    inner, new = w.query(), Written(f"an.c{next(_numbers)}")
    nullable = w.one(("", "not null", "not null comment 'not null'"))
    listed = w.text("(a string comment ';',", "N bigint", nullable, ",", "`p p`", "string )")
    clauses = w.one(("", "using parquet", "comment 'as'", "tblproperties ('k' = 'v')"))
    rows = w.text("select * from (", inner, ")", "as q (a, n, `p p`)",
                  "where n is not null" if nullable else "")  # fmt: skip
    written = w.text("create table", new, listed, clauses, "; insert into", new, rows)
    both.run(written.ours)
    assert both.run(f"select * from {new.ours}") == both.ask(rows.plain), written.ours
    both.run(f"drop table {new.ours}")
    return written.ours


def alter(both: Both, w: Writer) -> str:
    """A table whose columns come, go and get other names."""
    inner, new = w.query(), Written(f"an.`c{next(_numbers)}`")
    said = [w.text("create table", new, "as select * from (", inner, ")", "as q (a, n, `p p`)")]
    frame = both.spark.sql(inner.plain).toDF(*COLUMNS)
    names = ["größe", "select", "x y", "a.b", "c`d"]
    for _ in range(w.draw(st.integers(1, 4))):
        kind, old = w.one(("add", "drop", "rename", "notes")), w.one(frame.columns)
        column = quoted(w.one((old, old.upper())) if old.isascii() else old)
        head = w.text("alter table", new)
        if kind == "add":
            name, t = names.pop(), w.one(("int", "string", "date"))
            added = (quoted(name), t, w.one(("", "comment 'x, y'")))
            said.append(w.text(head, *w.one((("add column", *added),
                                             ("add columns (", *added, ")")))))  # fmt: skip
            frame = frame.withColumn(name, F.lit(None).cast(t))
        elif kind == "drop" and len(frame.columns) > 2:
            said.append(w.text(head, "drop column", column))
            kept = [f"`{name.replace('`', '``')}`" for name in frame.columns if name != old]
            frame = frame.select(*kept)
        elif kind == "rename":
            name = names.pop()
            said.append(w.text(head, "rename column", column, "to", quoted(name)))
            frame = frame.toDF(*(name if item == old else item for item in frame.columns))
        else:
            notes = ("set tblproperties ('drop' = 'x', 'y' = 'é')",), ("alter column", column,
                     "comment 'it''s'")  # fmt: skip
            said.append(w.text(head, *w.one(notes)))
    text = ";\n".join(item.ours for item in said)
    both.run(text)
    found = both.session.sql(f"select * from {new.ours}")
    assert found.columns == frame.columns, text
    assert as_rows(found) == as_rows(frame), text
    both.run(f"drop table {new.ours}")
    return text


def delete(both: Both, w: Writer) -> str:
    name, alias = w.one(tuple(NAMES)), w.one(("", "as x", "x"))
    condition = w.condition("x" if alias else "")
    written = w.text("delete from", w.table(name), alias, "where", condition)
    kept = f"select * from {plain(name)} as x where not coalesce(({condition.plain} ), false)"
    return both.change(written.ours, {name: kept})


def update(both: Both, w: Writer) -> str:
    name, condition, value = w.one(tuple(NAMES)), w.condition(), w.one((*TEXTS, "null", "`p p`"))
    written = w.text("update", w.table(name), "set", w.one(("A =", "`a` =", "a =")), value,
                     ", n = n + 1", "where", condition)  # fmt: skip
    hit = f"coalesce(({condition.plain} ), false)"
    new = f"if({hit}, {value}, a) as a, if({hit}, n + 1, n) as n, `p p`"
    return both.change(written.ours, {name: f"select {new} from {plain(name)}"})


def insert(both: Both, w: Writer) -> str:
    name, inner = w.one(tuple(NAMES)), w.query()
    table, old, named = w.table(name), f"select * from {plain(name)}", "as s (a, n, `p p`)"
    kind = w.one(("plain", "by name", "columns", "overwrite", "several", "with"))
    rows = inner.plain
    if kind == "by name":
        written = w.text("insert into", table, "by name select", "`P P`", ", a, n from (", inner,
                         ")", named)  # fmt: skip
    elif kind == "columns":
        written = w.text("insert into", table, "(N, `p p`)", "select n,", "`p p`", "from (", inner,
                         ")", named)  # fmt: skip
        rows = f"select null, n, `p p` from ({inner.plain} ) {named}"
    elif kind == "overwrite":
        written = w.text("insert overwrite", w.one(("table", "")), table, inner)
        return both.change(written.ours, {name: inner.plain})
    elif kind == "several":
        written = w.text("insert into", table, inner, "; delete from", table, "where n > 7 ;")
        all_rows = f"{old} union all select * from ({inner.plain} )"
        after = f"select * from ({all_rows} ) {named} where not coalesce(n > 7, false)"
        return both.change(written.ours, {name: after})
    elif kind == "with":
        written = w.text("with w as (", inner, ") insert into", table, "select * from W")
    else:
        written = w.text("insert into", w.one(("table", "")), table, inner)
    return both.change(written.ours, {name: f"{old} union all select * from ({rows} )"})


def insert_several(both: Both, w: Writer) -> str:
    inner, one, two = w.query(), w.flat("q"), w.flat("q")
    rows = w.text("from (", inner, ")", "as q (a, n, `p p`)")
    written = w.text(rows, "insert into", w.table("t"), "select a, n,", "`p p`", "where", one,
                     "insert into", w.table("2_t"), "select", "`p p`", ", n, a where", two,
                     )  # fmt: skip
    first = f"select a, n, `p p` {rows.plain} where {one.plain}"
    second = f"select `p p`, n, a {rows.plain} where {two.plain}"
    after = {
        "t": f"table {plain('t')} union all {first}",
        "2_t": f"table {plain('2_t')} union all {second}",
    }
    return both.change(written.ours, after)


def replace_rows(both: Both, w: Writer) -> str:
    """New rows take the place of those that something is said of."""
    name, inner, number = w.one(tuple(NAMES)), w.query(), w.one((1, 3))
    head, named = w.text("insert into", w.table(name)), "as s (a, n, `p p`)"
    kind = w.one(("where", "using", "on"))
    if kind == "where":
        rows = w.text("select", "'new'", ",", str(number), ",", "'9'")
        written = w.text(head, "replace where n =", str(number), rows)
        gone = f"o.n = {number}"
    elif kind == "using":
        rows = w.text("select a, coalesce(n, 0) as n,", "`p p`", "from (", inner, ")", named)
        written = w.text(head, "replace using (", w.one(("n", "N", "`n`")), ")", rows)
        gone = f"o.n in (select n from ({rows.plain} ))"
    else:
        condition, rows = w.flat("o"), w.text("select * from (", inner, ")", named)
        written = w.text(head, "as o replace on o.n = s.n and", condition, "(", rows, ") as s")
        gone = f"exists (select 1 from ({rows.plain} ) as s where o.n = s.n and {condition.plain} )"
    kept = f"select * from {plain(name)} as o where not coalesce({gone}, false)"
    return both.change(written.ours, {name: f"{kept} union all select * from ({rows.plain} )"})


def merge(both: Both, w: Writer) -> str:
    """All clauses, compared with a full join that says which of them is the first for each row."""
    name = w.one(tuple(NAMES))
    rows = w.text("select max(a) as a, n, coalesce(max(", "`p p`", "),", "'z'", ") as", "`p p`",
                  "from (", w.query(), ")", "as q (a, n, `p p`)", "where n is not null group by n",
                  )  # fmt: skip
    on = w.text("t.n = s.n", *(("and", w.flat("t")) if w.draw(st.booleans()) else ()))
    written = w.text("merge into", w.table(name), w.one(("as t", "t")), "using (", rows, ")",
                     w.one(("as s", "s")), "on", on)  # fmt: skip
    places, values = [], {column: [] for column in COLUMNS}
    for kind, sides, there in (
        ("matched", ("t", "s"), "in_t and in_s"),
        ("not matched", ("s",), "in_s and not in_t"),
        ("not matched by source", ("t",), "in_t and not in_s"),
    ):
        for is_last in ([], [True], [False, True])[w.draw(st.integers(0, 2))]:
            is_open = is_last and w.draw(st.booleans())
            condition = Written("", "true") if is_open else w.flat(w.one(sides))
            action, new = _action(w, kind)
            asked = () if is_open else ("and", condition)
            written = w.text(written, "when", kind, *asked, "then", action)
            place = -2 if new is None else len(places)
            places.append(f"when {there} and coalesce(({condition.plain} ), false) then {place}")
            for column in COLUMNS if new is not None else ():
                values[column].append(f"when {place} then {new[column]}")
    if not places:
        return ""
    new = ", ".join(
        f"case place {' '.join(values[c])} else t.`{c}` end as `{c}`" if values[c] else f"t.`{c}`"
        for c in COLUMNS
    )
    after = f"""
        with j as (select struct(t.*) as t, struct(s.*) as s, coalesce(t.there, false) as in_t,
                          coalesce(s.there, false) as in_s
                   from (select *, true as there from {plain(name)}) as t
                   full outer join (select *, true as there from ({rows.plain} )) as s
                   on {on.plain} ),
        k as (select *, case {" ".join(places)} else -1 end as place from j)
        select {new} from k where place <> -2 and (in_t or place >= 0)"""
    return both.change(written.ours, {name: after})


def _action(w: Writer, kind: str) -> tuple[Written, dict[str, str] | None]:
    """What becomes of rows, and their new values; None where they go."""
    text, from_source = w.one(TEXTS), {column: f"s.`{column}`" for column in COLUMNS}
    old = {column: f"t.`{column}`" for column in COLUMNS}
    if kind == "not matched":
        if w.draw(st.booleans()):
            return w.text("insert *"), from_source
        value = w.one(("s.a", "default", text))
        written = w.text("insert (n,", w.one(("`P P`", "`p p`")), ", a) values (", "s.n + 10",
                         ",", "s.`p p`", ",", value, ")")  # fmt: skip
        return written, {
            "n": "s.n + 10", "p p": "s.`p p`", "a": "null" if value == "default" else value
        }  # fmt: skip
    action = w.one(("delete", "update", "all"))
    if action == "delete":
        return w.text("delete"), None
    if kind == "matched" and action == "all":
        return w.text("update set *"), from_source
    if kind == "matched":
        written = w.text("update set", "t.a", "=", "concat(s.a, t.a)", ",", "N", "=", "s.n + t.n")
        return written, {**old, "a": "concat(s.a, t.a)", "n": "s.n + t.n"}
    written = w.text("update set A =", text, ",", "n", "=", "t.n * 2")
    return written, {**old, "a": text, "n": "t.n * 2"}


KINDS = (query, temporary_view, views, create, create_columns, alter, delete, delete, update,
         update, insert, insert, insert_several, replace_rows, merge, merge)  # fmt: skip


@pytest.fixture(scope="module")
def both(spark, tmp_path_factory):
    return Both(spark, tmp_path_factory.mktemp("random"))


@examples(20)
@given(st.data())
def test_random_statements(both, data):
    both.start_again()
    w = Writer(data.draw)
    for _ in range(STATEMENTS):
        w.one(KINDS)(both, w)
