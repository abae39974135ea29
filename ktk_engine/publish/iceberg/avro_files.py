"""Writes Avro files, and reads those that this library has written.

Libraries read a file by the schema in it, so a few bytes that others wrote can say that they are
any number of records. Only files with the schemas of manifests are read here, whose records all
need bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from ktk_engine.errors import PublishError
from ktk_engine.format.parse_json import parse_json
from ktk_engine.publish.iceberg.avro_schemas import MANIFEST_LIST, is_manifest_schema

_SYNC = 16  # bytes after the header, and after each block
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _SYNC}},
    ],
}
# Entries that differ in nothing but the path of their file shrink to a twentieth.
_LARGEST_RATIO = 128


def render_avro(schema: dict[str, Any], records: Iterable[Any], metadata: dict[str, str]) -> bytes:
    """Render an Avro file; raises a `PublishError` if Avro cannot hold the records."""
    import fastavro

    sink = BytesIO()
    try:
        parsed = fastavro.parse_schema(schema, named_schemas={})
        fastavro.writer(sink, parsed, records, codec="deflate", metadata=metadata)
    except Exception as error:  # of Avro, or of Python where a value does not fit
        raise PublishError(f"its manifests cannot be written: {error!r}") from error
    return sink.getvalue()


def parse_avro(data: bytes) -> list[Any]:
    """The records of a manifest or manifest list; raises an error of any kind if it is neither."""
    import fastavro

    source, room = BytesIO(data), _LARGEST_RATIO * len(data)
    read: Any = fastavro.schemaless_reader
    header = read(source, _HEADER, None)
    schema = parse_json(header["meta"]["avro.schema"], "its schema")
    if schema != MANIFEST_LIST and not is_manifest_schema(schema):
        raise ValueError("its schema is not one that this library writes")
    parsed, records = fastavro.parse_schema(schema, named_schemas={}), []
    while source.tell() < len(data):
        count = read(source, "long", None)
        packed = read(source, "bytes", None)
        content = _unpacked(header["meta"]["avro.codec"], packed, room)
        room -= len(content)
        block = BytesIO(content)
        records += [read(block, parsed, None) for _ in range(count)]
        if source.read(_SYNC) != header["sync"]:
            raise ValueError("one of its blocks does not end where it should")
    return records


def _unpacked(codec: bytes, packed: bytes, room: int) -> bytes:
    """The content of a block; raises a ValueError if it has more bytes than there is room for."""
    if codec == b"null":
        return packed
    if codec != b"deflate":
        raise ValueError("its codec is not one that this library writes")
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    content = unpacker.decompress(packed, max(room, 1))
    if not unpacker.eof:
        raise ValueError(f"a block is torn, or has more than {_LARGEST_RATIO} times its bytes")
    return content
