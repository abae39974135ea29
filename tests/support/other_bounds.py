"""Files whose footers say about their values what is not so, as known writers' do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_MAGIC = b"PAR1"


def change_bounds(path: Path, replaced: Mapping[bytes, bytes]) -> None:
    """Replace bounds in a parquet file's footer; those that replace one another are swapped.

    Args:
        path: the file.
        replaced: a bound as it stands there -> what stands there afterwards.
    """
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    pages, footer = data[: -8 - length], data[-8 - length : -8]
    for number, old in enumerate(replaced):
        assert _binary(old) in footer
        footer = footer.replace(_binary(old), b"\xff<%d>" % number)
    for number, new in enumerate(replaced.values()):
        footer = footer.replace(b"\xff<%d>" % number, _binary(new))
    path.write_bytes(pages + footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _binary(value: bytes) -> bytes:
    """As Thrift's compact protocol writes bytes, up to 127 of them."""
    return bytes([len(value)]) + value
