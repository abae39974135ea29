"""What `dbt debug` shows besides the profile: versions, Java, and checks of the store and Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from dbt.adapters.ktk.config.connect_target import ConnectTarget
from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine.store.warehouse import Warehouse

# One of the two is installed: a client of Spark Connect has no classic PySpark.
_PACKAGES = ("dbt-ktk", "ktk-engine", "pyspark", "pyspark-client", "pyarrow")
_NOT_OVER_CONNECT = (
    "Not over Spark Connect: sparkContext, RDDs and other Java objects in Python models, tables in "
    "a metastore (`file_format`), and settings of Spark's start"
)


def debug_lines(warehouse: Warehouse, sessions: Sessions) -> Iterator[str]:
    """Check one thing after the other, cheap ones first, and give a line for each.

    Raises a `StoreError` if the store is not readable or writable, or a `SessionError` if Java is
    missing, Spark does not start, or a Spark Connect server does not answer.
    """
    packages = ", ".join(f"{name} {version_of(name)}" for name in _PACKAGES if version_of(name))
    yield f"Python {sys.version.split()[0]}, {packages}"
    warehouse.probe()
    schemas = warehouse.schemas()
    found = f"schemas {', '.join(schemas)}" if schemas else "no schema yet"
    yield f"Store {warehouse.url}: can be written, commits are atomic; {found}"
    if sessions.server is None:
        yield from _spark_lines(sessions)
    else:
        yield from _server_lines(sessions, sessions.server)


@cache
def version_of(package: str) -> str:
    """The installed version of a package; empty without one."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _spark_lines(sessions: Sessions) -> Iterator[str]:
    from ktk_engine.java.find_java import find_java

    java = find_java()
    yield f"Java {java.version} ({java.found_by}: {java.executable})"
    context = sessions.current().session.sparkContext
    yield f"Spark {context.version} on {context.master}, {context.defaultParallelism} tasks at once"


def _server_lines(sessions: Sessions, server: ConnectTarget) -> Iterator[str]:
    from ktk_engine.spark.client.client import client_of

    session = sessions.current().session
    tasks = client_of(session).parallelism
    yield f"Spark {session.version} on the Spark Connect server {server}, {tasks} tasks at once"
    yield _NOT_OVER_CONNECT
