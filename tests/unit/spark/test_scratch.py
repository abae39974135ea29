"""Temporary files that cannot be written are errors of ours, which name them."""

import pytest

from ktk_engine.errors import SessionError
from ktk_engine.spark.read.scan import write_manifest
from ktk_engine.spark.session.scratch import make_scratch_folder


def test_no_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(SessionError, match=r"No temporary folder .*set TMPDIR"):
        make_scratch_folder()


def test_a_manifest_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match=r"temporary file .* cannot be written: Not a directory"):
        write_manifest(tmp_path / "file", ["file:///a"], [1])
