"""Work that needs no Spark is stopped by the clock and by others, like any other."""

from __future__ import annotations

import threading
import time

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.time_limit import TimeLimit
from dbt.adapters.ktk.session import cancellable_task
from dbt.adapters.ktk.session.cancellable_task import CancellableTask
from ktk_engine.spark.session import liveness  # deep: what it asks of a master


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


class Jobs:
    """Jobs of which some tasks run, on a master."""

    master = "spark://lost:7077"

    def __init__(self, running):
        self.running = running
        self.cancelled = 0

    def tasks(self):
        return 1, self.running, 5

    def cancel(self):
        self.cancelled += 1


@pytest.mark.parametrize(
    ("running", "problems", "stopped"),
    [
        (0, ["gone.", "gone."], True),
        (2, ["gone.", "gone."], False),  # tasks that run may come to their end
        (0, ["gone.", "", "gone.", ""], False),  # another master took over
    ],
)
def test_a_lost_master_stops_what_waits_for_it(monkeypatch, running, problems, stopped):
    asked = []

    def problem(master):
        asked.append(master)
        return problems[len(asked) - 1] if len(asked) <= len(problems) else ""

    monkeypatch.setattr(cancellable_task, "_SAY_SECONDS", 0.02)
    monkeypatch.setattr(liveness, "master_problem", problem)
    task, jobs = CancellableTask("model.p.m", "", None), Jobs(running)
    watching = threading.Thread(target=task._say, args=[jobs], daemon=True)
    watching.start()
    watching.join(0.3)
    assert watching.is_alive() != stopped
    assert task.stopped == (
        "model.p.m was cancelled. gone. What it had not committed is discarded." if stopped else ""
    )
    assert bool(asked) == (not running)
    task.close()
    watching.join()


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        ("model.shop.orders", "orders"),
        ("model.shop.orders.v2", "orders.v2"),
        ("test.shop.not_null_orders_id.cf6c17daed", "not_null_orders_id"),
        ("test.shop.singular", "singular"),
        ("master", "master"),
    ],
)
def test_progress_names_nodes_as_dbt_prints_them(node, shown):
    assert cancellable_task._shown(node) == shown
