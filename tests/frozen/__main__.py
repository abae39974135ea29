"""`python -m tests.frozen`: rebuilds the frozen store, and records the rows that readers must find.

Only until the first release: from then on, users have stores like the one that this would replace.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.frozen.contents import by_library, pack, record
from tests.frozen.make_store import make_store

if __name__ == "__main__":
    os.environ["LOGNAME"] = "someone"  # whom the log names
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder, "warehouse")
        make_store(warehouse)
        record(by_library(warehouse))
        pack(warehouse)
