"""Secondary indexes as other programs read them: one file per column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import ObjectExistsError
from ktk_engine.files.compact_segments import sorted_pairs
from ktk_engine.files.index_segment_file import FILE
from ktk_engine.format.dataset_key import published_index_key
from ktk_engine.format.index_file import VALUE, build_index, render_index
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

# An index file with this many pairs has about 10 MB.
PUBLISHED_PAIRS = 500_000


def published_indices(store: ObjectStore, snapshot: Snapshot, commit_id: str) -> dict[str, str]:
    """Keys of index files in Kartothek's form by column; those of segments are written now.

    `commit_id` is the commit of the dataset's log entry. Columns that are `too_large` are left out.
    """
    found = dict(snapshot.indices)
    large = too_large(snapshot)
    for name, segments in snapshot.index_segments.items():
        if name in large:
            continue
        found[name] = key = published_index_key(snapshot.uuid, name, commit_id)
        if not store.exists(key):
            index = _joined(store, snapshot, name, segments)
            data = render_index(name, index, large=name in snapshot.large_columns)
            with suppress(ObjectExistsError):  # another publisher has written the same
                store.put_if_absent(key, data)
    return found


def too_large(snapshot: Snapshot) -> tuple[str, ...]:
    """Indexed columns without an index for Kartothek: each commit would rewrite all pairs."""
    pairs = {
        name: sum(item.pairs for item in items) for name, items in snapshot.index_segments.items()
    }
    return tuple(name for name, count in pairs.items() if count > PUBLISHED_PAIRS)


def _joined(
    store: ObjectStore, snapshot: Snapshot, name: str, segments: Sequence[IndexSegment]
) -> pa.Table:
    """The index of the files that still exist."""
    positions = snapshot.file_column("position").combine_chunks()
    alive = living(positions, snapshot.next_number)
    labels = snapshot.file_column("label").combine_chunks()
    parts = []
    for pairs in sorted_pairs(store, segments, alive):
        at = pc.index_in(pairs[FILE].combine_chunks(), value_set=positions)
        named = pa.DictionaryArray.from_arrays(at, labels)
        parts.append(pa.table({VALUE: pairs[VALUE], "label": named}))
    if not parts:
        t = snapshot.schema.field(name).type
        return build_index(pa.array([], t), pa.array([], pa.string()))
    joined = pa.concat_tables(parts)
    return build_index(joined[VALUE], joined["label"])
