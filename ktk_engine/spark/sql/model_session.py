"""The Spark session that a user's Python function works with: it knows the stores' relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyspark  # noqa: F401
from pyspark.sql import SparkSession

from ktk_engine.spark.client.client import client_of, is_connect
from ktk_engine.sql.commands import Explain, TemporaryView
from ktk_engine.sql.statement import Statement, read_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.plan.plan import Plan
    from ktk_engine.spark.sql.sql_session import SqlSession


def _tell_nobody(plan: Plan) -> None:
    """Say nothing of a plan."""


class _WithStores:
    """What a session does otherwise that finds `schema.name` in the stores."""

    _relations: SqlSession
    _tell: Callable[[Plan], None]

    def sql(
        self, sqlQuery: str, args: dict[str, Any] | list[Any] | None = None, **kwargs: Any
    ) -> DataFrame:
        """Run a statement; a query's cubes are planned for it.

        Args:
            sqlQuery: one statement.
            args: values of its parameters, `:name` or `?`.
            kwargs: what is in braces in the text; such a text is Spark's alone.
        """
        spark: Any = super()
        if kwargs:
            found: DataFrame = spark.sql(sqlQuery, args, **kwargs)
            return found
        statement = read_statement(sqlQuery)
        if not (statement.is_query or isinstance(statement.command, TemporaryView | Explain)):
            found = spark.sql(sqlQuery, args)
            return found
        return self._planned(statement, args)

    def table(self, tableName: str) -> DataFrame:
        """Give the rows of a relation.

        Args:
            tableName: `schema.name`, quoted where SQL wants it.
        """
        return self._planned(read_statement(f"select * from {tableName}"))

    def newSession(self) -> SparkSession:
        """Give a plain session over the same context, or on the same server."""
        return client_of(self._relations.session).new_session()

    def _planned(
        self, statement: Statement, args: dict[str, Any] | list[Any] | None = None
    ) -> DataFrame:
        frame = self._relations.sql(statement, args)
        for plan in self._relations.plans:
            self._tell(plan)
        return frame


class ModelSession(_WithStores, SparkSession):
    """A classic session whose `sql` and `table` find `schema.name` in the stores.

    Everything else is the session's own. Statements that write go to Spark, which knows no
    relation of a store: anyone who gets this session gives rows back instead.

    Args:
        relations: the session to use, with its stores.
        tell: gets the plan of each cube that a statement reads.
    """

    def __init__(
        self, relations: SqlSession, tell: Callable[[Plan], None] = _tell_nobody
    ) -> None:
        from ktk_engine.spark.client.classic import java_session

        self._relations = relations
        self._tell = tell
        spark = relations.session
        super().__init__(spark.sparkContext, java_session(spark))


def model_session(
    relations: SqlSession, tell: Callable[[Plan], None] = _tell_nobody
) -> SparkSession:
    """Give a session of the same kind as another, that finds `schema.name` in the stores.

    Args:
        relations: the session to use, with its stores.
        tell: gets the plan of each cube that a statement reads.
    """
    spark: Any = relations.session
    if not is_connect(spark):
        return ModelSession(relations, tell)
    kind: Any = type("ModelSession", (_WithStores, type(spark)), {"__slots__": ()})
    session = kind.__new__(kind)
    # It is the same session on the server, by the same connection.
    session.__dict__.update(spark.__dict__, _relations=relations, _tell=tell)
    found: SparkSession = session
    return found
