"""What of a parquet file readers may not understand; Arrow's does, or says that it does not.

Spark's own reader knows what its writer and most others write. Of the rest it refuses some, and reads
some as nothing at all.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.types.type_class import is_list

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
_ANNOTATION = re.compile(r"\(([A-Za-z0-9]+)[^\n]*\)(?: \{|;)$", re.MULTILINE)
# Whether Spark reads a column of theirs, its Arrow type tells.
_ANNOTATIONS = frozenset(
    {"BSON", "Date", "Decimal", "Enum", "Float16", "Int", "JSON", "List", "Map", "String", "Time"}
    | {"Timestamp", "UUID"}
)


def unusual(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """Say what is unusual about a file; empty if nothing is.

    Args:
        metadata: its footer.
        schema: the types that Arrow gives its columns.
    """
    annotations = _ANNOTATION.findall(str(metadata.schema))
    for annotation in annotations:
        if annotation not in _ANNOTATIONS:
            return f"columns are annotated as {annotation}"
    if annotations.count("Map") != sum(_maps(field.type) for field in schema):
        return "maps are not laid out as the format says"
    groups = range(metadata.num_row_groups)
    columns = range(metadata.num_columns)
    chunks = [metadata.row_group(g).column(c) for g in groups for c in columns]
    for chunk in chunks:
        if chunk.compression not in _CODECS:
            return f"pages are compressed by {chunk.compression}"
        if not chunk.encodings and chunk.num_values:
            return f"it does not say how column `{chunk.path_in_schema}` is encoded"
    return ""


def beyond_end(metadata: pq.FileMetaData, size: int) -> str:
    """Name a column whose pages do not lie in the file, as where it was cut; empty if none.

    Spark's own reader looks for such row groups nowhere: their rows would be missing in silence.

    Args:
        metadata: the file's footer.
        size: its bytes.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            dictionary = chunk.dictionary_page_offset or chunk.data_page_offset
            start = min(dictionary, chunk.data_page_offset)
            end = start + chunk.total_compressed_size
            if not 0 <= start <= end <= size:
                return (
                    f"the pages of column `{chunk.path_in_schema}` would lie in bytes {start:,} to "
                    f"{end:,} of {size:,}"
                )
    return ""


def _maps(t: pa.DataType) -> int:
    """How many maps are in a type."""
    if pat.is_map(t):
        return 1 + _maps(t.key_type) + _maps(t.item_type)
    if pat.is_struct(t):
        return sum(_maps(field.type) for field in t)
    return _maps(t.value_type) if is_list(t) else 0
