"""dbt's flags of changed behaviour: as the project sets them, made when somebody asks."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from dbt.adapters.base.impl import DEFAULT_BASE_BEHAVIOR_FLAGS
from dbt.adapters.spark import SparkAdapter

from dbt.adapters.ktk.impl import KtkAdapter


def adapter_of(kind: type, flags: dict[str, bool]):
    """An adapter as far as its flags go."""
    made = kind.__new__(kind)
    made.config = SimpleNamespace(flags=flags)
    made.behavior = list(DEFAULT_BASE_BEHAVIOR_FLAGS)
    return made


@pytest.mark.parametrize("flag", [flag["name"] for flag in DEFAULT_BASE_BEHAVIOR_FLAGS])
@pytest.mark.parametrize("setting", [True, False, None])
def test_flags_are_dbts(flag, setting):
    flags = {} if setting is None else {flag: setting}
    ours, dbts = (
        getattr(adapter_of(kind, flags).behavior, flag).no_warn
        for kind in (KtkAdapter, SparkAdapter)
    )
    assert ours == dbts


def test_nothing_is_made_before_somebody_asks(monkeypatch):
    asked = []
    stack = inspect.stack
    monkeypatch.setattr(inspect, "stack", lambda *context: asked.append(1) or stack(*context))
    adapter = adapter_of(KtkAdapter, {})
    assert asked == []
    made = adapter.behavior
    assert asked
    assert adapter.behavior is made
