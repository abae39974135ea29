import json
import time
from datetime import UTC, datetime, timedelta, timezone

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import DatasetNotFoundError, FormatError, InvalidKeyError
from ktk_engine.format.dataset_key import (
    common_metadata_key,
    data_key,
    document_key,
    index_key,
    msgpack_document_key,
)
from ktk_engine.format.document import (
    DatasetDocument,
    parse_document,
    render_document,
    render_partitions,
    render_stamped,
)
from ktk_engine.format.load_document import list_documents, load_document
from ktk_engine.format.stamp import Stamp, read_stamp, stamp_is_valid
from tests.support.stores import LocalStore

# Literal from Kartothek 5.3.0.
SEED = (
    b'{"dataset_metadata_version": 4, "dataset_uuid": "geo++seed", "indices": {"tier": '
    b'"geo++seed/indices/tier/2026-11-21T13%3A00%3A29.270743.by-dataset-index.parquet"}, '
    b'"metadata": {"creation_time": "2026-11-21T13:00:29.220224", "source": "db \\u00fc", '
    b'"ktk_cube_is_seed": true}, "partitions": {"country=U%20K/42d1": {"files": {"table": '
    b'"geo++seed/table/country=U%20K/42d1.parquet"}}, "country=DE/42d1": {"files": {"table": '
    b'"geo++seed/table/country=DE/42d1.parquet"}}}, "partition_keys": ["country"]}'
)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


def content(**changes):
    top = {
        "dataset_metadata_version": 4,
        "dataset_uuid": "u",
        "metadata": {},
        "partitions": {"a": {"files": {"table": "u/table/a.parquet"}}},
        "partition_keys": [],
    }
    top.update(changes)
    return json.dumps({k: v for k, v in top.items() if v is not ...}).encode()


def test_kartotheks_document():
    document = parse_document("geo++seed", SEED)
    assert document.partition_keys == ("country",)
    assert list(document.partitions) == ["country=U%20K/42d1", "country=DE/42d1"]
    assert document.partitions["country=DE/42d1"] == "geo++seed/table/country=DE/42d1.parquet"
    assert list(document.indices) == ["tier"]
    assert document.metadata["source"] == "db ü"
    assert document.stamp is None
    assert read_stamp(SEED) is None
    assert not stamp_is_valid(SEED)
    assert render_document(document) == SEED


def stamped(document, version, commit):
    labels, keys = (pa.chunked_array([list(part)], pa.string()) for part in _columns(document))
    partitions = render_partitions(labels, keys, document.table)
    return render_stamped(document, partitions, version, commit)


def _columns(document):
    return document.partitions.keys(), document.partitions.values()


@settings(deadline=None)
@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5),
    st.sampled_from(["table", 'a"b', "ü\\"]),
    st.integers(1, 3),
)
def test_files_are_rendered_as_python_does(partitions, table, rows):
    document = DatasetDocument("u", ("p",), partitions, table=table)
    plain = json.loads(stamped(document, 1, "c"))
    del plain["ktk_commit"]
    labels, keys = (pa.chunked_array([list(part)], pa.string()) for part in _columns(document))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ktk_engine.format.document._ROWS", rows)
        rendered = b"".join(render_partitions(labels, keys, table))
    expected = {label: {"files": {table: key}} for label, key in partitions.items()}
    assert rendered == json.dumps(expected).encode()
    assert plain["partitions"] == expected


def test_stamp():
    data = stamped(parse_document("geo++seed", SEED), 42, 'c"1')
    document = parse_document("geo++seed", data)
    assert data.startswith(b'{"ktk_commit": {"version": 42, ')
    assert read_stamp(data[:1024]) == document.stamp
    assert document.stamp.version == 42
    assert document.metadata["ktk_base"] == '42:c"1'
    assert stamp_is_valid(data)
    assert render_document(document) == data
    assert not stamp_is_valid(data.replace(b"DE", b"DF"))
    assert not stamp_is_valid(data + b" ")
    again = stamped(document, 43, "c2")
    assert stamp_is_valid(again)
    assert parse_document("geo++seed", again).metadata["ktk_base"] == "43:c2"


def test_what_another_program_makes_of_a_stamped_document():
    rewritten = json.loads(stamped(parse_document("geo++seed", SEED), 1, "c"))
    del rewritten["ktk_commit"]
    data = json.dumps(rewritten).encode()
    assert read_stamp(data) is None
    assert parse_document("geo++seed", data).metadata["ktk_base"] == "1:c"


@pytest.mark.parametrize(
    "data",
    [
        b'{"ktk_commit": {"version": 1, "commit_id"',
        b'{"ktk_commit": {"version": "1", "commit_id": "c", "sha256": "s"}, ',
        b'{"ktk_commit": {"version": true, "commit_id": "c", "sha256": "s"}, ',
        b'{"ktk_commit": 5, ',
    ],
)
def test_damaged_stamps(data):
    with pytest.raises(FormatError):
        read_stamp(data)


def test_a_stamp_is_read_through_other_white_space():
    data = b'{\n "ktk_commit" : {"version": 1, "commit_id": "c", "sha256": "s"},\n "x": "\xc3'
    assert read_stamp(data) == Stamp(1, "c", "s")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        content(dataset_metadata_version=3),
        content(dataset_metadata_version=5),
        content(dataset_metadata_version=...),
        content(dataset_uuid="v"),
        content(dataset_uuid=...),
        content(partitions=[]),
        content(partitions={"a": 1}),
        content(partitions={"a": {}}),
        content(partitions={"a": {"files": {"table": 1}}}),
        content(partitions={"a": {"files": {"table": "v/table/a.parquet"}}}),
        content(partitions={"a": {"files": {"table": "u/../v/a.parquet"}}}),
        content(partitions={"a": {"files": {"table": "/u/a.parquet"}}}),
        content(partitions={"a": {"files": {"../evil": "u/table/a.parquet"}}}),
        content(partitions={"a": {"files": {"x/y": "u/table/a.parquet"}}}),
        content(partitions=...),
        content(partition_keys="p"),
        content(partition_keys=[1]),
        content(metadata=[]),
        content(indices=[]),
        content(indices={"x": "../x.parquet"}),
        content(indices={"x": "v.x.by-dataset-index.parquet"}),
        content(indices={"x": "u./x.by-dataset-index.parquet"}),
        content(indices={"x": {"1": "a"}}),
        content(indices={"x": 5}),
    ],
)
def test_bad_documents(data):
    with pytest.raises(FormatError):
        parse_document("u", data)


def test_several_tables_are_refused_by_name():
    files = {"core": "u/core/a.parquet", "helper": "u/helper/a.parquet"}
    with pytest.raises(FormatError, match="core, helper"):
        parse_document("u", content(partitions={"a": {"files": files}}))
    one = {"a": {"files": {"core": "u/core/a.parquet"}}, "b": {"files": {}}}
    document = parse_document("u", content(partitions=one))
    assert (document.table, document.partitions) == ("core", {"a": "u/core/a.parquet"})
    assert b'{"core": "u/core/a.parquet"}' in render_document(document)


def test_old_forms():
    indices = {"x": "u.x.by-dataset-index.parquet", "y": {"1": ["a"], "2": ["a", "b"]}}
    document = parse_document("u", content(indices=indices, metadata=...))
    assert document.indices == {"x": "u.x.by-dataset-index.parquet"}
    assert document.embedded_indices == {"y": {"1": ("a",), "2": ("a", "b")}}
    assert json.loads(render_document(document))["indices"] == indices
    partitions = {"p%20=1/q=x/a": {"files": {"table": "u/table/p%20=1/q=x/a.parquet"}}}
    derived = parse_document("u", content(partitions=partitions, partition_keys=...))
    assert derived.partition_keys == ("p ", "q")


def test_the_value_x_slash_of_kartothek():
    """Its local store collapses the two slashes; the label still knows the value."""
    label = "p=x//a"
    partitions = {label: {"files": {"table": f"u/table/{label}.parquet"}}}
    document = parse_document("u", content(partitions=partitions, partition_keys=["p"]))
    assert document.partitions == {label: "u/table/p=x/a.parquet"}


def test_implicit_partitions(store):
    store.put(document_key("u"), content(partitions=..., partition_keys=["p"]))
    for name in ["table/p=1/a.parquet", "table/p=2/a.parquet", "table/_common_metadata"]:
        store.put(f"u/{name}", b"")
    store.put("u/indices/x/1.by-dataset-index.parquet", b"")
    store.put("u2/table/p=3/a.parquet", b"")
    document = load_document(store, "u")
    assert document.partitions == {
        "p=1/a": "u/table/p=1/a.parquet",
        "p=2/a": "u/table/p=2/a.parquet",
    }
    store.put("u/table/b.parquet", b"")
    with pytest.raises(FormatError, match="depths"):
        load_document(store, "u")


def test_without_files(store):
    store.put(document_key("u"), content(partitions={}))
    assert load_document(store, "u").table == "table"
    store.put("u/core/_common_metadata", b"")
    assert load_document(store, "u").table == "core"
    store.put("u/other/_common_metadata", b"")
    with pytest.raises(FormatError, match="core, other"):
        load_document(store, "u")


def packed(data):
    return pa.compress(data, codec="zstd", asbytes=True)


def test_msgpack(store):
    store.put(msgpack_document_key("u"), packed(msgpack.packb(json.loads(content()))))
    assert load_document(store, "u") == parse_document("u", content())
    store.put(document_key("u"), content(metadata={"json": "wins"}))
    assert load_document(store, "u").metadata == {"json": "wins"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zstd",
        packed(b"\xc1"),
        packed(b""),
        packed(msgpack.packb({1: 2})),
        packed(msgpack.packb(msgpack.ExtType(1, b"x"))),
        packed(b"\x92\x01"),
        packed(b"\x01\x01"),
    ],
)
def test_bad_msgpack(store, data):
    store.put(msgpack_document_key("u"), data)
    with pytest.raises(FormatError):
        load_document(store, "u")


def test_a_bomb_is_not_unfolded(store):
    store.put(msgpack_document_key("u"), packed(b"\x00" * 100_000_000))
    with pytest.raises(FormatError, match="of dataset 'u' has more than"):
        load_document(store, "u")


def test_discovery(store):
    for uuid in ["geo++b", "geo++a", "plain"]:
        store.put(document_key(uuid), b"")
    for uuid in ["geo++a", "geo++c"]:
        store.put(msgpack_document_key(uuid), b"")
    for key in ["geo++d/x.by-dataset-metadata.json", "a b.by-dataset-metadata.json", "x.json"]:
        store.put(key, b"")
    assert list_documents(store) == ["geo++a", "geo++b", "geo++c", "plain"]
    assert list_documents(store, "geo++") == ["geo++a", "geo++b", "geo++c"]
    assert list_documents(store, "geo++a.") == []
    with pytest.raises(DatasetNotFoundError, match="'nothing'"):
        load_document(store, "nothing")
    with pytest.raises(InvalidKeyError):
        load_document(store, "a b")


def test_keys():
    assert document_key("u") == "u.by-dataset-metadata.json"
    assert data_key("u", "p=%2F/x_00001") == "u/table/p=%2F/x_00001.parquet"
    assert common_metadata_key("u") == "u/table/_common_metadata"
    moment = datetime(2026, 11, 21, 12, 29, 28, 864297, tzinfo=UTC)
    expected = "u/indices/a%20b/2026-11-21T12%3A29%3A28.864297-c1.by-dataset-index.parquet"
    assert index_key("u", "a b", moment, "c1") == expected
    shifted = moment.astimezone(timezone(timedelta(hours=2)))
    assert index_key("u", "a b", shifted, "c1") == expected
    with pytest.raises(InvalidKeyError):
        data_key("u", f"p={'x' * 254}/a")
    with pytest.raises(InvalidKeyError):
        data_key("../u", "a")


def test_a_hundred_thousand_partitions():
    partitions = {f"p={i}/{i:032x}": f"u/table/p={i}/{i:032x}.parquet" for i in range(100_000)}
    document = DatasetDocument("u", ("p",), partitions)
    start = time.perf_counter()
    data = render_document(document)
    parsed = parse_document("u", data)
    # Far above what it takes: a guard against quadratic work, not a benchmark.
    assert time.perf_counter() - start < 10
    assert parsed == document
