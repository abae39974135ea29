"""`python -m tests.frozen`: makes the frozen store anew, and records what must be read of it.

For the time before the first release alone: from then on a store that this would replace lies with
users.
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
