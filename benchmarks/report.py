"""Writes what a benchmark measured, as JSON and as a table for people."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, str]:
    """What the figures depend on; no names of hosts or folders."""
    versions = {name: _version(name) for name in ("pyspark", "pyarrow", "duckdb")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": f"{os.cpu_count()} cores, {platform.machine()}",
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "python": platform.python_version(),
        "java": _java(),
        **versions,
        "load": f"{os.getloadavg()[0]:.1f} before the run",
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _java() -> str:
    from ktk_engine.java.find_java import find_java

    found = find_java()
    done = subprocess.run([str(found.executable), "-version"], capture_output=True, text=True)
    return done.stderr.splitlines()[0] if done.stderr else "unknown"


def write_result(name: str, result: dict[str, Any], title: str, *tables: list[str]) -> str:
    """Write what a benchmark measured, as data and for people.

    Args:
        name: the benchmark's name, which the files get.
        result: the data; `machine` is what `machine` told before the run.
        title: what was measured, as a heading.
        *tables: lines of Markdown; an empty line goes between them.

    Returns:
        The text for people.
    """
    parts = [[f"# {title}"], [f"- {key}: {value}" for key, value in result["machine"].items()]]
    text = "\n\n".join("\n".join(lines) for lines in [*parts, *tables] if lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    return text
