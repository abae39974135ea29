"""Where Java and Spark's Python workers meet: at files in the scratch folder.

By TCP each task waits for some 45 ms: both sides write small pieces, and hold the next one back
(Nagle's algorithm) until the other has confirmed the last, which it puts off (delayed
acknowledgement).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from uuid import UUID

_LONGEST = 103  # bytes of a socket's path: macOS takes these, Linux four more
_NAME = f".{UUID(int=0)}.sock"  # of this length are Spark's and PySpark's names


def worker_sockets(scratch: Path) -> dict[str, str]:
    """Give the settings of Spark 4.1 for sockets that are files.

    Args:
        scratch: a folder of this machine that only this user may enter, absolute.

    Returns:
        Settings of Spark; none where a socket's path would be too long for the system, so that
        workers meet Java by TCP.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(scratch / _NAME)) > _LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(scratch),
    }
