"""A Python worker that serves several tasks does not look through its modules after each."""

from __future__ import annotations

from ktk_engine.spark.session.executors import map_in_workers

_COLUMNS = "worker long, set_aside long, looked_at long"


def test_a_worker_that_has_worked_has_set_its_modules_aside(spark):
    """The modules of pyarrow and PySpark alone hold tens of thousands of objects."""
    later = {}
    for _ in range(6):
        for row in map_in_workers(spark.range(2).coalesce(1), _describe, _COLUMNS).collect():
            later.setdefault(row.worker, []).append((row.set_aside, row.looked_at))
    served = [found[1:] for found in later.values() if len(found) > 1]
    assert served, "no worker served two tasks"
    for set_aside, looked_at in (counts for found in served for counts in found):
        assert set_aside > 10 * looked_at


def _describe(batches):
    import gc
    import os

    import pyarrow as pa

    for _ in batches:
        pass
    counts = [os.getpid(), gc.get_freeze_count(), len(gc.get_objects())]
    names = ["worker", "set_aside", "looked_at"]
    yield pa.RecordBatch.from_arrays([pa.array([count]) for count in counts], names=names)
