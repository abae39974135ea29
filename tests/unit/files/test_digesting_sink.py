"""A file that is digested while Arrow writes it, and what an interrupt does to it."""

from __future__ import annotations

import hashlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.files import digesting_sink
from ktk_engine.files.digesting_sink import DigestingSink

TABLE = pa.table({"a": ["größe", "", None, "%="], "b": [1, 2, 3, 4]})


class InterruptAt:
    """Raises at the n-th thing that the sink's code does, as a signal does; see `sys.settrace`."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename != digesting_sink.__file__:
            return None
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        return self


def written(path, interrupt):
    with pa.OSFile(str(path), "wb") as file:
        sink = DigestingSink(file)
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            pq.write_table(TABLE, pa.PythonFile(sink, mode="w"))
        finally:
            sys.settrace(before)
        return sink.digest()


def test_what_is_written_is_digested(tmp_path):
    digest = written(tmp_path / "f", None)
    data = (tmp_path / "f").read_bytes()
    assert digest.size == len(data)
    assert hashlib.sha256(data).digest().startswith(digest.digest)
    assert pq.read_table(tmp_path / "f").equals(TABLE)


def test_an_interrupt_stays_one_wherever_it_comes(tmp_path):
    """Arrow asks the file things where it swallows what Python raises."""
    never = InterruptAt(0)
    written(tmp_path / "f", never)
    assert never.count > 20
    for at in range(1, never.count + 1):
        with pytest.raises(KeyboardInterrupt):
            written(tmp_path / "f", InterruptAt(at))
