"""Kartothek over the same files, in a process that goes on."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

from benchmarks.question import Peer, Question
from benchmarks.workload import ENRICHMENTS, ROWS_PER_VALUE, VALUES

_SCRIPT = str(Path(__file__).with_name("kartothek_process.py"))


def python_of_kartothek() -> str | None:
    """The Python of `make oracle`, None if it was not made."""
    return os.environ.get("KTK_ORACLE_PYTHON")


def build_by_kartothek(python: str, folder: Path, rows: int) -> None:
    """Let Kartothek write workload W."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [str(number) for number in (rows, ROWS_PER_VALUE, VALUES)]
    command = [python, "-I", "-W", "ignore", _SCRIPT, "build", str(folder), *numbers, *ENRICHMENTS]
    subprocess.run(command, check=True)


def kartothek(python: str, folder: Path) -> Peer:
    """Ask Kartothek's eager `query_cube`."""
    command = [python, "-I", "-W", "ignore", _SCRIPT, "ask", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    questions, answers = process.stdin, process.stdout

    def ask(question: Question) -> list[float]:
        questions.write(json.dumps(asdict(question)) + "\n")
        questions.flush()
        sums: list[float] = json.loads(answers.readline())
        return sums

    return ask
