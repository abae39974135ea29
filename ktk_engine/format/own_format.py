"""The format number of every document that this library writes, and what other versions do.

See docs/design/files-and-commits.md, Versions of the library.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ktk_engine.errors import UnsupportedFormatError
from ktk_engine.messages import Message, Remedy

FORMAT = 8  # those below were written before the first release
_KNOWN: frozenset[str] = frozenset()  # what documents may need


def with_format(document: Mapping[str, Any]) -> dict[str, Any]:
    """Say which format a document has, and what its readers and writers must know."""
    return {"format": FORMAT, "needs": [], **document}


def check_format(document: Mapping[str, Any], what: str) -> None:
    """Raise an `UnsupportedFormatError` unless this version understands a document.

    `what` is for messages. Raises a `KeyError`, `TypeError` or `ValueError` for damage.
    """
    number = int(document["format"])
    if number < FORMAT:
        raise UnsupportedFormatError(
            f"{what} has format {number}, which only versions before the first release wrote. This "
            "version does not read it, and nothing was changed. Build its cube or table in a new "
            "store."
        )
    if number > FORMAT:
        raise UnsupportedFormatError(
            Message(
                f"{what} has format {number}; this version reads format {FORMAT}. ",
                Remedy("upgrade"),
            )
        )
    if unknown := sorted({str(need) for need in document["needs"]} - _KNOWN):
        raise UnsupportedFormatError(
            Message(
                f"{what} needs features that this version does not know: {', '.join(unknown)}. ",
                Remedy("upgrade"),
            )
        )


def others_of(document: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The keys that only later versions know, which a writer keeps."""
    named = {"format", "needs", *known}
    return {key: value for key, value in document.items() if key not in named}
