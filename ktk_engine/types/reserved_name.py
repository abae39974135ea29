"""Names that are reserved for all columns or for some roles (Kartothek 5.3)."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

_FOLDER_BYTES = 255

INDEX_LABELS = "partition"
OWN_PREFIX = "__ktk_"  # of columns that the engine adds when it reads and joins


def own_name_problem(name: str) -> str | None:
    """Say why a name is not allowed for any column; None if it is."""
    if "\0" in name:
        return "names cannot hold the character NUL, at which Java and C programs cut them"
    if name.lower().startswith(OWN_PREFIX):  # Spark ignores letter case
        return f"names that begin with {OWN_PREFIX} are the engine's own, for what it adds to rows"
    return None


def name_problem(name: str, role: Literal["dimension", "partition", "index"]) -> str | None:
    """Say why a column's name is unfit for a role; None if it is not.

    Source: Kartothek 5.3.0: index files have a column `partition` for labels and reserve names that
    begin with two underscores, and folders of partitions are split at `/`.
    """
    if not name:
        return f"a {role} column needs a name, which is that of a folder"
    if name == INDEX_LABELS:
        return f"{role} columns cannot be called {name}: index files keep labels there"
    if name.startswith("__"):
        return f"a {role} column's name cannot begin with __, which index files keep for themselves"
    if role == "partition" and "/" in name:
        return "a partition column's name cannot hold /, at which the path of a file is split"
    # A value takes at least one byte in the name of its folder, `<column>=<value>`.
    most = _FOLDER_BYTES - len("=1") if role == "partition" else _FOLDER_BYTES
    if (length := len(quote(name, safe=""))) > most:
        return (
            f"a {role} column's name is that of a folder, percent-encoded: {most} bytes at most, "
            f"but this one has {length}"
        )
    return None
