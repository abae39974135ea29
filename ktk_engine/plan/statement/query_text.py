"""A query with the texts of its views inlined, where Spark's plans are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ktk_engine.errors import QueryError
from ktk_engine.plan.statement.query_usage import query_usages
from ktk_engine.plan.statement.usage import Usage
from ktk_engine.sql.dialect import LEFT_TO_SPARK, Dialect
from ktk_engine.sql.token import simplified
from ktk_engine.types.identifier import Name

# sqlglot reads its steps in another order.
_PIPE = "|>"
_VIEW, _OTHER = "__ktk_view_", "__ktk_other_"


@dataclass
class QueryText:
    """The texts of a query and its views."""

    # columns of a relation that no store knows; raises a `QueryError` if nothing does
    columns_of: Callable[[Name], Sequence[str]]
    # texts of views; `view` gives their names
    views: list[str] = field(default_factory=list)

    def view(self, text: str) -> str:
        """Add the text of a view; returns the name that a query uses for it."""
        self.views.append(text)
        return f"{_VIEW}{len(self.views) - 1}"

    def usages(
        self, text: str, schemas: Mapping[str, pa.Schema], dialect: Dialect
    ) -> dict[str, Usage]:
        """Find what a query needs of relations, given their schemas; see `query_usages`.

        `dialect` is that of the session; the text is in the default one.
        """
        try:
            if _PIPE in text or LEFT_TO_SPARK.search(text):
                return {}
            if dialect.is_case_sensitive or dialect.others:
                return {}
            tree = self._tree(text)
            return query_usages(tree, schemas, self._others(tree, schemas), dialect)
        except (SqlglotError, QueryError, RecursionError):
            return {}

    def _tree(self, text: str) -> exp.Query:
        tree = sqlglot.parse_one(simplified(text), dialect="spark")
        if not isinstance(tree, exp.Query):
            raise SqlglotError(f"no query: {text}")
        for table in list(tree.find_all(exp.Table)):
            if table.name.startswith(_VIEW):
                given = {key for key, value in table.args.items() if value}
                if given - {"this", "db", "catalog", "alias"}:
                    raise SqlglotError(f"more than a view's name: {', '.join(sorted(given))}")
                view = self._tree(self.views[int(table.name.removeprefix(_VIEW))])
                table.replace(exp.Subquery(this=view, alias=table.args.get("alias")))
        return tree

    def _others(
        self, tree: exp.Query, schemas: Mapping[str, pa.Schema]
    ) -> dict[str, Sequence[str]]:
        """The columns of Spark's own relations, which get names of one part."""
        queries = {part.alias.lower() for part in tree.find_all(exp.CTE)}
        found: dict[str, Sequence[str]] = {}
        for table in tree.find_all(exp.Table):
            if table.name in schemas or (not table.db and table.name.lower() in queries):
                continue
            if not isinstance(table.this, exp.Identifier):
                continue  # a function
            name = f"{_OTHER}{len(found)}"
            found[name] = self.columns_of(Name(part.name for part in table.parts))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier(name, quoted=True))
            table.set("db", None)
            table.set("catalog", None)
        return found
