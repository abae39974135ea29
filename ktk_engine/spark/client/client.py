"""Gives each kind of session behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ktk_engine.spark.client.protocol import Client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def client_of(session: SparkSession) -> Client:
    """Give the client for the kind of a session."""
    if is_connect(session):
        from ktk_engine.spark.client.connect import ConnectClient

        return ConnectClient(session)
    from ktk_engine.spark.client.classic import ClassicClient

    return ClassicClient(session)


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect, which has no Java."""
    return any("pyspark.sql.connect." in f"{kind.__module__}." for kind in type(session).__mro__)


def select_names(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Select columns of a frame by name, with any characters in the names."""
    return client_of(frame.sparkSession).select(frame, names)
