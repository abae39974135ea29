"""The default memory limit of an answer in this process."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE = 4
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def default_memory_limit() -> int:
    """A quarter of the memory of this machine or container."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(memory, _container_limit() or memory) // _SHARE


def _container_limit() -> int | None:
    try:
        text = _CGROUP.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
