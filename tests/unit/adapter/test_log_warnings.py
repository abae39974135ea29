"""The engine's warnings are lines of dbt's log."""

import warnings

import pytest

from dbt.adapters.ktk.session import log_warnings as module
from dbt.adapters.ktk.session.log_warnings import log_warnings
from ktk_engine.errors import ForeignWriterWarning


@pytest.fixture
def shown(monkeypatch):
    """What Python shows, and what the log gets, of the warnings within a test."""
    plain, logged = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest, **named: plain.append(str(message))
        monkeypatch.setattr(module._LOGGER, "warning", logged.append)
        yield plain, logged


def test_warnings_of_the_engine_are_logged_once_and_others_stay(shown):
    log_warnings()
    log_warnings()  # a second connection manager of the process
    warnings.warn("another program wrote it", ForeignWriterWarning, stacklevel=1)
    warnings.warn("of somebody else", UserWarning, stacklevel=1)
    assert shown == (["of somebody else"], ["another program wrote it"])
