"""Manifests: folders that make Spark read exactly the files they name.

See docs/design/reading.md, Manifests.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path

from ktk_engine.temporary_files import temporary_files


def write_manifest(folder: Path, uris: Sequence[str], sizes: Sequence[int]) -> Path:
    """Write a manifest as a streaming sink's log, and give its folder for Spark's parquet source.

    Spark's file sources read such a log instead of listing the folder. Batch 9 is a compaction
    batch: a complete list of files. URIs are percent-encoded once; a wrong size in bytes breaks
    reading.
    """
    manifest = folder / uuid.uuid4().hex
    lines = ["v1"]
    lines += [
        json.dumps(
            {
                "path": uri,
                "size": size,
                "isDir": False,
                "modificationTime": 0,
                "blockReplication": 1,
                "blockSize": 134217728,
                "action": "add",
            }
        )
        for uri, size in zip(uris, sizes, strict=True)
    ]
    with temporary_files(f"The temporary file {manifest} cannot be written"):
        log = manifest / "_spark_metadata"
        log.mkdir(parents=True)
        (log / "9.compact").write_text("\n".join(lines), encoding="utf-8")
    return manifest
