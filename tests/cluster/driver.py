"""A process with a session on the cluster, which runs functions of the tests by their names."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

_CONTEXT = multiprocessing.get_context("spawn")
_PATIENCE = 240  # seconds


class Failed(Exception):
    """What a function raised, as text."""


class Driver:
    """The process.

    Args:
        settings: of its session.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, dict(settings)))
        self._process.start()
        theirs.close()

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin to run a function; it gets the session first."""
        self._ours.send((function, arguments))

    def result(self) -> Any:
        """Wait for what the function gives.

        Raises:
            Failed: what it raised, name of the class first.
        """
        assert self._ours.poll(_PATIENCE), "the driver does not answer"
        done, value = self._ours.recv()
        if not done:
            raise Failed(value)
        return value

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function."""
        self.start(function, *arguments)
        return self.result()

    def end(self) -> None:
        """End the session and the process."""
        self._ours.close()
        self._process.join(_PATIENCE)


def _serve(connection: Connection, settings: dict[str, str]) -> None:
    from pyspark import cloudpickle

    from tests.cluster import scenarios
    from tests.support.spark import start_session

    cloudpickle.register_pickle_by_value(scenarios)
    session = start_session(settings)
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            session.stop()
            return
        try:
            connection.send((True, function(session, *arguments)))
        except Exception as error:  # noqa: BLE001 - the test judges it
            traceback.print_exc()
            connection.send((False, f"{type(error).__name__}: {error}"))
