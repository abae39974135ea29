"""A terminal that cannot show every letter."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa

from ktk_engine import Store


def test_a_terminal_that_lacks_a_letter(tmp_path):
    """A sign that it cannot show is a question mark, and no traceback."""
    Store(tmp_path / "s").write_table("t", pa.table({"a": ["Łódź"]}))
    command = [sys.executable, "-c", "from ktk_engine.cli.main import main; main()"]
    done = subprocess.run(
        [*command, "--store", str(tmp_path / "s"), "query", "t"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=False,
    )
    assert (done.returncode, b"Error" in done.stderr) == (0, False)
    assert b"??d?" in done.stdout
