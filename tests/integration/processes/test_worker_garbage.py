"""When a worker sets aside what its garbage collector need not look at."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WORKER = """
import gc, sys, types, weakref
from ktk_engine.spark.session.worker_modules import freeze_imports

class Node:
    def __init__(self):
        self.itself = self

gc.disable()
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "freeze_imports()\n"
            "before = gc.get_freeze_count()\n"
            "kept = [[] for _ in range(1000)]\n"
            "freeze_imports()\n"
            "assert gc.get_freeze_count() <= before",
            id="not-again-without-new-modules",
        ),
        pytest.param(
            "freeze_imports()\n"
            "before = gc.get_freeze_count()\n"
            "sys.modules['imported_later'] = types.ModuleType('imported_later')\n"
            "kept = [[] for _ in range(1000)]\n"
            "freeze_imports()\n"
            "assert gc.get_freeze_count() >= before + 1000",
            id="again-with-new-modules",
        ),
        pytest.param(
            "garbage = weakref.ref(Node())\n"
            "assert garbage() is not None\n"
            "freeze_imports()\n"
            "assert garbage() is None",
            id="garbage-is-collected-first",
        ),
        pytest.param(
            "freeze_imports()\n"
            "later = weakref.ref(Node())\n"
            "freeze_imports()\n"
            "gc.collect()\n"
            "assert later() is None",
            id="garbage-of-later-tasks-is-collected",
        ),
    ],
)
def test_what_is_set_aside(body):
    """In a process of its own, as a worker is: what is set aside stays so."""
    code = _WORKER.format(body=body)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
