"""What tests need of Spark: sessions, statements on stores, changes that it computes."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ktk_engine.change import replace_rows as replace_rows_module
from ktk_engine.change import replace_where as replace_where_module
from ktk_engine.change.by_arrow import NotByArrowError, Reason
from ktk_engine.change.merge import MergeBy, merge
from ktk_engine.change.predicates import Predicates
from ktk_engine.change.stage import Stage
from ktk_engine.spark.client.client import is_connect
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.connect import connect_session
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.spark.session.session import new_session, start_session
from ktk_engine.spark.sql.sql_session import SqlSession
from tests.support.changes import Reads, Source, WriteRequest, WriteResult
from tests.support.stores import ObjectStore


def connect_address(request: Any) -> str:
    """The address of KTK_CONNECT, or of a server that is started for `1`; empty without it."""
    remote = os.environ.get("KTK_CONNECT", "")
    if remote and "://" not in remote:
        return str(request.getfixturevalue("connect_server").url)
    return remote


def statements(
    session: SparkSession, store: ObjectStore, scratch: Path | None = None, schema: str = "an"
) -> SqlSession:
    """Statements in which `<schema>.<name>` is a relation of the store."""
    return SqlSession(session, {schema: store}.get, scratch or make_scratch_folder())


def replace_where(
    scanner: Scanner,
    frame: DataFrame,
    target: WriteRequest,
    predicates: Predicates,
    *,
    full_refresh: bool = False,
) -> WriteResult | None:
    """Replace the rows that fulfil predicates by those of a frame."""
    target = replace(target, full_refresh=full_refresh)
    return replace_where_module.replace_where(scanner, frame, target, predicates)


def watch_executors(patch: Any, by_arrow: bool = True) -> list[bool]:
    """Note of each change of rows that is written whether Arrow has carried it out.

    Args:
        patch: a monkeypatch; undoes it.
        by_arrow: whether Arrow may; else everything is Spark's.
    """
    noted, put = [], Stage.put

    def note(self: Stage, rows: Any, *others: Any) -> WriteResult:
        noted.append(not isinstance(rows, DataFrame))
        return put(self, rows, *others)

    def refuse(*_: object) -> None:
        raise NotByArrowError(Reason.SIZE)

    patch.setattr(Stage, "put", note)
    if not by_arrow:
        patch.setattr(replace_rows_module, "accepted", refuse)
    return noted


def queried(compute: Callable[[], DataFrame]) -> Source[DataFrame]:
    """What can be computed again, and reads nothing that a commit depends on."""
    return Source(lambda: (compute(), Reads()), is_query=True)


def executed(frame: DataFrame) -> str:
    """The physical plan that ran, or will."""
    return frame._jdf.queryExecution().executedPlan().toString()
