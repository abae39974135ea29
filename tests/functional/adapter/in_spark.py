"""The suite's Postgres statements in Spark's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodType

import sqlglot
from dbt.tests.util import get_connection
from sqlglot import exp

_SCHEMA = "__schema__"


def in_spark(sql: str) -> list[str]:
    """Translate statements, separated by semicolons.

    Args:
        sql: Postgres, with `{schema}` where the harness puts the test's schema.

    Returns:
        One text per statement, with `{schema}` again.
    """
    found = sqlglot.parse(sql.replace("{schema}", _SCHEMA), read="postgres")
    texts = [tree.transform(_unbounded).sql("spark", comments=False) for tree in found if tree]
    return [text.replace(_SCHEMA, "{schema}") for text in texts]


def _unbounded(node: exp.Expression) -> exp.Expression:
    """Texts have no greatest length."""
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.VARCHAR:
        return exp.DataType.build("text")
    return node


def run_in_spark(project, sql: str) -> None:
    """Run Postgres statements in a test's project."""
    for statement in in_spark(sql):
        project.run_sql(statement)


def speak_postgres(project) -> None:
    """Let `project.run_sql` take Postgres statements, and those that change rows in place.

    The adapter refuses `update`, `delete` and `alter table`: the table is rebuilt with the
    rows and columns that they leave. What a statement returns is not touched.
    """
    run_sql = project.run_sql

    def run(self, sql, fetch=None):
        if fetch:
            return run_sql(sql, fetch)
        text = sql.replace("{database}.", "").replace(f"{self.database}.", "")
        for statement in in_spark(text.replace("{schema}", self.test_schema)):
            for changed in rebuilt(statement, lambda table: columns_of(self, table)):
                run_sql(changed)

    project.run_sql = MethodType(run, project)


def columns_of(project, table: str) -> list[str]:
    """Names of a table's columns."""
    schema, name = table.split(".")
    with get_connection(project.adapter):
        relation = project.adapter.Relation.create(schema=schema, identifier=name)
        return [item.name for item in project.adapter.get_columns_in_relation(relation)]


def rebuilt(statement: str, columns: Callable[[str], list[str]]) -> Iterator[str]:
    """Give what rebuilds a table, for a statement that changes it in place.

    Args:
        statement: Spark SQL; other statements are given as they are.
        columns: a table's columns.
    """
    tree = sqlglot.parse_one(statement, read="spark")
    if not isinstance(tree, exp.Update | exp.Delete | exp.Alter):
        yield statement
        return
    table = tree.this.sql("spark")
    where = tree.args.get("where")
    condition = where.this.sql("spark") if where else "true"
    if isinstance(tree, exp.Delete):
        if condition in ("true", "1 = 1"):
            yield f"truncate table {table}"
            return
        rows = f"* from {table} where not coalesce({condition}, false)"
    elif isinstance(tree, exp.Update):
        new = {item.this.name.casefold(): item.expression.sql("spark") for item in tree.expressions}
        chosen = ", ".join(
            f"case when {condition} then {new[name.casefold()]} else {name} end as {name}"
            if name.casefold() in new
            else name
            for name in columns(table)
        )
        rows = f"{chosen} from {table}"
    else:
        rows = f"*, {', '.join(map(_added, tree.args['actions']))} from {table}"
        yield f"create table {table}__new as select {rows}"
        yield f"drop table {table}"  # `create or replace` does not replace a cube's dataset
        yield f"create table {table} as select * from {table}__new"
        yield f"drop table {table}__new"
        return
    yield f"insert overwrite table {table} select {rows}"


def _added(column: exp.ColumnDef) -> str:
    """A new column with its default."""
    default = column.find(exp.DefaultColumnConstraint)
    value = default.this.sql("spark") if default else "null"
    return f"cast({value} as {column.args['kind'].sql('spark')}) as {column.name}"
