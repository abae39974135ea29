"""A server that is killed at any moment of appends and merges.

Only `make test-faults` runs them (KTK_FAULTS=large).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.connect.client import change
from tests.faults.scale import LARGE, cases
from tests.servers.connect import ConnectServer
from tests.servers.spark_processes import wait_for

pytestmark = pytest.mark.skipif(not LARGE, reason="takes minutes: make test-faults")

KILLS = 50


def start(server, folder):
    """Start a client that changes the table until it fails."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.connect.client"]
    with folder.with_suffix(".out").open("w") as said:
        return subprocess.Popen(
            [*program, "changes", server.url, folder],
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": os.path.dirname(sys.executable)},
        )


def rows_after(number):
    """The rows after the first changes, `number` of them, as x -> v."""
    found = {}
    for n in range(1, number + 1):
        first, last, _ = change(n)
        found |= dict.fromkeys(range(first, last), n)
    return found


def test_what_was_said_to_be_committed_is_there_and_nothing_by_half(tmp_path):
    folder, said = tmp_path / "store", tmp_path / "store.out"
    empty = pa.schema([("x", pa.int64()), ("v", pa.int32()), ("p", pa.int64())]).empty_table()
    Store(folder).write_table("t", empty, partition_by=["p"], indexes=["x"])
    number = unsaid = 0
    with ConnectServer(tmp_path / "server") as server:
        for case, chance in cases("kills", 0, KILLS):
            folder.with_suffix(".number").write_text(str(number))
            client = start(server, folder)
            lines = chance.randint(1, 4)  # `begins`, and changes: the first one starts Python there
            wait_for(lambda lines=lines: len(said.read_text().split()) >= lines)
            with pytest.raises(subprocess.TimeoutExpired):
                client.wait(chance.uniform(0, 1.5))
            server.kill()
            assert client.wait(120) == 0, said.read_text()
            *acknowledged, last = said.read_text().splitlines()[1:]
            error = json.loads(last)
            assert error["kind"] == "SessionError", (case, error)
            assert "no longer answers" in error["error"], (case, error)
            assert "\n" not in error["error"], (case, error)
            least = int(acknowledged[-1]) if acknowledged else number
            table = Store(folder).table("t")
            rows = table.query().to_arrow()
            found = dict(zip(rows["x"].to_pylist(), rows["v"].to_pylist(), strict=True))
            assert len(found) == rows.num_rows, case
            number = max(found.values(), default=0)
            assert least <= number <= least + 1, case
            assert found == rows_after(number), case
            assert not table.check(deep=True)["problems"], case
            unsaid += number > least
            server.start()
    print(f"{number} changes, {unsaid} of them committed when the server died")
