"""Random statements, oddly written, give what plain Spark gives over the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.sql.statement import read_statements
from tests.support.changes import Relations, Target, build, run_statement
from tests.support.random_cubes import examples
from tests.support.spark import SqlSession, frame_of_table
from tests.support.stores import Warehouse

pytestmark = pytest.mark.usefixtures("few_rows")

# What may stand between two words, and hides nothing.
BLANKS = (" ", "\n", "\t", " /* from an.no ' */ ", " -- it's `from an.no`\n", " /* /* */ ; */ ",
          " -- \\\n from an.no, \n")  # fmt: skip
TEXTS = (r"'\n'", "'\n'", "'it''s'", '"from an.no"', r"r'\'", "''", "'x'", "';'", "'é😀'",
         "'a' 'b'", "'--'", "'/*'", r"'\\'", r"'\''", "'an.t'")  # fmt: skip
NAMES = {"t": ("t", "`t`"), "2_t": ("2_t", "`2_t`")}
COLUMNS = ("a", "n", "p p")
ROWS = pa.table(
    {
        "a": ["x", "\n", None, "it's", ";", "x"],
        "n": pa.array([1, 2, 3, None, 5, 6]),
        "p p": ["1", "1", "2", "2", "3", "3"],
    }
)
_numbers = itertools.count()


def plain(name: str) -> str:
    """The view of plain Spark that has the same rows."""
    return f"`plain {name}`"


@dataclass
class Written:
    """A statement as it is asked of a store, and of plain Spark."""

    ours: str = ""
    plain: str = ""


@dataclass
class Writer:
    """Writes statements of a grammar by chance, both ways at once."""

    draw: Callable[[st.SearchStrategy], object]
    depth: int = 0
    ctes: list[str] = field(default_factory=list)

    def one(self, items: Sequence):
        return self.draw(st.sampled_from(items))

    def text(self, *parts) -> Written:
        """Put parts together, with blanks between them and words in any case."""
        both = Written()
        for part in parts:
            if isinstance(part, str):
                is_plain = not set(part) & set("'\"`")
                spelled = self.one((part, part.upper(), part.title())) if is_plain else part
                part = Written(spelled, part)
            blank = self.one(BLANKS) if self.draw(st.booleans()) else " "
            both = Written(both.ours + blank + part.ours, both.plain + " " + part.plain)
        return both

    def table(self, name: str = "") -> Written:
        name = name or self.one(tuple(NAMES))
        schema = self.one(("an", "`an`", "`an`"))
        dot = self.one((".", " . ", "/**/./**/"))
        return Written(
            f"{schema}{dot}{self.one(NAMES[name])}", f"`plain {name.replace('`', '``')}`"
        )

    def column(self, alias: str = "") -> str:
        name = self.one(("a", "`a`", "A", "n", "N", "`p p`", "`P P`"))
        return f"{alias}.{name}" if alias else name

    def typed(self, kind: str, alias: str = "") -> str:
        name = self.one(("a", "`a`", "A", "`p p`")) if kind == "text" else self.one(("n", "`n`"))
        return f"{alias}.{name}" if alias else name

    def condition(self, alias: str = "") -> Written:
        kinds = ["less", "text", "replace", "null", "distinct", "case", "list"]
        if self.depth < 2:
            kinds += ["in", "exists", "scalar", "both"]
        kind = self.one(kinds)
        text, number = self.typed("text", alias), self.typed("number", alias)
        if kind == "less":
            return self.text(number, self.one(("<", ">=", "<>")), str(self.one((1, 3, 5))))
        if kind == "text":
            return self.text(text, "=", self.one(TEXTS))
        if kind == "replace":
            return self.text("replace(", text, ",", self.one(TEXTS), ",", "'')", "<>", "''")
        if kind == "null":
            return self.text("not", text, "is null")
        if kind == "distinct":
            return self.text(number, "is distinct from", self.one(("1", "null", "n")))
        if kind == "case":
            return self.text("case when", number, "> 2 then", text, "= 'x' else true end")
        if kind == "list":
            return self.text(text, "in", "(", self.one(TEXTS), ",", self.one(TEXTS), ")")
        self.depth += 1
        try:
            if kind == "in":
                return self.text(number, "in", "(", "select n from", self.table(), ")")
            if kind == "exists":
                inner = self.text("select 1 from", self.table(), "as i where i.n =", number)
                return self.text("exists", "(", inner, ")") if alias else self.text("true")
            if kind == "scalar":
                return self.text(number, "<=", "( (", "select max(n) from", self.table(), ") )")
            return self.text("(", self.condition(alias), "and", self.condition(alias), ")")
        finally:
            self.depth -= 1

    def query(self) -> Written:
        """Three columns: a text, a number, a text."""
        kinds = ["plain", "alias", "values", "from", "table"]
        if self.depth < 2:
            kinds += ["with", "union", "nested", "join", "group"]
        kind = self.one(kinds)
        self.depth += 1
        try:
            if kind == "plain":
                return self.text("select a, n, `p p` from", self.table(), "where", self.condition())
            if kind == "alias":
                alias = self.one(("x", "`from`", "as y", "as `select 1`"))
                name = alias.removeprefix("as ")
                head = self.text("select", f"{name}.a, {name}.n, {name}.`p p`", "from")
                return self.text(head, self.table(), alias, "where", self.condition(name))
            if kind == "values":
                rows = f"({self.one(TEXTS)}, 7, {self.one(TEXTS)}), ({self.one(TEXTS)}, 8, 'q')"
                return self.text("select * from values", rows, "as v (a, n, `p p`)")
            if kind == "from":
                return self.text("from", self.table(), "select a, n, `p p` where", self.condition())
            if kind == "table":
                return self.text("table", self.table())
            if kind == "with":
                inner = self.text("with q as (", self.query(), ")", "select * from q")
                return self.text("select * from", "(", inner, ")")
            if kind == "union":
                return self.text("(", self.query(), ")", self.one(("union all", "union", "except")),
                                 "(", self.query(), ")")  # fmt: skip
            if kind == "nested":
                return self.text("select * from", "( (", self.query(), ") )", "as z where",
                                 self.condition("z") if self.depth < 2 else "true")  # fmt: skip
            if kind == "join":
                head = self.text("select l.a, r.n, l.`p p` from", self.table(), "l")
                how = self.one(("join", "left join", "cross join", ","))
                on = self.text("on l.n = r.n and", self.condition("l")) if "j" in how else ""
                on = "" if how == "cross join" else on
                return self.text(head, how, self.table(), "r", *([on] if on else []))
            return self.text("select max(a) as a, count(*) as n, `p p` from", self.table(),
                             "group by `p p`")  # fmt: skip
        finally:
            self.depth -= 1


class Both:
    """A store and plain Spark with the same rows."""

    def __init__(self, sql: SqlSession, root) -> None:
        warehouse = Warehouse(str(root))
        store = warehouse.create_schema("an")
        self.relations = Relations(warehouse)
        self.session = SqlSession(sql.session, warehouse.find_schema, root / "scratch")
        self.spark = sql.session
        self.plain: dict[str, pa.Table] = {}
        for name in NAMES:
            layout = ("p p",) if name == "t" else ()
            build(store, ROWS, Target(name, partition_by=layout))
            self.let(name, frame_of_table(self.spark, ROWS))

    def let(self, name, frame) -> None:
        rows = frame.select(*(f"`{column}`" for column in COLUMNS)).toArrow().cast(ROWS.schema)
        frame_of_table(self.spark, rows).createOrReplaceTempView(plain(name))

    def run(self, text):
        try:
            for statement in read_statements(text):
                if run_statement(lambda: self.session, self.relations, statement) is None:
                    return as_rows(self.session.sql(statement))
        except Exception as error:
            error.add_note(text)
            raise
        return None

    def content(self):
        ours = {n: self.run(f"select * from an.`{n}`") for n in NAMES}
        return ours, {n: self.ask(f"select * from {plain(n)}") for n in NAMES}

    def ask(self, text):
        return as_rows(self.spark.sql(text))


def as_rows(frame):
    return sorted(map(repr, map(tuple, frame.collect())))


def statement(both: Both, w: Writer) -> str:
    """Run a random statement both ways; gives its text."""
    kind = w.one(("query", "view", "insert", "by name", "overwrite", "where", "delete", "update",
                  "create", "several"))  # fmt: skip
    name = w.one(tuple(NAMES))
    quoted = plain(name)
    spark, table = both.spark, w.table(name)
    if kind == "query":
        query = w.query()
        assert both.run(query.ours) == both.ask(query.plain), query.ours
        return query.ours
    if kind == "view":
        query, view = w.query(), f"v{next(_numbers)}"
        head = w.one(
            (
                f"create view an.`{view}` as",
                f"create temp view `{view}` as",
                f"cache table `{view}` as",
            )
        )
        written = w.text(head, query)
        both.run(written.ours)
        asked = both.run(f"select * from {'an.' if ' an.' in head else ''}{view}")
        assert asked == both.ask(query.plain), written.ours
        return written.ours
    if kind == "create":
        query, new = w.query(), f"c{next(_numbers)}"
        written = w.text(
            "create table",
            Written(f"an.{new}"),
            w.one(("using parquet as", "as", "comment 'as' as")),
            query,
        )
        both.run(written.ours)
        assert both.run(f"select * from an.{new}") == both.ask(query.plain), written.ours
        return written.ours
    if kind == "delete":
        alias = w.one(("", "as x", "x"))
        condition = w.condition("x" if alias else "")
        written = w.text("delete from", table, *([alias] if alias else []), "where", condition)
        kept = f"select * from {quoted} as x where not coalesce(({condition.plain} ), false)"
        after = spark.sql(kept)
    elif kind == "update":
        condition, value = w.condition(), w.one(TEXTS)
        where = w.text("where", condition)
        written = w.text("update", table, "set a =", value, ", n = n + 1", where)
        hit = f"coalesce(({condition.plain} ), false)"
        after = spark.sql(
            f"select if({hit}, {value}, a) as a, if({hit}, n + 1, n) as n, `p p` from {quoted}"
        )
    else:
        query = w.query()
        rows = spark.sql(query.plain).toDF(*COLUMNS)
        old = spark.sql(f"select * from {quoted}")
        if kind == "by name":
            inner = w.text("select `p p`, a, n from (", query, ") as s (a, n, `p p`)")
            written = w.text("insert into", table, "by name", inner)
            after = old.unionAll(rows)
        elif kind == "overwrite":
            written = w.text("insert overwrite", w.one(("table", " ")), table, query)
            after = rows
        elif kind == "where":
            number = w.one((1, 3))
            new = w.text("select 'new',", str(number), ", '9'")
            written = w.text("insert into", table, "replace where n =", str(number), new)
            kept = spark.sql(f"select * from {quoted} where not coalesce(n = {number}, false)")
            after = kept.unionAll(spark.sql(new.plain))
        elif kind == "several":
            written = w.text("insert into", table, query, "; delete from", table, "where n > 7 ;")
            after = old.unionAll(rows).where("not coalesce(n > 7, false)")
        else:
            head = w.one((w.text(table), w.text("table", table), w.text(table, "(a, N, `p p`)")))
            written = w.text("insert into", head, query)
            after = old.unionAll(rows)
    both_after = after.toArrow()
    if both_after["p p"].null_count and name == "t":
        return ""  # partition columns are never null: test_gate has that
    both.run(written.ours)
    both.let(name, frame_of_table(spark, both_after.cast(ROWS.schema)))
    return written.ours


@examples(12)
@given(st.data())
def test_random_statements(sql, tmp_path_factory, data):
    both, said = Both(sql, tmp_path_factory.mktemp("random")), []
    for _ in range(data.draw(st.integers(2, 6))):
        said.append(statement(both, Writer(data.draw)))
        ours, wanted = both.content()
        assert ours == wanted, "\n;;\n".join(said)
