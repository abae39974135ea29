"""A server of Spark Connect: a session on it, and why it does not answer any more."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import SessionError
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.compatibility import silence_query_loggers
from ktk_engine.spark.session.liveness import address_problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODE = "SPARK_CONNECT_MODE_ENABLED"
_LOWEST = (3, 5)
# PySpark would ask a server that is gone for ten minutes; what we wait is half a minute.
_PATIENCE = {"max_retries": 8, "max_backoff": 5000}
_GONE = ("INVALID_HANDLE.", "NO_ACTIVE_SESSION", "Received incorrect server side session")
_DETAILS = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
_REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_LOST = ("UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED")
_OUR_END = "Cannot invoke RPC"  # of a channel that `abandon` has closed
_EXPIRED = (
    "The Spark Connect server knows this session no more: it was started anew, or nothing was "
    "asked of the session for longer than spark.connect.session.manager.defaultSessionTimeout "
    "(an hour, unless the server says otherwise)."
)


def server_problem(host: str, port: int) -> str:
    """Say, within five seconds, that nothing listens where a server should be.

    Args:
        host: its name or address.
        port: where it listens.

    Returns:
        A sentence; empty if something does.
    """
    problem = address_problem(host, port)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return problem and f"The Spark Connect server sc://{where} does not answer: {problem}."


def connect(host: str, port: int, url: str) -> SparkSession:
    """Open a session of its own on a server.

    Args:
        host: the server's name or address.
        port: where it listens.
        url: all of it, for PySpark; no error shows its parameters.

    Raises:
        SessionError: PySpark cannot connect from here, the server does not answer within ten
            seconds or lets us not in, or its Spark is too old.
    """
    session_class, policy = _client()
    if problem := server_problem(host, port):
        raise SessionError(f"{problem} Is it running, and can this machine reach it?")
    silence_query_loggers()
    os.environ[_MODE] = "1"  # as PySpark's own builder does: functions make columns of Connect
    session: Any = None
    try:
        session = session_class(url)
        be_less_patient(session, policy)
        version = str(session.version)
    except Exception as error:
        if session is not None:
            abandon(session)
        problem = connection_problem(error) or _first_line(error)
        raise SessionError(f"No session could be opened on sc://{host}:{port}: {problem}") from error
    major, minor, *_ = version.split(".")
    if (int(major), int(minor)) < _LOWEST:
        release(session)
        raise SessionError(
            f"The Spark Connect server sc://{host}:{port} has Spark {version}; 3.5 or newer is "
            "needed, docs/spark.md says which were tried."
        )
    found: SparkSession = session
    return found


def _client() -> tuple[Any, Any]:
    """PySpark's class of sessions, and that of what it does about a server that does not answer."""
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise SessionError(
            Message(
                f"Spark Connect needs packages that are not installed here: {_first_line(error)} ",
                *_how_to_install(),
            )
        ) from error
    return SparkSession, DefaultPolicy


def _how_to_install() -> tuple[str | Remedy, ...]:
    """A client alone has the modules of classic PySpark: one of the two can be installed."""
    try:
        distribution("pyspark")
    except PackageNotFoundError:
        return "Install them: ", Remedy("install", extra="connect"), "."
    return ("Install them: pip install 'pyspark[connect]'.",)


def be_less_patient(session: SparkSession, policy: Any = None) -> None:
    """Let calls of a session fail half a minute after its server has gone."""
    policy = policy or _client()[1]
    client: Any = session.client
    if hasattr(client, "set_retry_policies"):  # since 4.0
        client.set_retry_policies([policy(**_PATIENCE)])


def connection_problem(error: BaseException) -> str:
    """Say in one sentence what an error tells of a session's connection; empty if nothing.

    Args:
        error: any error of PySpark's or of gRPC's.
    """
    text = str(error)
    condition = _condition(error)
    if any(condition.startswith(name) or name in text[:200] for name in _GONE):
        return _EXPIRED
    status = _status(error)
    details = _DETAILS.search(text)
    said = (details[1] if details else text.strip().split("\n", 1)[0]).rstrip(".")
    if _OUR_END in text or status in _LOST:
        return f"The connection to the Spark Connect server was lost: {_cause(said)}."
    if status in _REFUSED:
        return (
            f"The Spark Connect server lets nobody in without its token: {said}. Is the `token` "
            "right, and still valid?"
        )
    if status == "UNIMPLEMENTED":
        return f"What answers there is no Spark Connect server: {said}."
    return f"The Spark Connect server did not answer: {status}, {said}." if status else ""


def is_gone(session: SparkSession) -> bool:
    """Whether a server has forgotten a session, which was idle for long, or has been started anew.

    Raises:
        Exception: PySpark's, if it cannot be asked.
    """
    if session.client.is_closed:
        return True
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:
        if connection_problem(error) == _EXPIRED:
            return True
        raise
    return False


def release(session: SparkSession) -> None:
    """Let a server forget a session that nobody needs any more, unless it is gone."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


def abandon(session: SparkSession) -> None:
    """Close a connection that is lost: what waits for its answer fails at once."""
    with suppress(Exception):
        channel: Any = session.client._channel
        channel.close()


def _condition(error: BaseException) -> str:
    for name in ("getCondition", "getErrorClass"):
        with suppress(Exception):
            return str(getattr(error, name)() or "")
    return ""


def _status(error: BaseException) -> str:
    """The name of gRPC's status, of an error that tells no condition of Spark's; else empty."""
    with suppress(Exception):
        status: Any = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
        if status is not None and not _condition(error):
            return str(status().name)
    return ""


def _cause(said: str) -> str:
    """The end of gRPC's sentence, which says what the system said."""
    return said.rsplit(": ", 1)[-1] if said.startswith("failed to connect") else said


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") + "."
