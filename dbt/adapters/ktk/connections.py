"""Connections: a handle is a thread's Spark session, which opens on first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from multiprocessing.context import SpawnContext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkConnectionManager

from dbt.adapters.ktk.config.config_reader import declared_in
from dbt.adapters.ktk.config.source_config import project_of
from dbt.adapters.ktk.config.stage import is_staged
from dbt.adapters.ktk.config.time_limit import time_limit
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.materialize.outcome import response_of_statement
from dbt.adapters.ktk.session.cancellable_task import CancellableTask
from dbt.adapters.ktk.session.log_warnings import escape_log, log_warnings
from dbt.adapters.ktk.session.sessions import Sessions
from dbt.adapters.ktk.session.spark_message import missing_hint
from ktk_engine.catalog.source_address import Address, FileAddress, StoreAddress
from ktk_engine.errors import LocalEngineError
from ktk_engine.plan.explain import explain
from ktk_engine.sql.statement import Statement
from ktk_engine.sql.token import split_statements
from ktk_engine.store.open_store import is_url
from ktk_engine.store.trust import Trust
from ktk_engine.store.warehouse import Warehouse
from ktk_engine.warehouse.relations import Relations
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse
from ktk_engine.warehouse.statements import StatementResult, run_statement

if TYPE_CHECKING:
    import agate
    from pyspark.sql import DataFrame

    from ktk_engine.sql.commands import Answer

_LOGGER = AdapterLogger("Ktk")


Wanted = Literal["later", "all", "none"] | int
TryLocal = Literal["none", "totals", "rows"]


class KtkCursor:
    """Runs one statement in the calling thread's session, with what dbt uses of the DB API.

    `wanted` is how many rows a query computes when it runs; `later` leaves it to the fetch.
    `try_local` says which queries need no session if this process can answer them.
    """

    def __init__(
        self, sessions: Sessions, wanted: Wanted = "later", try_local: TryLocal = "none"
    ) -> None:
        self._sessions = sessions
        self._wanted = wanted
        self._try_local = try_local
        self._answer: Answer | None = None
        self._frame: DataFrame | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self.done: StatementResult | None = None

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run a statement, and compute the wanted rows of a query."""
        if bindings:
            raise NotImplementedError(
                "The adapter ktk does not bind values: write them as literals."
            )
        self.close()
        if self._try_local != "none" and self._answered(sql):
            return
        for text in split_statements(sql):
            self.close()
            self._run(self._sessions.read(text))

    def _run(self, statement: Statement) -> None:
        """Run one statement; of several, only the last one's rows can be fetched."""
        sessions = self._sessions
        relations, has_metastore = Relations(sessions.warehouse), sessions.has_metastore
        before = sessions.plans()
        self.done = run_statement(sessions.current, relations, statement, has_metastore)
        if self.done is None:
            self._frame = sessions.current().sql(statement)
            self._compute(self._frame)
        else:
            sessions.say_once(self.done.needless)
            self._answer = self.done.answer
            self._rows = iter(self._answer.rows) if self._answer is not None else None
        if sessions.plans() is not before:
            for plan in sessions.plans():
                _LOGGER.debug(explain(plan))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are not fetched yet."""
        if self._rows is None and self._frame is not None:
            self._rows = iter(self._frame.collect())
        return [tuple(row) for row in self._remaining()]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows, at most this many."""
        return [tuple(row) for row in islice(self._remaining(), size)]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return next((tuple(row) for row in self._remaining()), None)

    @property
    def description(self) -> list[tuple[Any, ...]]:
        """Names and types of the result's columns."""
        columns: Sequence[tuple[str, str]] = ()
        if self._answer is not None:
            columns = self._answer.columns
        elif self._frame is not None:
            columns = [(f.name, f.dataType.simpleString()) for f in self._frame.schema.fields]
        return [(name, kind, None, None, None, None, True) for name, kind in columns]

    @property
    def is_from_spark(self) -> bool:
        """Whether Spark computes the result."""
        return self._frame is not None

    def close(self) -> None:
        """Discard the result."""
        self._answer = None
        self._frame = None
        self._rows = None

    def _answered(self, sql: str) -> bool:
        """Try to answer a query in this process, and tell whether that was possible."""
        local = self._sessions.local()
        try:
            self._answer = local.totals(sql) if self._try_local == "totals" else local.shown(sql)
        except LocalEngineError as reason:
            _LOGGER.debug(f"Spark answers: {reason}")
            return False
        self._rows = iter(self._answer.rows)
        for plan in local.plans:
            _LOGGER.debug(explain(plan))
        return True

    def _compute(self, frame: DataFrame) -> None:
        if self._wanted == "all":
            self._rows = iter(frame.collect())
        elif isinstance(self._wanted, int):
            self._rows = iter(frame.take(self._wanted))
        elif self._wanted == "none" and frame.columns:
            frame.write.format("noop").mode("overwrite").save()

    def _remaining(self) -> Iterator[tuple[Any, ...]]:
        """The rows that are not fetched yet; each partition is computed when its rows are due."""
        if self._rows is None:
            self._rows = iter(self._frame.toLocalIterator() if self._frame is not None else ())
        return self._rows


# Kinds of nodes that `dbt build --select` finds by their name.
_SELECTABLE = frozenset({"model", "snapshot", "seed", "test"})


def _hint_of(node: Any) -> str:
    """What to do about a missing relation that a node reads."""
    parents = getattr(getattr(node, "depends_on", None), "nodes", ())
    sources = sorted(id_.split(".", 2)[2] for id_ in parents if id_.startswith("source."))
    selectable = str(getattr(node, "resource_type", "")) in _SELECTABLE
    name = str(getattr(node, "name", "")) if selectable else ""
    return missing_hint(name, sources, len(sources) < len(parents))


class _Node(NamedTuple):
    """The current work of a thread: dbt's name for it, its node if any, and its start."""

    name: str
    node: Any
    began: float
    writes: bool = True


class KtkHandle:
    """What dbt keeps as the connection of a thread; no other thread uses it.

    dbt itself makes cursors, without arguments, so the handle knows what they compute.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._wanted: Wanted = "later"
        self._try_local: TryLocal = "none"

    @contextmanager
    def computing(self, wanted: Wanted, try_local: TryLocal) -> Iterator[None]:
        """Set what cursors made in a block compute when they run a query; see `KtkCursor`."""
        self._wanted, self._try_local = wanted, try_local
        try:
            yield
        finally:
            self._wanted, self._try_local = "later", "none"

    def cursor(self) -> KtkCursor:
        """Give a new cursor."""
        return KtkCursor(self.sessions, self._wanted, self._try_local)

    def close(self) -> None:
        """Keep the session: the next node of this thread uses it again."""

    def rollback(self) -> None:
        """Do nothing: every commit is atomic."""


class KtkConnectionManager(SparkConnectionManager):
    """Opens handles, runs statements, and translates their errors in one place."""

    TYPE = "ktk"

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        root = Path(getattr(config, "project_root", "") or Path.cwd())
        url = str(config.credentials.store)  # type: ignore[attr-defined]
        # where the project's sources are stored; the adapter knows
        self.source_addresses: Callable[[], Sequence[Address]] = tuple
        with translated():
            kind = StagedWarehouse if is_staged(config) else Warehouse
            self.warehouse = kind(
                url if is_url(url) else (root / os.path.expanduser(url)).resolve(),
                config.credentials.storage_options,  # type: ignore[attr-defined]
                self._trust(config),
            )
        settings = config.credentials.server_side_parameters  # type: ignore[attr-defined]
        server = config.credentials.server  # type: ignore[attr-defined]
        self.sessions = Sessions(self.warehouse, settings, server)
        self._shows = getattr(getattr(config, "args", None), "which", "") == "show"
        self.tests: dict[str, bool] = {}  # by name, whether Spark has run a query of it
        # Each thread writes only its own item; a cancel takes a copy.
        self._nodes: dict[threading.Thread, _Node] = {}
        self._writes = count(1)
        # A new number after each node that may have written: what was read before may be old.
        self.moment = 0
        log_warnings()
        escape_log()

    def _trust(self, config: AdapterRequiredConfig) -> Trust:
        """Where stored views and cubes may lead to: what the profile and the project name."""
        project, profile = project_of(config), config.credentials
        own = (project.store, project.defer_store)
        stores: Sequence[str] = profile.trusted_stores  # type: ignore[attr-defined]
        return Trust(
            [project.absolute(item) for item in own if item],
            [project.absolute(item) for item in stores],
            lambda: (a.store for a in self.source_addresses() if isinstance(a, StoreAddress)),
            lambda: (
                (a.location, a.options)
                for a in self.source_addresses()
                if isinstance(a, FileAddress)
            ),
        )

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Give a connection its handle; starts nothing."""
        connection.handle = KtkHandle(self.sessions)
        connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def node(self, name: str, node: Any) -> Iterator[None]:
        """Say what the calling thread works on within a block.

        `name` is a node's unique id, or `master` and the like for work without a node.
        """
        thread = threading.current_thread()
        before = self._nodes.get(thread)
        is_test = name.startswith(("test.", "unit_test."))
        self._nodes[thread] = _Node(name, node, monotonic(), writes=not is_test)
        try:
            yield
        finally:
            if self._nodes[thread].writes:
                self.moment = next(self._writes)
            if before is None:
                del self._nodes[thread]
            else:
                self._nodes[thread] = before

    def writes_nothing(self) -> None:
        """Note that the calling thread's current work leaves the store as it is."""
        self._nodes[threading.current_thread()] = self._working_on()._replace(writes=False)

    def working_on(self) -> str:
        """The calling thread's current work: a node's unique id, or dbt's name for other work."""
        return self._working_on().name

    def missing_hint(self) -> str:
        """What to do about a missing relation that the calling thread's node reads."""
        return _hint_of(self._working_on().node)

    def _working_on(self) -> _Node:
        return self._nodes.get(threading.current_thread()) or _Node("dbt", None, monotonic())

    def cancel_open(self) -> list[str]:
        """Cancel the work of all other threads, and give its names."""
        others = dict(self._nodes)
        others.pop(threading.current_thread(), None)
        for thread in others:
            self.sessions.cancel(thread)
        return [node.name for node in others.values()]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run work of the calling thread, which dbt and the time limit may cancel.

        Errors of the engine and of Spark become dbt's, once.
        """
        name, node, began, _ = self._working_on()
        limit = time_limit(node, self.profile.credentials.query_timeout)  # type: ignore[attr-defined]
        comment = self.query_header.comment.query_comment if self.query_header else None
        description = f"{name} {comment.strip()}" if comment else name
        lost = self.sessions.server_problem if self.sessions.server is not None else None
        work = CancellableTask(name, description, limit, began, lost)
        with (
            self.sessions.working(work),
            translated(
                _hint_of(node),
                declared_in(getattr(node, "patch_path", None)),
                is_unit_test=str(getattr(node, "resource_type", "")) == "unit_test",
            ),
        ):
            yield

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Run a statement; see `running`."""
        with self.running():
            yield

    def execute(
        self,
        sql: str,
        auto_begin: bool = False,
        fetch: bool = False,
        limit: int | None = None,
    ) -> tuple[AdapterResponse, agate.Table]:
        """Run a statement and fetch its rows; dbt's log has the time of both."""
        from dbt_common.clients.agate_helper import empty_table

        handle = self.get_thread_connection().handle
        wanted: Wanted = "none" if not fetch else "all" if limit is None else limit
        node = self.working_on()
        is_test = node.startswith("test.")
        try_local: TryLocal = "totals" if is_test else "none"
        if fetch and (self._shows or node.startswith(("model.", "snapshot."))):
            try_local = "rows"  # `dbt show`, and `run_query` in a model
        with self.exception_handler(sql), self._after_header(sql) as query:
            with handle.computing(wanted, try_local):
                _, cursor = self.add_query(self._add_query_comment(query), auto_begin)
            if node.startswith(("test.", "unit_test.")):
                self.tests[node] = cursor.is_from_spark or self.tests.get(node, False)
            rows = self.get_result_from_cursor(cursor, limit) if fetch else empty_table()
            return self.get_response(cursor), rows

    @contextmanager
    def _after_header(self, sql: str) -> Iterator[str]:
        """Give a test's query after its `sql_header`, whose settings end with the block."""
        from dbt.adapters.ktk.session.sql_header import after_header

        is_test = self.working_on().startswith(("test.", "unit_test."))
        if not is_test or len(split_statements(sql)) < 2:
            yield sql
            return
        session, run = self.sessions.current(), KtkCursor(self.sessions).execute
        with after_header(session, "", sql, run) as query:
            yield query

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """Give the row counts of a statement that the engine ran."""
        return response_of_statement(cursor.done)
