"""Tasks in Python workers meet Java in the folder that the session's settings name."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ktk_engine.spark.session.executors import map_in_workers


def test_sockets_are_where_only_this_user_comes(spark):
    folder = spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir")
    if folder is None:
        pytest.skip("this Spark has no such setting, or TMPDIR is too long for sockets")
    rows = map_in_workers(spark.range(3), _unchanged, "id long").collect()
    assert sorted(row.id for row in rows) == [0, 1, 2]
    sockets = [path for path in Path(folder).iterdir() if path.is_socket()]
    assert sockets
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700


def _unchanged(batches):
    yield from batches
