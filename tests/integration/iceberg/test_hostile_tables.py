"""Iceberg tables with commands, addresses elsewhere, and files that explode, by a stranger."""

import json
import tracemalloc
import zlib
from io import BytesIO

import fastavro
import pytest

from ktk_engine.publish.iceberg.avro_schemas import MANIFEST_LIST, manifest_schema
from tests.integration.iceberg.stored_metadata import file_of, folder, lists, manifests
from tests.support.published_table import problem, published

MEMORY = 30 << 20
MANY = 10_000_000  # records of a few bytes


def before_reads(monkeypatch, store, action):
    """Do something before each read of a whole object, as another program may."""
    read = store.get

    def get(key):
        action(key)
        return read(key)

    monkeypatch.setattr(store, "get", get)


def test_metadata_that_change_while_they_are_checked_run_nothing(store, tmp_path, monkeypatch):
    published(store, "iceberg")
    file, marker = file_of(store, 1), tmp_path / "ran"
    metadata = json.loads(file.read_text())
    command = {"touch": "", str(marker): "", "py-io-impl": "subprocess.Popen"}
    metadata["properties"] = {**command, **metadata["properties"]}

    def swap(key):
        if key.endswith(".avro"):
            file.write_text(json.dumps(metadata))

    before_reads(monkeypatch, store, swap)
    assert problem(store) == ""
    assert not marker.exists()
    assert "changed columns or settings" in problem(store)
    assert not marker.exists()


def test_a_list_that_changes_while_it_is_checked_leads_nowhere_else(store, tmp_path, monkeypatch):
    published(store, "iceberg")
    [file], [manifest] = lists(store), manifests(store)
    away = tmp_path / manifest.name
    away.write_bytes(manifest.read_bytes())
    records = list(fastavro.reader(BytesIO(file.read_bytes())))
    moved = [{**item, "manifest_path": f"file://{away}"} for item in records]
    sink, reads = BytesIO(), []
    fastavro.writer(sink, fastavro.parse_schema(MANIFEST_LIST, named_schemas={}), moved)

    def swap(key):
        reads.append(key)
        if sum(key.endswith(manifest.name) for key in reads):  # our own check has read the list
            file.write_bytes(sink.getvalue())

    before_reads(monkeypatch, store, swap)
    assert f"{away} is not in file://" in problem(store)


@pytest.mark.parametrize(
    "address",
    [
        *("oss:evil/x.avro", "gs:evil/x.avro", "s3://evil/x.avro", "mine/y.avro", "/etc/passwd"),
        *("file:///etc/passwd", "", "{base}/../x.avro", "{base}x.avro", "FILE:{base}/t/x.avro"),
    ],
)
@pytest.mark.parametrize("place", ["list", "manifest"])
def test_an_address_elsewhere_is_refused(store, address, place):
    published(store, "iceberg")
    base = f"file://{store.root}"
    address = address.format(base=base)
    [file], [listed], [manifest] = [file_of(store, 1)], lists(store), manifests(store)
    copied = listed if place == "list" else manifest
    key = store.root / (address.removeprefix(f"{base}/") or "x")
    if ":" not in address[:6] and not address.startswith("/") and address:
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(copied.read_bytes())
    if place == "list":
        metadata = json.loads(file.read_text())
        metadata["snapshots"][0]["manifest-list"] = address
        file.write_text(json.dumps(metadata))
    else:
        records = list(fastavro.reader(BytesIO(listed.read_bytes())))
        sink = BytesIO()
        parsed = fastavro.parse_schema(MANIFEST_LIST, named_schemas={})
        fastavro.writer(sink, parsed, [{**item, "manifest_path": address} for item in records])
        listed.write_bytes(sink.getvalue())
    said = problem(store)
    assert "is not in" in said or "InvalidKeyError" in said


def number(value: int) -> bytes:
    sink = BytesIO()
    fastavro.schemaless_writer(sink, "long", value)
    return sink.getvalue()


def avro(schema, count: int, content: bytes, codec: bytes = b"null") -> bytes:
    """A file with one block."""
    sink, sync = BytesIO(), bytes(16)
    sink.write(b"Obj\x01" + number(2))
    for text in (b"avro.schema", json.dumps(schema).encode(), b"avro.codec", codec):
        sink.write(number(len(text)) + text)
    sink.write(number(0) + sync + number(count) + number(len(content)) + content + sync)
    return sink.getvalue()


def record(**fields):
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def with_partition(kind):
    """The schema of manifests, with a partition field of a type."""
    schema = manifest_schema([("p", 1000, "int")])
    partition = schema["fields"][-1]["type"]["fields"][3]["type"]["fields"][0]
    partition["type"] = ["null", kind]
    return schema


def with_status(kind):
    schema = manifest_schema([])
    schema["fields"][0]["type"] = kind
    return schema


def deflated(content: bytes) -> bytes:
    return zlib.compress(content, 9)[2:-4]


NULLS = {"type": "array", "items": "null"}
NOTHING = {"type": "fixed", "name": "f", "size": 0}
BOMBS = {
    "null": ("null", MANY, b""),
    "no fields": (record(), MANY, b""),
    "fields of null": (record(status="null", data_file="null"), MANY, b""),
    "no bytes": (record(status=NOTHING), MANY, b""),
    "an array": (NULLS, 1, number(MANY) + b"\0"),
    "a list with an array": (record(manifest_path=NULLS), 1, number(MANY) + b"\0"),
    "a manifest with an array": (with_status(NULLS), 1, number(MANY) + b"\0"),
    "a partition with an array": (with_partition(NULLS), 1, number(MANY) + b"\0"),
    "too few bytes": (manifest_schema([]), 1 << 50, b"\0" * 9),
    "deflated": (manifest_schema([]), 1 << 20, deflated(bytes(MANY * 10)), b"deflate"),
    "deflated null": ("null", MANY, deflated(b""), b"deflate"),
    "an endless record": (record(status="r"), 1, b""),
    "a record in a record": (record(next=["null", "r"]), 1, b"\2" * 10_000_000),
    "deep": (json.loads('{"type": "array", "items": ' * 60 + '"null"' + "}" * 60), 1, b"\2" * 70),
    "another codec": (MANIFEST_LIST, 1, bytes(50), b"snappy"),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("files", [lists, manifests])
def test_a_file_that_explodes_is_damaged(store, files, bomb):
    published(store, "iceberg")
    [file] = files(store)
    file.write_bytes(avro(*BOMBS[bomb]))
    tracemalloc.start()
    said = problem(store)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.name in said and "is damaged" in said
    assert peak < MEMORY
    assert folder(store).exists()
