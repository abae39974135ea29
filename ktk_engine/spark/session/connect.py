"""Sessions on a Spark Connect server, and why one no longer answers."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import SessionError
from ktk_engine.progress import starting_spark
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.client.connect import (
    ASKED,
    ask,
    first_line,
    forget,
    is_lost,
    is_refused,
    open_session,
    share,
)
from ktk_engine.spark.compatibility import silence_query_loggers, spark_errors
from ktk_engine.spark.session.liveness import address_problem
from ktk_engine.spark.session.session import (
    is_running,
    session_for_frames,
    start_session,
    with_defaults,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASKED_AT_FIRST = 4  # in total some five seconds
_OLDEST = (3, 5)
# Errors have Spark's message; its stack is in the server's log.
_SETTINGS = {"spark.sql.connect.serverStacktrace.enabled": "false"}
# gRPC uses these, and a direct connection does not.
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
# An address without a user, who comes before the last @.
_REMOTE = re.compile(r"sc://(?:[^/;?]*@)?([^/;?@]+)")


def connect_session(remote: str) -> SparkSession:
    """Open a session of its own on a Spark Connect server, `sc://host:port/;token=...`.

    Raises a `SessionError` if a package is missing, if the server does not answer or is too old, or
    if this process has started Spark itself.
    """
    if _is_classic_running():
        raise SessionError(
            f"This process has started Spark itself, so it cannot use the server {shown(remote)} "
            "as well. Use a process of its own for each."
        )
    silence_query_loggers()
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error says it
    unreadable: tuple[type[Exception], ...] = (*spark_errors(), ValueError)
    try:
        session = open_session(remote)
    except ImportError as error:
        raise SessionError(
            f"A package that Spark Connect needs is missing: {str(error).splitlines()[0]}. "
            'Install it: pip install "ktk-engine[connect]"'
        ) from error
    except unreadable as error:
        if is_lost(error) or is_refused(error):
            raise
        # The text and the cause may hold the token.
        raise SessionError(
            f"The address of the server {shown(remote)} is not written as "
            "sc://host:port/;key=value. Write = and ; within a value as %3D and %3B."
        ) from None
    try:
        ask(session, _ASKED_AT_FIRST)
        version = client_of(session).version
        ask(session, ASKED)
        if version < _OLDEST:
            raise SessionError(
                f"The server {shown(remote)} runs Spark {'.'.join(map(str, version))}; cubes need "
                "3.5 or newer there."
            )
        for key, value in _SETTINGS.items():
            session.conf.set(key, value)
        return with_defaults(session)
    except SessionError:
        release(session)
        raise
    except spark_errors() as error:
        ask(session, 1)
        release(session)
        if not is_lost(error) and not is_refused(error):
            raise
        question = "Is it running, and can this machine reach it?"
        if is_refused(error):
            question = "Is its token right, and still valid?"
        raise SessionError(
            f"The Spark Connect server {shown(remote)} does not answer: "
            f"{first_line(error)} {question}"
        ) from error


def any_session() -> SparkSession:
    """Give the running session, or connect to SPARK_REMOTE, or start Spark.

    Raises a `SessionError`, as `connect_session` and `start_session` do.
    """
    remote = os.environ.get("SPARK_REMOTE", "")
    if not _is_classic_running():
        if (active := _active()) is not None:
            return session_for_frames(active)
        if remote.startswith("sc://"):
            return _make_default(connect_session(remote))
    with nullcontext() if is_running() else starting_spark():
        return start_session()


def _is_classic_running() -> bool:
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._active_spark_context is not None


def _active() -> Any:
    """The session of Spark Connect of this thread, else of the process."""
    found = sys.modules.get("pyspark.sql.connect.session")
    if found is None:
        return None
    return found.SparkSession.getActiveSession() or found.SparkSession._get_default_session()


def _make_default(session: Any) -> SparkSession:
    """Let `SparkSession.builder.getOrCreate()` give a session, and so all frames meet."""
    type(session)._set_default_and_active_session(session)
    share(session)
    return session  # type: ignore[no-any-return]


def shown(remote: str) -> str:
    """An address without its users and secrets."""
    found = _REMOTE.match(remote)
    return f"sc://{found[1]}" if found else "of Spark Connect"


def server_problem(host: str, port: int) -> str:
    """Say, within five seconds, that no server listens; empty if one does, or behind a proxy."""
    if any(os.environ.get(name) for name in _PROXIES):
        return ""
    problem = address_problem(host, port)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return problem and f"The Spark Connect server sc://{where} does not answer: {problem}."


def is_gone(session: SparkSession) -> bool:
    """Whether a server restarted, or dropped an idle session.

    Raises a `PySparkException` if the server does not answer.
    """
    if session.client.is_closed:
        return True
    try:
        session.conf.get("spark.sql.session.timeZone")
    except spark_errors() as error:
        if not is_lost(error):
            raise
        return True
    return False


def release(session: SparkSession) -> None:
    """Release a session on the server that is no longer in use."""
    forget(session)
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


def abandon(session: SparkSession) -> None:
    """Close a lost connection, so that calls waiting for an answer fail at once."""
    with suppress(Exception):
        channel: Any = session.client._channel
        channel.close()
