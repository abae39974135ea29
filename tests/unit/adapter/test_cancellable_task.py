"""Work that needs no Spark is stopped by the clock and by others, like any other."""

from __future__ import annotations

import threading
import time

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.connect_target import ConnectTarget
from dbt.adapters.ktk.config.time_limit import TimeLimit
from dbt.adapters.ktk.session import cancellable_task, sessions
from dbt.adapters.ktk.session.cancellable_task import CancellableTask, Told
from ktk_engine.errors import SessionError
from ktk_engine.progress import doing, heartbeat, watching  # deep: what tells of steps
from ktk_engine.spark.client.protocol import GroupWork  # deep: what it says about Spark's jobs
from ktk_engine.spark.session import connect, liveness, session  # deep: whom it asks
from tests.support.stores import Warehouse


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

    def work(self):
        return GroupWork(1, 0, 0, 0, is_last=False)

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
    task._group = jobs
    watching = threading.Thread(target=task._watch, daemon=True)
    watching.start()
    watching.join(0.3)
    assert watching.is_alive() != stopped
    assert task.stopped == (
        "model.p.m was cancelled. gone. Uncommitted changes were discarded." if stopped else ""
    )
    assert bool(asked) == (not running)
    task.close()
    watching.join()


def test_a_lost_server_is_not_asked_to_cancel_anything(monkeypatch):
    class Session:
        closed = False

        @property
        def client(self):
            return self

        @property
        def _channel(self):
            return self

        def close(self):
            self.closed = True

    monkeypatch.setattr(cancellable_task, "_SAY_SECONDS", 0.02)
    task = CancellableTask("model.p.m", "", None, lost=lambda: "The server is gone.")
    task._group, waiting = Jobs(running=2), Session()
    task._sessions.append(waiting)
    task._watch()
    assert waiting.closed
    assert task._group.cancelled == 0
    with pytest.raises(DbtRuntimeError, match=r"model\.p\.m was cancelled\. The server is gone\."):
        task.check()
    task.close()


def test_a_server_that_cannot_cancel_stops_nobody():
    class Failing(Jobs):
        def cancel(self):
            raise ConnectionError

    task = CancellableTask("model.p.m", "", None)
    task._group = Failing(running=1)
    task.stop("cancelled.")
    assert task.stopped == "model.p.m was cancelled."
    task.close()


def test_a_server_that_is_not_there_is_asked_first(tmp_path, monkeypatch):
    monkeypatch.setattr(connect, "address_problem", lambda host, port: "Connection refused")
    for name in connect._PROXIES:
        monkeypatch.delenv(name, raising=False)
    target = ConnectTarget("127.0.0.1", 9, {"token": "canary"})
    with pytest.raises(SessionError) as caught:
        sessions.Sessions(Warehouse(tmp_path), {}, target).current()
    assert str(caught.value) == (
        f"The Spark Connect server {target} does not answer: Connection refused. Is it running, "
        "and can this machine reach it?"
    )
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")  # which may reach it
    assert connect.server_problem("127.0.0.1", 9) == ""


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        ("model.shop.orders", "orders"),
        ("model.shop.orders.v2", "orders.v2"),
        ("test.shop.not_null_orders_id.cf6c17eaed", "not_null_orders_id"),
        ("test.shop.singular", "singular"),
        ("master", "master"),
    ],
)
def test_progress_names_nodes_as_dbt_prints_them(node, shown):
    assert cancellable_task._shown(node) == shown


def test_what_is_told_never_goes_back(monkeypatch):
    monkeypatch.setattr(cancellable_task, "monotonic", Clock(0, 10, 20, 30, 40, 50))
    told = Told("orders", cancellable_task.monotonic())
    lines = [
        told.line("computing", None),
        told.line("writing", GroupWork(0, 0, 0, 0, is_last=False)),
        told.line("writing", GroupWork(3, 1_200, 85_000, 0, is_last=False)),
        told.line("writing", GroupWork(5, 2_000, 90_000, 1_000, is_last=True)),
        told.line("writing", GroupWork(1, 10, 10, 10, is_last=False)),  # another job begins
    ]
    assert lines == [
        "orders: computing, 10 s",
        "orders: reading, 20 s",
        "",  # too soon to say more
        "orders: sorting and writing, 40 s, 1,000 rows",
        "",
    ]
    monkeypatch.setattr(cancellable_task, "monotonic", Clock(0, 10, 100))
    told = Told("orders", cancellable_task.monotonic())
    assert told.line("writing", GroupWork(3, 1_200, 85_000, 0, is_last=False)) == (
        "orders: reading, 10 s, 1,200 rows, 85.0 kB"
    )
    assert told.line("committing", None) == "orders: committing, 100 s"


class Clock:
    """Tells given times, one after the other."""

    def __init__(self, *times):
        self.times = iter(times)

    def __call__(self):
        return float(next(self.times))


def test_a_long_run_is_not_told_too_often(monkeypatch):
    times = range(0, 3_600, 10)
    monkeypatch.setattr(cancellable_task, "monotonic", Clock(*times))
    told = Told("orders", cancellable_task.monotonic())
    lines = [told.line("computing", None) for _ in times[1:]]
    assert sum(map(bool, lines)) < 65


def test_work_without_spark_is_told(monkeypatch):
    said = []
    monkeypatch.setattr(cancellable_task, "_SAY_SECONDS", 0.02)
    monkeypatch.setattr(cancellable_task._LOGGER, "info", said.append)
    name = "not_null_orders_id"
    task = CancellableTask(f"test.p.{name}.a1b2c3", "", None)
    task.begin()
    with watching(task.watched), doing("committing"):
        time.sleep(0.2)
    task.close()
    assert said[-1].startswith(f"{name}: committing, ")
    assert doing("writing").__enter__() is None  # nobody watches any more


def test_heartbeat():
    beats = []
    with heartbeat(beats.append, 0.02):
        time.sleep(0.2)
    count = len(beats)
    assert count > 2
    time.sleep(0.1)
    assert len(beats) == count


def test_spark_s_start_is_told(tmp_path, monkeypatch):
    said = []

    def start(settings, tell):
        time.sleep(0.2)
        raise SessionError("no Java here")

    monkeypatch.setattr(sessions, "_BEAT_SECONDS", 0.02)
    monkeypatch.setattr(sessions._LOGGER, "info", said.append)
    monkeypatch.setattr(session, "is_running", lambda: False)
    monkeypatch.setattr(session, "start_session", start)
    with pytest.raises(SessionError):
        sessions.Sessions(Warehouse(tmp_path), {}).current()
    assert said[0].startswith("Spark is starting (once per run")
    assert said[1] == "Spark is starting: 0 s so far"
    count = len(said)
    time.sleep(0.1)
    assert len(said) == count


def test_the_seconds_of_a_node_go_on_in_its_next_statement(monkeypatch):
    said = []
    monkeypatch.setattr(cancellable_task, "_SAY_SECONDS", 0.02)
    monkeypatch.setattr(cancellable_task._LOGGER, "info", said.append)
    task = CancellableTask("model.p.orders", "", None, time.monotonic() - 300)
    task.begin()
    time.sleep(0.2)
    task.close()
    assert said[0] == "orders: computing, 300 s"
