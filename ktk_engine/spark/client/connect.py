"""A session of Spark Connect: a client without Java, whose server runs elsewhere."""

from __future__ import annotations

import atexit
import copy
import os
import re
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import QueryError
from ktk_engine.spark.client.connect_jobs import ConnectJobs
from ktk_engine.sql.dialect import DECIDING
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARALLELISM = "spark.default.parallelism"
# By default PySpark retries a lost server for ten minutes; one that restarts knows no session.
ASKED, _LONGEST_WAIT = 10, 5_000  # milliseconds: in total some 35 seconds
_LOST = (
    "INVALID_HANDLE.SESSION_",
    "INVALID_HANDLE.OPERATION_",
    "RESPONSE_ALREADY_RECEIVED",
    "RETRIES_EXCEEDED",
    "StatusCode.UNAVAILABLE",
    "closed channel",
    "Channel closed",
    "NO_ACTIVE_SESSION",
    "server side session identifier",
)
_REFUSED = ("StatusCode.UNAUTHENTICATED", "StatusCode.PERMISSION_DENIED")
_DETAILS = re.compile(r'details = "([^"]*)"')
_USER_TYPE = "pythonuserdefined"  # Spark's name for each
_LOCAL = re.compile(r"local\[(\d+)(?:,\s*\d+)?\]")
# Size of a value in Spark; texts add their own length.
_VALUE_BYTES = 16
# Binds PySpark's functions to Spark Connect, whatever its value; its own sessions set 1.
MODE, _OURS = "SPARK_CONNECT_MODE_ENABLED", "ktk"


@dataclass
class _SessionCache:
    """What the client keeps of a session, so that it asks the server once."""

    host: str
    is_ours: bool = False  # opened here
    is_shared: bool = False  # with a user's code
    archives: set[str] = field(default_factory=set)
    settings: dict[str, str | None] = field(default_factory=dict)
    version: tuple[int, int] | None = None


_caches: dict[str, _SessionCache] = {}  # by session id


def open_session(connection: Any, user: str | None = None) -> SparkSession:
    """Open a new session on a server, which closes when this process ends.

    `user` overrides the user of the address or the system. Raises an `ImportError` if a package of
    Spark Connect is missing.
    """
    import pyspark  # noqa: F401
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.utils import is_remote

    session: Any = SparkSession(connection, user)
    _caches[session.session_id] = _SessionCache(session.client.host, is_ours=True)
    weakref.finalize(session, _forget, session.session_id)
    atexit.register(_close, weakref.ref(session))
    if not is_remote():  # with the client alone it is
        os.environ[MODE] = _OURS
    ask(session, ASKED)
    return session  # type: ignore[no-any-return]


def ask(session: Any, times: int) -> None:
    """Limit how often a session retries a call of its server."""
    with suppress(ImportError, AttributeError):  # 3.5 has its own number of retries
        import pyspark  # noqa: F401
        from pyspark.sql.connect.client.retries import DefaultPolicy

        policy = DefaultPolicy(max_retries=times, max_backoff=_LONGEST_WAIT)
        session.client.set_retry_policies([policy])


def _close(opened: weakref.ref[Any]) -> None:
    """Close a session: a connection that Python collects only at its exit waits forever."""
    session = opened()
    if session is not None:
        ask(session, 1)
        with suppress(Exception):
            session.stop()


def forget(session: Any) -> None:
    """Drop what is known about a session that has ended."""
    _forget(session.session_id)


def _forget(number: str) -> None:
    _caches.pop(number, None)
    if not our_servers() and os.environ.get(MODE) == _OURS:
        del os.environ[MODE]


def our_servers() -> list[str]:
    """The servers on which this process has sessions that were opened here."""
    return sorted({cache.host for cache in _caches.values() if cache.is_ours})


def is_ours(session: Any) -> bool:
    """Whether a session was opened here, and is not shared with a user's code."""
    cache = _caches.get(session.session_id)
    return cache is not None and cache.is_ours and not cache.is_shared


def share(session: Any) -> None:
    """Note that a user's code may work in a session that was opened here."""
    _caches[session.session_id].is_shared = True


class ConnectClient:
    """What a session of Spark Connect offers; see `Client`."""

    takes_manifests = False
    shows_plans = False
    runs_here = False
    runs_this_python = False

    def __init__(self, session: Any) -> None:
        self.session = session
        self._cache = _caches.setdefault(session.session_id, _SessionCache(session.client.host))

    @property
    def master(self) -> str:
        """See `Client`."""
        return self._setting("spark.master") or ""

    @property
    def version(self) -> tuple[int, int]:
        """See `Client`."""
        if self._cache.version is None:
            major, minor, *_ = self.session.version.split(".")
            self._cache.version = int(major), int(minor)
        return self._cache.version

    @property
    def parallelism(self) -> int:
        """The configured number, else the master's cores, else the number of shuffle partitions."""
        if given := self._setting(_PARALLELISM):
            return int(given)
        if cores := _LOCAL.fullmatch(self.master):
            return int(cores[1])
        return int(self.session.conf.get("spark.sql.shuffle.partitions", "200") or "200")

    def _setting(self, key: str) -> str | None:
        """A setting that stays the same while the session lives."""
        if key not in self._cache.settings:
            self._cache.settings[key] = self.session.conf.get(key, None)
        return self._cache.settings[key]

    def has_archive(self, name: str) -> bool:
        """See `Client`."""
        return name in self._cache.archives

    def send_archive(self, archive: Path) -> None:
        """See `Client`; a server that takes no packages must have them."""
        import pyspark  # noqa: F401
        from pyspark.errors.exceptions.connect import UnsupportedOperationException

        with suppress(UnsupportedOperationException):  # Sail's
            self.session.addArtifacts(str(archive), pyfile=True)
        self._cache.archives.add(archive.name)

    def new_session(self) -> SparkSession:
        """A new one on the server, at the same address."""
        client = self.session.client
        builder = copy.copy(client._builder)
        place = "_params" if hasattr(builder, "_params") else "params"  # since 4.0, and before
        given = getattr(builder, place)
        setattr(builder, place, {k: v for k, v in given.items() if k != "session_id"})
        return open_session(builder, client._user_id)

    def explicit_settings(self, keys: Iterable[str]) -> set[str]:
        """Those set explicitly, for the server or in the session."""
        return {key for key in keys if self.session.conf.get(key, None) is not None}

    def forget_settings(self, keys: Iterable[str]) -> None:
        """Nothing to do: each session has its own."""

    def settings(self, keys: Sequence[str]) -> dict[str, str | None]:
        """See `Client`; in one request."""
        import pyspark  # noqa: F401
        from pyspark.sql.connect.proto import ConfigRequest

        return dict(self._configure(get_option=ConfigRequest.GetOption(keys=keys)))

    def set_settings(self, settings: Mapping[str, str | None]) -> None:
        """See `Client`; in a request or two."""
        import pyspark  # noqa: F401
        from pyspark.sql.connect.proto import ConfigRequest, KeyValue

        pairs = settings.items()
        given = [KeyValue(key=key, value=value) for key, value in pairs if value is not None]
        if given:
            self._configure(set=ConfigRequest.Set(pairs=given))
        if gone := [key for key, value in pairs if value is None]:
            self._configure(unset=ConfigRequest.Unset(keys=gone))

    def _configure(self, **operation: Any) -> list[tuple[str, str | None]]:
        """Ask for settings, or change them, in one request."""
        import pyspark  # noqa: F401
        from pyspark.sql.connect.proto import ConfigRequest

        answer = self.session.client.config(ConfigRequest.Operation(**operation))
        return list(answer.pairs)

    def settings_of_text(self) -> dict[str, str]:
        """See `Client`; in one request."""
        import pyspark  # noqa: F401
        from pyspark.sql.connect.proto import ConfigRequest

        pairs = self._configure(get_all=ConfigRequest.GetAll())
        return {key: value or "" for key, value in pairs if DECIDING.fullmatch(key)}

    def answer_at_once(self) -> None:
        """Nothing to do: each call is a separate request."""

    @contextmanager
    def keeping_active(self) -> Iterator[None]:
        """Nothing to do: frames do not make their session the active one."""
        yield

    active = keeping_active

    def classes_of(self, functions: Iterable[str]) -> dict[str, str]:
        """See `Client`."""
        import pyspark  # noqa: F401
        from pyspark.errors import AnalysisException

        found = {}
        for name in functions:
            with suppress(AnalysisException):
                found[name] = str(self.session.catalog.getFunction(name).className)
        return found

    def check_syntax(self, sql: str) -> None:
        """See `Client`; `explain` parses the whole statement and runs nothing."""
        import pyspark  # noqa: F401
        from pyspark.errors import ParseException

        try:
            self.session.sql(f"explain {sql}")
        except ParseException as error:
            raise ParseException(_without_explain(str(error))) from None

    def plans_as_text(self, frame: DataFrame) -> str:
        """See `Client`; a server plans the rest too, and may compute constants for that.

        Raises a `QueryError` if it cannot, without the values that its error shows.
        """
        import pyspark  # noqa: F401
        from pyspark.errors.exceptions.connect import SparkConnectException

        connect: Any = frame
        try:
            text: str = connect._explain_string(extended=True)
        except SparkConnectException as error:
            if is_lost(error):
                raise
            raise QueryError(
                "A statement reads a view of another store that Spark cannot plan. Nothing was "
                "computed. Ask its owner to correct it."
            ) from None
        return text  # a text in it may look like a heading, so no part is left out

    def parsed_plan(self, frame: DataFrame) -> str:
        """See `Client`; a server would plan the rest too."""
        return ""

    def has_user_types(self, frame: DataFrame) -> bool:
        """See `Client`; the analyzed plan begins with the names and types of its columns."""
        return _USER_TYPE in self.plans_as_text(frame).lower()

    def select(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """See `Client`."""
        return frame.select(*map(quote_identifier, names))

    def optimized_plan(self, frame: DataFrame) -> tuple[str, str]:
        """A server gives plans only as text, which lacks too much."""
        raise NotImplementedError

    def needs_few_tasks(self, frame: DataFrame) -> bool:
        """See `Client`: unknown here."""
        return False

    def is_small(self, frame: DataFrame, maximum_bytes: int) -> bool:
        """Count rows and the bytes of texts; nested values may have any size."""
        import pyspark  # noqa: F401
        from pyspark.sql import functions as F
        from pyspark.sql import types as st

        long = [
            f for f in frame.schema.fields if isinstance(f.dataType, st.StringType | st.BinaryType)
        ]
        nested = (st.StructType, st.ArrayType, st.MapType)
        if any(isinstance(field.dataType, nested) for field in frame.schema.fields):
            return False
        texts = [F.sum(F.octet_length(quote_identifier(field.name))) for field in long]
        ((rows, *sizes),) = frame.agg(F.count(F.lit(1)), *texts).collect()
        values = rows * len(frame.schema.fields) * _VALUE_BYTES
        return bool(values + sum(size or 0 for size in sizes) <= maximum_bytes)

    def jobs(self) -> ConnectJobs:
        """See `Client`."""
        return ConnectJobs(self.session, self.master, is_ours)


def _without_explain(message: str) -> str:
    """The error of a statement, from that of an `explain` of it."""
    length = len("explain ")
    place = re.sub(
        r"\(line 1, pos (\d+)\)",
        lambda found: f"(line 1, pos {max(int(found[1]) - length, 0)})",
        message,
    )
    mark = rf"(== SQL ==\n)explain ([^\n]*\n)(?:-{{{length}}}(-*\^\^\^))?"
    return re.sub(mark, r"\1\2\3", place)


def lost_session(error: Exception) -> str:
    """Say that a Spark Connect server, or a session there, is gone; else empty."""
    if "grpc" not in sys.modules or not is_lost(error):  # a classic one may use such words
        return ""
    servers = ", ".join(sorted({cache.host for cache in _caches.values()}))
    return (
        f"The server {servers + ' ' if servers else ''}of Spark Connect no longer answers, or has "
        f"ended this session: {first_line(error)} What was not committed is discarded; run it "
        "again, in a new session."
    )


def is_lost(error: Exception) -> bool:
    """Whether an error means that a server, or a session there, is gone."""
    return any(sign in str(error) for sign in _LOST)


def is_refused(error: Exception) -> bool:
    """Whether an error means that the server wants a token, or another one."""
    return any(sign in str(error) for sign in _REFUSED)


def first_line(error: Exception) -> str:
    """The first line of an error as a sentence; gRPC's details go to the log."""
    text = str(
        error.__context__ if "RETRIES_EXCEEDED" in str(error) and error.__context__ else error
    )
    found = _DETAILS.search(text)
    line = found[1] if found else text.strip().partition("\n")[0]
    return f"{line.strip().rstrip('.')}."
