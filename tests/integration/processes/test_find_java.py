"""Finding Java: whatever it does, the error is one of ours."""

import subprocess

import pytest

from ktk_engine.errors import SessionError
from ktk_engine.java import find_java as java


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A JAVA_HOME with an empty `java`."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path / "bin" / "java"


def test_java_that_does_not_answer(home, monkeypatch):
    def wait(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", wait)
    with pytest.raises(SessionError, match=f"{home} -version took more than 60 seconds"):
        java.find_java()


def test_java_that_may_not_be_started(home):
    with pytest.raises(SessionError, match="cannot be started"):
        java.find_java()


def test_java_that_answers_with_no_text(home):
    home.write_bytes(b"#!/bin/sh\nprintf '\\377\\376' >&2\n")
    home.chmod(0o755)
    with pytest.raises(SessionError, match="Java of unknown version"):
        java.find_java()


def test_build_class_archive_says_where_it_cannot_write(ktk, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        "ktk_engine.cli.commands.build_class_archive.archive_folder",  # deep: patched
        lambda: tmp_path / "file" / "share",
    )
    said = ktk("build-class-archive", code=1).output
    assert f"No archive can be written to {tmp_path}/file/share: Not a directory." in said
