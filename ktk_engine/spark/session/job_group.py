"""The Spark jobs of one piece of work, with one description and one cancel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ktk_engine.spark.client.client import client_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.spark.client.protocol import JobGroup


@contextmanager
def job_group(session: SparkSession, description: str) -> Iterator[JobGroup]:
    """Put the jobs that the thread starts in a block into a group, then restore the old group.

    Spark's UI, event log and listeners show the description of each job.
    """
    group = client_of(session).jobs()
    group.begin(description)
    try:
        yield group
    finally:
        group.end()
