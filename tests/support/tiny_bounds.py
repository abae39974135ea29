"""Bounds by which segments of snapshots begin, end and merge with few files."""

from __future__ import annotations

from ktk_engine.snapshot import file_segments

TINY = {"_MOST_WHOLE": 2, "_SEGMENT": 4, "_TIER": 2, "_MERGED": 3, "_REWRITTEN": 2}


def set_tiny_bounds(patch):
    """Set them for a test; `patch` is pytest's."""
    for name, value in TINY.items():
        patch.setattr(file_segments, name, value)
