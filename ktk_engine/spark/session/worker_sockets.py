"""Connects Java and Spark's Python workers by Unix sockets in the scratch folder.

Over TCP each task waits some 45 ms: both sides write small pieces and hold the next one back
(Nagle's algorithm) until the other has sent its delayed acknowledgement of the last.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from uuid import UUID

_LONGEST = 103  # bytes of a socket's path: macOS takes these, Linux four more
_NAME = f".{UUID(int=0)}.sock"  # Spark and PySpark use names of this length


def worker_sockets(scratch: Path) -> dict[str, str]:
    """Give Spark 4.1's settings for Unix sockets in an absolute folder private to this user.

    Empty if a socket's path would be too long for the system, so that workers use TCP.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(scratch / _NAME)) > _LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(scratch),
    }
