"""What `dbt debug` says beside the profile: versions, Java, what the store and Spark can do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version

from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine.store.warehouse import Warehouse

_PACKAGES = ("dbt-ktk", "ktk-engine", "pyspark", "pyarrow")


def debug_lines(warehouse: Warehouse, sessions: Sessions) -> Iterator[str]:
    """Check one thing after the other, cheap ones first, and say what was found.

    Raises:
        StoreError: the store cannot be read or written.
        SessionError: there is no Java, or Spark does not start.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    yield f"Python {sys.version.split()[0]}, {packages}"
    warehouse.probe()
    schemas = warehouse.schemas()
    found = f"schemas {', '.join(schemas)}" if schemas else "no schema yet"
    yield f"Store {warehouse.url}: can be written, commits are atomic; {found}"
    yield from _spark_lines(sessions)


def _spark_lines(sessions: Sessions) -> Iterator[str]:
    from ktk_engine.java.find_java import find_java

    java = find_java()
    yield f"Java {java.version} ({java.found_by}: {java.executable})"
    context = sessions.current().session.sparkContext
    yield f"Spark {context.version} on {context.master}, {context.defaultParallelism} tasks at once"
