"""Reads the rows that a rewrite finds into this process, in the types that they have in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ktk_engine.change.stage import Rewrite
from ktk_engine.write.small_files import small_rows, types_in_spark


def old_types(rewrite: Rewrite) -> pa.Schema:
    """The old columns that are stored on, in the types in which Spark would give them."""
    return types_in_spark(rewrite.base.schema, rewrite.kept)


def old_rows(rewrite: Rewrite, files: pa.Table, names: Sequence[str]) -> pa.Table:
    """Read the rows of some files that readers see; see `small_rows`.

    Args:
        rewrite: the dataset.
        files: small files of its table of files, or none.
        names: the columns to give.
    """
    part, scanner = replace(rewrite.base, files=files), rewrite.scanner
    version = rewrite.write.state.version
    return small_rows(scanner.store, scanner.footers, part, version, names)
