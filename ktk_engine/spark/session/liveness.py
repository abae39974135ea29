"""Whether Spark is alive: the cluster's master, its own process, its context.

Spark itself waits a minute for a master that does not answer, and forever for a lost one.
"""

from __future__ import annotations

import re
import socket
import struct
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from subprocess import Popen, TimeoutExpired

from ktk_engine.errors import SessionError

_PATIENCE = 5.0  # seconds to connect, and again to answer
_SPARK = "spark://"
_KUBERNETES = re.compile(r"k8s://(?:(https?)://)?(.+)")
_ADDRESS = re.compile(r"(?:\[([^\]]+)\]|([^\[\]:/]+)):(\d{1,5})(?:/.*)?")
# A request in Spark's own protocol for a file that no master has. It answers at once with any
# security, and starts nothing. (Length of all, type "stream request", name.)
_NAME = b"/files/ktk"
_QUESTION = struct.pack(">qbi", 8 + 1 + 4 + len(_NAME), 6, len(_NAME)) + _NAME


def check_master(master: str) -> None:
    """Raise a `SessionError` within ten seconds if a cluster's master does not answer."""
    if problem := master_problem(master):
        raise SessionError(f"{problem} Is it running, and can this machine reach it?")


def why_ended() -> str:
    """Say why the Spark of this process ended; empty if it runs or never started."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    from ktk_engine.spark.client.classic import has_stopped, jvm_process

    context = SparkContext._active_spark_context
    try:
        if context is None or not has_stopped(context):
            return ""
    except (OSError, Py4JError):
        return _end_of_process(jvm_process())
    master = str(context.master)
    return (
        f"Spark on {master} has stopped. "
        f"{master_problem(master) or 'Its log says why; run it again.'}"
    )


def _end_of_process(process: Popen[bytes] | None) -> str:
    """How Spark's Java process, which no longer answers, ended."""
    told = "Spark's Java process ended"
    with suppress(TimeoutExpired):  # its sockets close a little earlier
        status = process.wait(1) if process is not None else 0
        if status:
            told += f" (killed by signal {-status})" if status < 0 else f" (exit status {status})"
    return (
        f"{told}. A machine that is short of memory kills it: see `spark.driver.memory`, and run "
        "it again."
    )


def master_problem(master: str) -> str:
    """Say, within ten seconds, that a cluster's master does not answer; of several, one is enough.

    A `spark://` master has to answer, and a `k8s://` one to accept a connection. Local masters and
    those without an address (`yarn`) pass unchecked.
    """
    kubernetes = _KUBERNETES.fullmatch(master)
    if kubernetes:
        scheme, address = kubernetes.groups()
        host, *_ = address.partition("/")
        written = [
            host if _ADDRESS.fullmatch(host) else f"{host}:{80 if scheme == 'http' else 443}"
        ]
    elif master.startswith(_SPARK):
        written = master.removeprefix(_SPARK).split(",")
    else:
        return ""
    addresses = [match for match in map(_ADDRESS.fullmatch, written) if match]
    if len(addresses) < len(written):
        return ""  # Spark itself reports a malformed one
    pool = ThreadPoolExecutor(len(addresses))
    asked = [
        pool.submit(address_problem, match[1] or match[2], int(match[3]), is_master=not kubernetes)
        for match in addresses
    ]
    try:
        problems = []
        for answer in as_completed(asked):
            if not (problem := answer.result()):
                return ""
            problems.append(problem)
    finally:
        pool.shutdown(wait=False)
    told = "; ".join(dict.fromkeys(problems))
    return f"The Spark master {master} (`spark.master`) does not answer: {told}."


def address_problem(host: str, port: int, is_master: bool = False) -> str:
    """Say, within ten seconds, what is wrong with a server; empty if it is there.

    A Spark master has to answer; any other server only has to accept a connection.
    """
    try:
        with socket.create_connection((host, port), _PATIENCE) as connection:
            if is_master:
                connection.sendall(_QUESTION)
                if not connection.recv(1):
                    return "the server there is not a Spark master"
    except TimeoutError:
        return f"nothing for {_PATIENCE:.0f} seconds"
    except OSError as error:
        return error.strerror or str(error)
    return ""
