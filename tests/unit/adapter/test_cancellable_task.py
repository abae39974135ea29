"""Work that needs no Spark is stopped by the clock and by others, like any other."""

from __future__ import annotations

import time

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.time_limit import TimeLimit
from dbt.adapters.ktk.session.cancellable_task import CancellableTask


def test_the_clock_stops_it():
    task = CancellableTask("test.p.slow", "", TimeLimit(0.05, "query_timeout of the profile"))
    task.check()
    task.begin()
    task.begin()  # the clock starts once
    time.sleep(0.2)
    with pytest.raises(DbtRuntimeError, match=r"test\.p\.slow was cancelled after"):
        task.check()
    task.close()


def test_nothing_stops_it_once_it_has_ended():
    task = CancellableTask("test.p.quick", "", TimeLimit(0.05, "query_timeout of the profile"))
    task.begin()
    task.close()
    time.sleep(0.2)
    task.check()


def test_what_was_stopped_does_not_begin():
    task = CancellableTask("test.p.late", "", None)
    task.stop("cancelled.")
    with pytest.raises(DbtRuntimeError, match=r"test\.p\.late was cancelled"):
        task.begin()
    task.close()
