"""Notes what the rows of a node were computed from, and tells from it whether it has to run.

See docs/design/files-and-commits.md, Notes of what was computed.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.ktk.config.skip_unchanged import DETERMINISTIC, KEY
from dbt.adapters.ktk.materialize.outcome import Outcome
from dbt.adapters.ktk.session.debug import version_of
from dbt.adapters.ktk.session.functions import Function
from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine.errors import KtkError
from ktk_engine.format.stamp import digest
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.computed import Computed, versions_read, write_computed
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.plan.statement.named_relations import NamedRelations
from ktk_engine.plan.statement.trace import Trace, trace
from ktk_engine.sql.determinism import unknowns
from ktk_engine.sql.dialect import DECIDING
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.quote import unquote_identifier

_LOGGER = AdapterLogger("ktk")
# Configs that decide nothing about rows, types or files.
_OTHERS = frozenset(
    ("access", "docs", "grants", "group", "meta", "persist_docs", "query_timeout", "tags", KEY)
)
_PACKAGES = ("pyspark", "pyspark-client", "ktk-engine", "dbt-ktk", "dbt-core", "dbt-adapters")
_SILENT: tuple[Any, ...] = (None, "", b"", (), [], {})
_DIGITS = 24  # 96 bits of SHA-256: notes stay small


@dataclass(frozen=True)
class Work:
    """What decides about the rows of a node, apart from what it reads, at this moment."""

    model: Mapping[str, Any]  # the node as Jinja's `model`
    code: str | bytes  # its compiled statement, its function in Python, or its CSV file
    full_refresh: bool
    sessions: Sessions
    relations: NamedRelations
    parameters: Mapping[str, Any]  # of the profile
    on_run_start: tuple[str, ...]  # hooks of the project
    macros: Mapping[str, str]  # that compare old with new rows of a snapshot, by name; else empty

    def __post_init__(self) -> None:
        """Look at all of it: files may change while the rows are computed."""
        _ = self.digests

    @cached_property
    def trace(self) -> Trace | None:
        """What its statement reads; None without one that can be followed.

        That of a Python model is about all relations that it refers to.
        """
        if not isinstance(self.code, str):
            return None
        known = self._functions_by_name.keys()
        try:
            sql = _all_referred(self.code) if self.is_python else self.code
            return trace(sql, self.relations, self.sessions.dialect_of_run(), known)
        except Exception as error:  # noqa: BLE001 (Spark says what is wrong with the statement)
            _LOGGER.debug(f"{self.model['name']}: what it reads is not known: {error!r}")
            return None

    @property
    def is_python(self) -> bool:
        """Whether it is a Python model."""
        return bool(self.model.get("language") == "python")

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Digests of all of it, by name; what is empty is left out."""
        said = {name: _digest(item) for name, item in self._parts().items() if item not in _SILENT}
        return {**said, **(self.trace.work() if self.trace is not None else {})}

    @cached_property
    def unknown(self) -> Mapping[str, str]:
        """What may have changed without a trace, and where it is."""
        if self.is_python and not self.model["config"].get(DETERMINISTIC):
            return {f"it is a Python model that does not say `{DETERMINISTIC}: true`": ""}
        if not isinstance(self.code, str):
            return {}
        header = str(self.model["config"].get("sql_header") or "")
        defaults = _spark_defaults().decode(errors="replace")
        found = {item.what: f"line {item.line} of its sql_header" for item in unknowns(header)}
        for where, text in (("its sql_header", header), ("spark-defaults.conf", defaults)):
            if DECIDING.search(text):
                found[f"{where} sets how SQL is read"] = ""
        for name, item in self._functions_by_name.items():
            if not item.is_python:
                calls = unknowns(item.body, self._functions_by_name.keys())
                found |= {call.what: f"in function {name}" for call in calls}
        if self.trace is not None and self.trace.files and self.sessions.server is not None:
            found["it reads files of the machine of the Spark Connect server"] = ""
        if self.trace is None:
            return {**found, "what its statement reads is not known": ""}
        read = {i.what: f"line {i.line}" if i.line else "" for i in self.trace.unknown}
        return {**found, **read}

    def of_view(self, stored: str) -> str:
        """Digest what decides about the columns of a view with this text; empty if unknown."""
        read = self.columns_read
        return "" if read is None else _digest([stored, sorted(self.digests.items()), read])

    @cached_property
    def columns_read(self) -> list[Any] | None:
        """Names and types in all relations that its statement reads; None if unknown."""
        found = self.trace
        if found is None or any(item.what.startswith("reads ") for item in found.unknown):
            return None
        try:
            return sorted(
                (str(place), [(item.name, str(item.type)) for item in known.schema])
                for place in found.places.values()
                for known in (place.plannable(found.relations),)
            )
        except KtkError:
            return None  # Spark says what is wrong with it

    @cached_property
    def _functions(self) -> list[Function]:
        """The project's functions that it calls, itself or through others."""
        found: dict[str, Function] = {}
        waiting = [self.code] if isinstance(self.code, str) else []
        while waiting:
            for item in self.sessions.functions.named_in(waiting.pop()):
                if item.name not in found:
                    found[item.name] = item
                    waiting.append(_body(item))
        return list(found.values())

    @property
    def _functions_by_name(self) -> dict[str, Function]:
        """Those that say that they always give the same value for the same arguments."""
        return {
            unquote_identifier(item.name).lower(): item
            for item in self._functions
            if item.config.get("volatility") == "deterministic"
        }

    def _parts(self) -> dict[str, Any]:
        model, columns = self.model, (self.model.get("columns") or {}).items()
        said = {name: (item.get("data_type"), item.get("constraints")) for name, item in columns}
        is_traced = self.trace is not None and not self.is_python
        return {
            "code": None if is_traced else self.code,
            "Python and its packages": _environment() if self.is_python else None,
            **{f"config {key}": v for key, v in model["config"].items() if key not in _OTHERS},
            "columns": said if any(any(item) for item in said.values()) else None,
            "constraints": model.get("constraints"),
            "full refresh": self.full_refresh or None,
            "batch": model.get("batch"),
            **(self._of_spark() if isinstance(self.code, str) else {}),
            **{f"version of {name}": version_of(name) for name in _PACKAGES},
        }

    def _of_spark(self) -> dict[str, Any]:
        """What the text calls, and how Spark reads it."""
        server = self.sessions.server
        return {
            **{f"function {item.name}": (_body(item), item.config) for item in self._functions},
            "parameters": self.parameters,
            "dialect": self.sessions.dialect_of_run(),
            "server": None if server is None else self.sessions.current().session.version,
            "SPARK_HOME": os.environ.get("SPARK_HOME"),
            "spark-defaults.conf": _spark_defaults(),
            "on-run-start": self.on_run_start,
            "macros of snapshots": self.macros,
        }


def note_computed(
    store: ObjectStore,
    target: WriteRequest,
    outcome: Outcome,
    reads: Iterable[Reads],
    work: Work,
    before: DatasetEntry | None,
) -> None:
    """Store the note of a write; a failure only makes the node run once more.

    `before` is the dataset's entry before it: its rows are those of a write that found no new ones.
    """
    version, commit = outcome.version, outcome.commit
    if not commit:
        if before is None:
            return
        version, commit = before.version, before.commit
    try:
        read = versions_read(store, reads)
        if target.keeps_versions:  # it reads its own rows in any case
            read = tuple(item for item in read if item.uuid != target.uuid)
        note = Computed(
            *(version, commit, store.now(), work.digests, read, work.unknown, outcome.unchanged)
        )
        write_computed(store, target.scope, target.uuid, note)
    except Exception as error:  # noqa: BLE001 (the rows are committed)
        _LOGGER.debug(f"{target}: what it was computed from is not noted: {error!r}")


def _body(function: Function) -> str:
    """Its code; empty if only a run that builds it renders that, which its call refuses."""
    try:
        return function.body
    except DbtBaseException:
        return ""


def _digest(item: Any) -> str:
    """Digest a value as JSON; objects of dbt by their text."""
    data = item
    if not isinstance(item, bytes):
        data = json.dumps(item, sort_keys=True, default=str).encode()
    return digest(data)[:_DIGITS]


def _all_referred(code: str) -> str:
    """A query of all that a Python model refers to, from the part that dbt has added to it."""
    names: list[str] = []
    for part in ast.walk(ast.parse(code)):
        match part:
            case ast.Assign(targets=[ast.Name(id="refs" | "sources")], value=ast.Dict() as found):
                names += ast.literal_eval(found).values()
    return f"select * from {', '.join(sorted({*names}))}" if names else "select 1"


@cache
def _environment() -> str:
    """This Python, and all packages that it has."""
    found = sorted(f"{item.name} {item.version}" for item in distributions())
    return "\n".join([sys.version, *found])


def _spark_defaults() -> bytes:
    """The settings of this machine's Spark that it reads when it starts."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    file = Path(folder) / "spark-defaults.conf"
    return file.read_bytes() if file.is_file() else b""
