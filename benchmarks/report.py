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
    versions = {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow")}
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


def _java() -> str:
    from ktk_engine.spark.session.java import find_java

    found = find_java()
    done = subprocess.run([str(found.executable), "-version"], capture_output=True, text=True)
    return done.stderr.splitlines()[0] if done.stderr else "unknown"


def write_report(result: dict[str, Any]) -> str:
    """Write `query.json` and `query.md`.

    Args:
        result: machine, queries and plans, as `benchmarks.query` gives them.

    Returns:
        The table.
    """
    return write_result("query", result, _markdown(result))


def write_result(name: str, result: dict[str, Any], text: str) -> str:
    """Write what a benchmark measured, as data and for people.

    Args:
        name: the benchmark's name, which the files get.
        result: the data.
        text: the table in Markdown.

    Returns:
        The table.
    """
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    return text


def _markdown(result: dict[str, Any]) -> str:
    lines = ["# Queries", "", f"{result['rows']:,} cells in each of four datasets. Machine:", ""]
    lines += [f"- {name}: {value}" for name, value in result["machine"].items()]
    if result["queries"]:
        lines += ["", *_queries(result["queries"])]
    if result["plans"]:
        lines += ["", *_plans(result["plans"])]
    return "\n".join(lines) + "\n"


def _queries(queries: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = ["Wall-clock seconds (CPU seconds) of everybody over the same files."]
    for writer, results in queries.items():
        names = list(results[0]["seconds_and_cpu_seconds"])
        lines += ["", f"Files written by {writer}:", ""]
        lines += [f"| question | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        for item in results:
            found = item["seconds_and_cpu_seconds"]
            cells = " | ".join(f"{found[n][0]:.2f} ({found[n][1]:.2f})" for n in names)
            lines.append(f"| {item['question']} | {cells} |")
    return lines


def _plans(plans: list[dict[str, Any]]) -> list[str]:
    names = [name for name in plans[0] if name != "opened"]
    lines = [
        "Planning and committing without a JVM, four datasets of so many files each, in wall-clock "
        "seconds (CPU seconds):",
        "",
    ]
    lines += [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return lines + [f"| {' | '.join(_cell(item[n]) for n in names)} |" for item in plans]


def _cell(value: Any) -> str:
    return (
        f"{value['wall_s']:.2f} ({value['cpu_s']:.2f})" if isinstance(value, dict) else f"{value:,}"
    )
