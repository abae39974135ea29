"""Lets a process die, or something be raised, at the n-th call of the system by the store."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import Any, Literal

Fault = Literal["kill", "KeyboardInterrupt", "SystemExit", "ENOSPC", "EIO", "EACCES"]
_CHANGES = ("write", "link", "rename", "fsync", "unlink", "mkdir", "rmdir")
_READS = ("open", "pread", "stat")


def _no_sync(descriptor: int) -> None:
    """What a killed process wrote is there without it; only a power loss would tell."""


class Trap:
    """Counts calls of the system, and springs at one of them.

    Attributes:
        calls: how many calls there were.
    """

    def __init__(self, fault: Fault, at: int, after: bool) -> None:
        """Set the trap for this process; only for one that ends soon.

        Args:
            fault: what happens: SIGKILL, an exception, or an error of the system.
            at: number of the call, from 1; 0 only counts.
            after: do the call first; of a write that is to fail, half.
        """
        self.calls = 0
        self._fault, self._at, self._after = fault, at, after
        # Anyone who dies while reading has changed nothing; only errors matter there.
        for name in _CHANGES + (_READS if fault in ("ENOSPC", "EIO", "EACCES") else ()):
            call = getattr(os, name) if name != "fsync" else _no_sync
            setattr(os, name, self._wrapped(name, call))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def trapped(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls != self._at:
                return call(*args, **kwargs)
            if name == "write" and self._after:
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            elif self._after and self._fault in ("kill", "KeyboardInterrupt", "SystemExit"):
                call(*args, **kwargs)
            return self._spring(name)

        return trapped

    def _spring(self, name: str) -> None:
        if self._fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "KeyboardInterrupt":
            raise KeyboardInterrupt
        if self._fault == "SystemExit":
            raise SystemExit(1)
        number = getattr(errno, self._fault)
        raise OSError(number, os.strerror(number))
