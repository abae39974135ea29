"""CPU seconds of this process and of everything that it started: the JVM, workers, peers."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)  # fields of /proc/PID/stat after the name


def cpu_seconds() -> float:
    """Sum of the user and system time of this process and all its descendants, in seconds."""
    children: dict[int, list[int]] = defaultdict(list)
    times: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        children[int(fields[_PARENT])].append(int(folder.name))
        times[int(folder.name)] = sum(map(int, fields[_TIMES]))
    total, todo = 0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += times.get(process, 0)
        todo += children[process]
    return total / _TICKS
