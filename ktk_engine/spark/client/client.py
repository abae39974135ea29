"""Tells kinds of sessions apart: what each offers is behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ktk_engine.spark.client.protocol import Client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def client_of(session: SparkSession) -> Client:
    """Give what a session offers, by the kind of session that it is."""
    if is_connect(session):
        from ktk_engine.spark.client.connect import ConnectClient

        return ConnectClient(session)
    from ktk_engine.spark.client.classic import ClassicClient

    return ClassicClient(session)


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect, which has no Java to talk to."""
    return any("pyspark.sql.connect." in f"{kind.__module__}." for kind in type(session).__mro__)


def select_names(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Give columns of a frame by name, whatever characters the names hold."""
    return client_of(frame.sparkSession).select(frame, names)
