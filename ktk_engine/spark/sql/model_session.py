"""The Spark session of a user's Python function: it knows the stores' relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ktk_engine.spark.client.client import client_of, is_connect
from ktk_engine.sql.commands import Explain, TemporaryView
from ktk_engine.sql.statement import Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ktk_engine.plan.plan import Plan
    from ktk_engine.spark.sql.sql_session import SqlSession


def model_session(
    relations: SqlSession, tell: Callable[[Plan], None] = lambda plan: None
) -> SparkSession:
    """Give a Spark session whose `sql` and `table` find `schema.name` in the stores.

    Statements that write go to Spark, which does not know the stores: models return rows instead.
    `tell` gets the plan of each cube that a statement reads.
    """
    if is_connect(relations.session):
        return _of_connect(relations, tell)
    return _of_java(relations, tell)


class _FindingRelations:
    """What such a session does differently from the original."""

    _relations: SqlSession
    _tell: Callable[[Plan], None]

    def sql(
        self, sqlQuery: str, args: dict[str, Any] | list[Any] | None = None, **kwargs: Any
    ) -> DataFrame:
        """Run a statement with parameters (`:name` or `?`), and plan a query's cubes for it.

        A text with fields in braces (`kwargs`) goes to Spark unchanged.
        """
        sparks = self._relations.session.sql
        if kwargs:
            return sparks(sqlQuery, args, **kwargs)
        statement = self._relations.read(sqlQuery)
        if not (statement.is_query or isinstance(statement.command, TemporaryView | Explain)):
            return sparks(sqlQuery, args)
        return self._planned(statement, args)

    def table(self, tableName: str) -> DataFrame:
        """Give the rows of a relation; `tableName` is `schema.name`, quoted as in SQL."""
        return self._planned(self._relations.read(f"select * from {tableName}"))

    def newSession(self) -> SparkSession:
        """Give a plain session over the same context."""
        return client_of(self._relations.session).new_session()

    def _planned(
        self, statement: Statement, args: dict[str, Any] | list[Any] | None = None
    ) -> DataFrame:
        frame = self._relations.sql(statement, args)
        for plan in self._relations.plans:
            self._tell(plan)
        return frame


def _of_java(relations: SqlSession, tell: Callable[[Plan], None]) -> SparkSession:
    import pyspark  # noqa: F401
    from pyspark.sql import SparkSession

    from ktk_engine.spark.client.classic import java_session

    class ModelSession(_FindingRelations, SparkSession):
        def __init__(self) -> None:
            self._relations, self._tell = relations, tell
            spark = relations.session
            super().__init__(spark.sparkContext, java_session(spark))

    return ModelSession()


def _of_connect(relations: SqlSession, tell: Callable[[Plan], None]) -> SparkSession:
    import pyspark  # noqa: F401
    from pyspark.sql.connect.session import SparkSession

    class ModelSession(_FindingRelations, SparkSession):  # type: ignore[misc]
        def __init__(self) -> None:
            vars(self).update(vars(relations.session))
            self._relations, self._tell = relations, tell

        def __del__(self) -> None:
            """Nothing to do: the original owns the connection."""

    return ModelSession()  # type: ignore[return-value]
