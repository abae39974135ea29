"""Damages a file while a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Literal

Damage = Literal["flipped", "cut", "missing"]


@contextmanager
def flipped(path: Path, bit: int) -> Iterator[str]:
    """Change one bit of a file; gives which one, for messages."""
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    with _replaced(path, whole, bytes(damaged)):
        yield f"byte {bit // 8} of {len(whole)}, bit {bit % 8}"


@contextmanager
def damaged(path: Path, damage: Damage, random: Random) -> Iterator[str]:
    """Damage a file somewhere; gives where, for messages."""
    whole = path.read_bytes()
    if damage == "flipped":
        with flipped(path, random.randrange(len(whole) * 8)) as place:
            yield place
        return
    length = random.randrange(len(whole))
    with _replaced(path, whole, whole[:length] if damage == "cut" else None):
        yield f"its first {length} of {len(whole)} bytes" if damage == "cut" else "missing"


@contextmanager
def _replaced(path: Path, whole: bytes, data: bytes | None) -> Iterator[None]:
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    try:
        yield
    finally:
        path.parent.mkdir(parents=True, exist_ok=True)  # which may have gone with the file
        path.write_bytes(whole)
