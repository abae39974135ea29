"""A store as a mapping of files to contents, to compare it before and after."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def tree(root: Path) -> dict[str, str]:
    """Digest of every file below a folder, by relative path; the lock file apart."""
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root) != Path(".ktk/lock")
    }
