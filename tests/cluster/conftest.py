"""One cluster and one driver serve all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.driver import Driver
from tests.servers.spark_processes import SMALL_JAVA


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.end()


@pytest.fixture(scope="session")
def driver(cluster: Cluster) -> Iterator[Driver]:
    made = Driver(settings(cluster))
    yield made
    made.end()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def settings(cluster: Cluster) -> dict[str, str]:
    """What a profile for the cluster has."""
    return {
        "spark.master": cluster.url,
        "spark.pyspark.python": str(cluster.python),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": SMALL_JAVA,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "2",
        "spark.executor.extraJavaOptions": SMALL_JAVA,
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        # A task's second attempt begins when it takes far longer than half of the others.
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "2",
        "spark.speculation.minTaskRuntime": "4s",
    }
