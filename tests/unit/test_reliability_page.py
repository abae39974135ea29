"""The page on reliability names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_every_named_test_exists():
    page = (_ROOT / "docs" / "reliability.md").read_text()
    file, missing = "", []
    named = re.findall(r"`([a-z_/]*\.py)?::(\w+)`", page)
    assert len(named) > 60
    for path, name in named:
        file = path or file
        source = _ROOT / "tests" / file
        if not source.is_file() or f"def {name}(" not in source.read_text():
            missing.append(f"{file}::{name}")
    assert not missing
