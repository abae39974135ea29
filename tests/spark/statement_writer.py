"""Writes random statements, oddly, both for a store and for plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

# What may stand between two words, and hides nothing.
BLANKS = (" ", "\n", "\t", " /* from an.no ' */ ", " -- it's `from an.no`\n", " /* /* */ ; */ ",
          " -- \\\n from an.no, \n")  # fmt: skip
TEXTS = (r"'\n'", "'\n'", "'it''s'", '"from an.no"', r"r'\'", "''", "'x'", "';'", "'é😀'",
         "'a' 'b'", "'--'", "'/*'", r"'\\'", r"'\''", "'an.t'")  # fmt: skip
NAMES = {"t": ("t", "`t`"), "2_t": ("2_t", "`2_t`")}
COLUMNS = ("a", "n", "p p")


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
        for part in filter(None, parts):
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

    def flat(self, alias: str) -> Written:
        """A condition without a query in it."""
        depth, self.depth = self.depth, 2
        found = self.condition(alias)
        self.depth = depth
        return found

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
            other = self.one(("1", "null", f"{alias}.n" if alias else "n"))
            return self.text(number, "is distinct from", other)
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
