"""Documents of a store that are hostile, damaged or too large: one error, which names them."""

from __future__ import annotations

import json
import resource
import time

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import FormatError
from ktk_engine.format import parse_json as limits
from ktk_engine.format.common_metadata import read_common_metadata
from ktk_engine.format.dataset_key import document_key, msgpack_document_key
from ktk_engine.format.index_file import read_index, read_index_groups
from ktk_engine.format.load_document import load_document
from ktk_engine.format.parse_json import parse_json
from ktk_engine.format.parse_msgpack import parse_msgpack
from ktk_engine.format.stamp import read_stamp
from ktk_engine.log.entry import parse_entry  # deep: a file with limits
from ktk_engine.log.intent import read_intents  # deep: a file with limits
from tests.support.committed import read_snapshot, scope_of
from tests.support.dataset_builder import build_table, write_plain
from tests.support.documents import parse_view
from tests.support.stores import keys

HOSTILE = {
    "duplicate key": b'{"a": 1, "b": {"c": 1, "d": 2, "c": 3}}',
    "duplicate key in other letters": b'{"a": 1, "\\u0061": 2}',
    "not a number": b'{"a": NaN}',
    "infinite": b'{"a": -Infinity}',
    "too large a float": b'{"a": 1e999}',
    "too long an integer": b'{"a": ' + b"9" * 5000 + b"}",
    "half a character": b'{"a": ["\\ud83d", "\\uDE00"]}',
    "half a character in a key": b'{"\\udfff": 1}',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "cut": b'{"a": [1, 2',
    "empty": b"",
    "rest": b"{} {}",
    "deep": b"[" * 100 + b"]" * 100,
    "very deep": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "single quotes": b"{'a': 1}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_refused_by_name(name):
    with pytest.raises(FormatError, match=r"^the thing (is|has) "):
        parse_json(HOSTILE[name], "the thing")


def test_sound_json_is_what_python_makes_of_it():
    for content in (
        {"ä": [1, 2.5, None, True, {"b": []}]},
        [],
        "text",
        2**70,
        -0.0,
        {"a": {"a": 1}},
        {"\U0001f600": "\U0001f600"},
    ):
        assert parse_json(json.dumps(content).encode(), "it") == content
    assert parse_json(b"\xef\xbb\xbf{}", "it") == {}
    assert parse_json(b"[" * 60 + b"]" * 60, "it")


@pytest.mark.parametrize(
    "name", ["duplicate key", "not a number", "half a character", "deep", "cut", "not UTF-8"]
)
def test_every_reader_of_json_refuses_it(store, name):
    data = HOSTILE[name]
    store.put(document_key("u"), data)
    with pytest.raises(FormatError, match="dataset 'u'"):
        load_document(store, "u")
    with pytest.raises(FormatError, match=r"View v\.json"):
        parse_view(data, "v.json")
    with pytest.raises(FormatError, match=r"Log entry e\.json"):
        parse_entry(data, "e.json")
    scope = scope_of("u")
    store.put(scope.intent_key("c"), data)
    with pytest.raises(FormatError, match=r"Intent \.ktk/dataset/u/intent/c\.json"):
        read_intents(store, scope)
    schema = pa.schema([("a", pa.int64())], {b"pandas": data})
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    with pytest.raises(FormatError):
        read_common_metadata(sink.getvalue().to_pybytes())
    build_table(store)
    (key,) = [key for key in keys(store, ".ktk/") if "/snapshots/" in key]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"ktk": data}), sink)
    store.put(key, sink.getvalue().to_pybytes())
    with pytest.raises(FormatError, match=f"Snapshot {key}"):
        read_snapshot(store, key)


def test_a_dataset_is_not_empty_because_a_key_came_twice(store):
    document = write_plain(store, "u", pa.table({"a": [1]}))
    data = store.get(document_key("u")).rstrip()
    store.put(document_key("u"), data[:-1] + b', "partitions": {}}')
    with pytest.raises(FormatError, match=r"dataset 'u' .*'partitions' twice"):
        load_document(store, "u")
    assert document.partitions


@pytest.mark.parametrize("body", [b'{"version": 1, "version": 2}', b"[" * 1000, b'{"version": NaN'])
def test_a_hostile_stamp_is_damaged(body):
    with pytest.raises(FormatError, match="stamp"):
        read_stamp(b'{"ktk_commit": ' + body)


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


BOMBS = {
    "zeros": b"\x00" * (200 << 20),
    "empty maps": b"\xdd" + (30_000_000).to_bytes(4, "big") + b"\x80" * 30_000_000,
    "empty lists in lists": (b"\xdc\xff\xff" + b"\x90" * 65535) * 200,
    "claims": b"\xdd\x00\x98\x96\x80" * 900,
    "deep": b"\x91" * 500 + b"\x01",
    "very deep": b"\x91" * 10_000_000,
    "twice": msgpack.packb({"a": 1})[:1].replace(b"\x81", b"\x82") + b"\xa1a\x01\xa1a\x02",
    "map of maps": b"\xdf\x00\x98\x96\x80" + b"\xa1a\x80" * 10_000_000,
    "no text": b"\x81\xa1\xff\x01",
    "extension": b"\xc7\x05\x01abcde",
    "cut": b"\x92\x01",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_of_msgpack_costs_little(store, name):
    data = zstd(BOMBS[name])
    store.put(msgpack_document_key("u"), data)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(FormatError, match="dataset 'u'"):
        load_document(store, "u")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300 << 10 and time.process_time() - start < 5


def test_what_is_compressed_without_end_is_refused():
    for data in (zstd(b"\x80")[:-3], b"no frame", b"", zstd(b"")):
        with pytest.raises(FormatError, match=r"^it"):
            parse_msgpack(data, "it")


def test_a_real_document_of_many_files_is_read(store):
    """As compressible as labels get: numbered, one after the other."""
    files = {
        f"p={i % 9}/part_{i}": {"files": {"table": f"u/table/p={i % 9}/part_{i}.parquet"}}
        for i in range(50_000)
    }
    content = {
        "dataset_metadata_version": 4,
        "dataset_uuid": "u",
        "partitions": files,
        "partition_keys": ["p"],
        "metadata": {},
    }
    store.put(msgpack_document_key("u"), zstd(msgpack.packb(content)))
    assert len(load_document(store, "u").partitions) == 50_000
    store.put(document_key("u"), json.dumps(content).encode())
    assert len(load_document(store, "u").partitions) == 50_000


def test_json_has_limits_of_size_and_count(monkeypatch):
    monkeypatch.setattr(limits, "MAX_BYTES", 1 << 20)
    with pytest.raises(FormatError, match="it has more than 1 MiB, which is the limit"):
        parse_json(b" " * (2 << 20), "it")
    with pytest.raises(FormatError, match="it has more than 12,000,000 values"):
        monkeypatch.setattr(limits, "MAX_BYTES", 100 << 20)
        parse_json(b"[" + b"[]," * 13_000_000 + b"1]", "it")


def test_an_index_file_that_unfolds_without_end():
    count = 30_000_000
    values = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), ["x"])
    offsets = pa.array([0, 1], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, ["label"])
    table = pa.table({"k": values, "partition": pa.nulls(count, lists.type)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=count, compression="zstd")
    data = sink.getvalue().to_pybytes()
    assert len(data) < 200_000
    for read in (read_index, lambda data: read_index_groups(pa.BufferReader(data))):
        with pytest.raises(FormatError, match=r"claims 30,000,000 values in row group 0"):
            read(data)
