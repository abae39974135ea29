"""Whether Python workers of this machine import the same package as this process.

They do not if it is only on `sys.path`, as in a notebook that added a folder, or in a bundle.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

_ASK = "import ktk_engine; print(ascii(ktk_engine.__path__[0]))"
_FOLDER = str(Path(__file__).parents[2])


@cache
def workers_find_engine() -> bool:
    """Check in a new interpreter, once per process (30 ms), that it imports this very package."""
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True)
    except OSError:  # no interpreter: this one is embedded in another program
        return False
    return done.returncode == 0 and done.stdout.strip() == ascii(_FOLDER)
