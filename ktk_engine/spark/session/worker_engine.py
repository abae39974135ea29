"""Whether Python workers of this machine find this package as this process does.

They do not where it is only on `sys.path`: in a notebook that added a folder, in a bundle.
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
    """Ask a new interpreter of this kind, once a process: 30 ms.

    Returns:
        Whether it imports this package, and from where this process has it.
    """
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True)
    except OSError:  # no interpreter: this one is part of another program
        return False
    return done.returncode == 0 and done.stdout.strip() == ascii(_FOLDER)
