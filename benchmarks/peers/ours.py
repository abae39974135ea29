"""This project: in this process, and as SQL in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from benchmarks.question import LOOKUP, Peer, Question
from benchmarks.workload import CUBE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def here(folder: Path) -> Peer:
    """Answer in this process, without Spark; the store is opened again for each question."""
    from ktk_engine.api import Store

    def ask(question: Question) -> list[float]:
        sums: list[Any] = [0] * len(question.columns)
        query = Store(folder).cube(CUBE).query(question.columns, question.where)
        for batch in query.to_batches(engine="local"):
            sums = [
                total + (pc.sum(column).as_py() or 0)
                for total, column in zip(sums, batch.columns, strict=True)
            ]
        return sums

    return ask


def in_spark(spark: SparkSession, folder: Path, scratch: Path) -> Peer:
    """Answer as a SQL statement over the cube; the cube is a view in schema `w` of that store.

    One session answers all questions, as in a thread of dbt's.
    """
    from ktk_engine.catalog.view import ViewDocument, render_view, view_key
    from ktk_engine.spark.sql.sql_session import SqlSession
    from ktk_engine.store.open_store import open_store

    store = open_store(folder)
    store.put(view_key(CUBE), render_view(ViewDocument(CUBE, "cube", cube=CUBE)))

    session = SqlSession(spark, lambda name: store if name == "w" else None, scratch)

    def ask(question: Question) -> list[float]:
        (row,) = session.sql(question.sql(f"w.{CUBE}", f"w.{LOOKUP}")).collect()
        return list(row)

    return ask
