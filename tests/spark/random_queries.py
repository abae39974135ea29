"""Random queries over relations `t` and `u`, whose conditions lie at all depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

COLUMNS = ("a", "b", "c", "s")  # three numbers and a text
_JOINS = ("join", "left join", "right join", "full join", "left semi join", "left anti join",
          "cross join", ",")  # fmt: skip
_SETS = ("union all", "union all", "union", "except", "intersect")


@dataclass
class Queries:
    """Writes queries by chance; each gives the columns of `COLUMNS`."""

    random: Random
    depth: int = 0
    ctes: tuple[str, ...] = ()

    def query(self) -> str:
        """A query, perhaps with others by name."""
        if self.depth == 0 and self.random.random() < 0.4:
            named = self.select()
            self.ctes = ("q",)
            return f"with q as ({named}) {self.select()}"
        return self.select()

    def select(self) -> str:
        self.depth += 1
        try:
            if self.depth < 4 and self.random.random() < 0.15:
                how = self.random.choice(_SETS)
                return f"({self.select()}) {how} ({self.select()})"
            return self._select()
        finally:
            self.depth -= 1

    def _select(self) -> str:
        names = ["x", "y", "z"][: self.random.choice((1, 1, 2, 2, 3) if self.depth < 4 else (1,))]
        text, visible = f"from {self._relation()} {names[0]}", [names[0]]
        for name in names[1:]:
            how = self.random.choice(_JOINS)
            if how == ",":
                text += f" cross join {self._relation()} {name}"
                visible.append(name)
                continue
            text += f" {how} {self._relation()} {name}"
            if how != "cross join":
                text += f" on {self._condition([*visible, name])}"
            if how not in ("left semi join", "left anti join"):
                visible.append(name)
        if self.random.random() < 0.8:
            text += f" where {self._condition(visible)}"
        return self._results(visible, text)

    def _results(self, visible: Sequence[str], text: str) -> str:
        kind = self.random.choice(("plain",) * 5 + ("distinct", "group", "window", "limit"))
        if kind == "group":
            keys = [self._column(visible, "number"), self._column(visible, "number")]
            having = self.random.choice(("", " having count(*) > 1", f" having {keys[0]} > 1",
                                         " having max(a) > 1"))  # fmt: skip
            if having.endswith("max(a) > 1"):
                having = f" having max({keys[1]}) > 1"
            return (f"select {keys[0]} as a, {keys[1]} as b, count(*) as c, max("
                    f"{self._column(visible, 'text')}) as s {text} group by {', '.join(keys)}"
                    f"{having}")  # fmt: skip
        values = [self._value(visible) for _ in "abc"]
        if kind == "window":
            part = self._column(visible, "number")
            values[0] = f"count(*) over (partition by {part})"
        items = ", ".join(f"{v} as {n}" for v, n in zip(values, "abc", strict=True))
        items += f", {self._column(visible, 'text')} as s"
        head = "select distinct" if kind == "distinct" else "select"
        tail = f" order by {', '.join(self._all(visible))} limit 3" if kind == "limit" else ""
        return f"{head} {items} {text}{tail}"

    def _all(self, visible: Sequence[str]) -> list[str]:
        return [f"{name}.{column}" for name in visible for column in COLUMNS]

    def _relation(self) -> str:
        if self.depth < 4 and self.random.random() < 0.35:
            return f"({self.select()})"
        return self.random.choice(("t", "u", *self.ctes))

    def _column(self, visible: Sequence[str], kind: str) -> str:
        name = self.random.choice(visible)
        column = self.random.choice("abc") if kind == "number" else "s"
        return column if len(visible) == 1 and self.random.random() < 0.5 else f"{name}.{column}"

    def _value(self, visible: Sequence[str]) -> str:
        column = self._column(visible, "number")
        return self.random.choice((column,) * 6 + (f"{column} + 1", f"coalesce({column}, 2)", "1"))

    def _condition(self, visible: Sequence[str], depth: int = 0) -> str:
        number, text = self._column(visible, "number"), self._column(visible, "text")
        value = self.random.randint(0, 3)
        kinds = [
            f"{number} = {value}",
            f"{value} <= {number}",
            f"{number} <> {value}",
            f"{number} <=> {value}",
            f"{number} between {value} and 2",
            f"{number} in ({value}, 3)",
            f"{number} not in ({value}, 3)",
            f"{number} is null",
            f"{number} is not null",
            f"{number} = {self._column(visible, 'number')}",
            f"{number} + 1 > {value}",
            f"coalesce({number}, 1) = {value}",
            f"{text} = 'k{value}'",
            f"{text} like 'k%'",
            f"upper({text}) = 'K{value}'",
            f"case when {number} > {value} then {text} = 'k1' else true end",
        ]
        if depth < 2:
            one, two = (self._condition(visible, depth + 1) for _ in range(2))
            kinds += [f"({one} and {two})", f"{one} and {two}", f"({one} or {two})", f"not ({one})"]
            kinds += [f"({one} and {two})", f"{one} and {two}"]
        if self.depth < 3:
            inner = self.random.choice(("t", "u", *self.ctes))
            where = f"from {inner} i where i.a = {number} and i.b > {value}"
            kinds += [f"{number} in (select c from {inner} where a > {value})",
                      f"exists (select 1 {where})", f"not exists (select 1 {where})",
                      f"{number} >= (select max(b) from {inner} where a < {value})"]  # fmt: skip
        return self.random.choice(kinds)
