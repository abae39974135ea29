"""Writers that are killed, interrupted, or refused by the system: nothing is lost or mixed."""

from __future__ import annotations

from pathlib import Path

from tests.faults.report import Tally
from tests.faults.scale import LARGE
from tests.faults.walk import ArrowWriters, SparkWriters, walk


def test_kills(request, tmp_path):
    tally = Tally("SIGKILL in a write through Arrow")
    walk(tally, tmp_path, ArrowWriters(in_segments=False), ["kill"], stores=(3, 90))
    tally.finish(request)


def test_kills_over_segments(request, tmp_path):
    tally = Tally("SIGKILL in a write through Arrow, all in segments")
    walk(tally, tmp_path, ArrowWriters(in_segments=True), ["kill"], stores=(1, 60))
    tally.finish(request)


def test_errors_over_segments(request, tmp_path):
    tally = Tally("Ctrl-C or an error of the system through Arrow, all in segments")
    faults = ["KeyboardInterrupt", "SystemExit", "ENOSPC", "EIO", "EACCES"]
    walk(tally, tmp_path, ArrowWriters(in_segments=True), faults, stores=(1, 60))
    tally.finish(request)


def test_interrupts(request, tmp_path):
    tally = Tally("Ctrl-C or SystemExit in a write through Arrow")
    walk(
        tally,
        tmp_path,
        ArrowWriters(in_segments=False),
        ["KeyboardInterrupt", "SystemExit"],
        stores=(3, 90),
    )
    tally.finish(request)


def test_errors_of_the_system(request, tmp_path):
    tally = Tally("ENOSPC, EIO or EACCES in a write through Arrow")
    walk(
        tally,
        tmp_path,
        ArrowWriters(in_segments=False),
        ["ENOSPC", "EIO", "EACCES"],
        stores=(3, 90),
    )
    tally.finish(request)


def test_kills_of_spark(request, tmp_path):
    """Driver, JVM and Python workers die together."""
    tally = Tally("SIGKILL in a write through Spark")
    _walk_spark(tally, tmp_path, "kill", stores=(1, 25))
    tally.finish(request)


def test_kills_of_spark_over_segments(request, tmp_path):
    tally = Tally("SIGKILL in a write through Spark, all in segments")
    _walk_spark(tally, tmp_path, "kill", stores=(0, 25), in_segments=True)
    tally.finish(request)


def test_interrupts_of_spark(request, tmp_path):
    tally = Tally("Ctrl-C in a write through Spark")
    _walk_spark(tally, tmp_path, "KeyboardInterrupt", stores=(0, 5))
    tally.finish(request)


def _walk_spark(
    tally: Tally, folder: Path, fault: str, stores: tuple[int, int], in_segments: bool = False
) -> None:
    """Disturb writes in processes with a warm JVM each, four in a store."""
    steps = 4
    writers = SparkWriters(in_segments, stores[LARGE] * steps)
    try:
        walk(tally, folder, writers, [fault], stores, steps)
    finally:
        writers.end()
