"""Notes what the rows of a node were computed from, after its commit.

See docs/design/files-and-commits.md, Notes of what was computed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.ktk.materialize.outcome import Outcome
from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.computed import Computed, versions_read, write_computed
from ktk_engine.log.entry import digest
from ktk_engine.store.interface import ObjectStore

_LOGGER = AdapterLogger("ktk")
# Configs that decide nothing about rows, types or files.
_OTHERS = frozenset(
    ("access", "docs", "grants", "group", "meta", "persist_docs", "query_timeout", "tags")
)
_PACKAGES = ("pyspark", "pyspark-client", "ktk-engine", "dbt-ktk", "dbt-core", "dbt-adapters")
_SILENT: tuple[Any, ...] = (None, "", b"", (), [], {})
_DIGITS = 24  # 96 bits of SHA-256: notes stay small


@dataclass(frozen=True)
class Work:
    """What decides about the rows of a node, apart from what it reads."""

    model: Mapping[str, Any]  # the node as Jinja's `model`
    code: str | bytes  # its compiled statement, its function in Python, or its CSV file
    full_refresh: bool
    sessions: Sessions  # as they are when the rows were computed
    parameters: Mapping[str, Any]  # of the profile

    def parts(self) -> dict[str, Any]:
        """All of it, by name."""
        model, columns = self.model, (self.model.get("columns") or {}).items()
        said = {name: (item.get("data_type"), item.get("constraints")) for name, item in columns}
        return {
            "code": self.code,
            **{f"config {key}": v for key, v in model["config"].items() if key not in _OTHERS},
            "columns": said if any(any(item) for item in said.values()) else None,
            "constraints": model.get("constraints"),
            "full refresh": self.full_refresh,
            "batch": model.get("batch"),
            **(self._of_spark(self.code) if isinstance(self.code, str) else {}),
            **{f"version of {name}": _version_of(name) for name in _PACKAGES},
        }

    def _of_spark(self, code: str) -> dict[str, Any]:
        """What the text calls, and how its session reads it."""
        session = self.sessions.current()
        functions = self.sessions.functions.named_in(code)
        return {
            **{f"function {item.name}": (item.body, item.config) for item in functions},
            "parameters": self.parameters,
            "dialect": session.dialect,
            "version of Spark": session.session.version,
            "spark-defaults.conf": _spark_defaults(),
        }


def note_computed(
    store: ObjectStore,
    target: WriteRequest,
    outcome: Outcome,
    reads: Reads,
    work: Work,
) -> None:
    """Store the note of a write; a failure only makes the node run once more."""
    if not outcome.commit:
        return  # nothing was committed, and the note of the commit before says what holds
    try:
        texts = {f"view {name}": text for name, text in reads.texts.items()}
        everything = {**work.parts(), **texts}.items()
        said = {name: _digest(item) for name, item in everything if item not in _SILENT}
        read, unknown = versions_read(store, [reads]), reads.unknown
        note = Computed(outcome.version, outcome.commit, store.now(), said, read, unknown)
        write_computed(store, target.scope, target.uuid, note)
    except Exception as error:  # noqa: BLE001 (the rows are committed)
        _LOGGER.debug(f"{target}: what it was computed from is not noted: {error!r}")


def _digest(item: Any) -> str:
    """Digest a value as JSON; objects of dbt by their text."""
    data = item
    if not isinstance(item, bytes):
        data = json.dumps(item, sort_keys=True, default=str).encode()
    return digest(data)[:_DIGITS]


@cache
def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _spark_defaults() -> bytes:
    """The settings of this machine's Spark that it reads when it starts."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    file = Path(folder) / "spark-defaults.conf"
    return file.read_bytes() if file.is_file() else b""
