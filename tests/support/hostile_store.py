"""A store with every feature, and each text and number of its documents replaced by a hostile one.

It walks whatever the documents hold, so that a new field is walked by itself. Digests and checksums
are those that an attacker would compute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine import Store
from ktk_engine.warehouse.actor import Actor  # deep: who stored a view
from tests.support.changes import Relations
from tests.support.committed import (
    Computed,
    DatasetVersion,
    LogScope,
    cube_scope,
    resolve,
    scope_of,
    write_computed,
)
from tests.support.documents import (
    STAMP_KEY,
    Comments,
    Stamp,
    ViewDocument,
    add_stamp,
    add_view,
    digest,
)
from tests.support.stores import LocalStore, Warehouse

JINJA = "{{ env_var('HOME') }}{% set x = 1 %}{# x"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e\r"
DIGITS = "9" * 10_000
Path_ = tuple[str | int, ...]


def payloads(outside: Path) -> dict[str, str]:
    """What is put in the place of a text; whatever it does shows in the folder `outside`."""
    run = f"sh -c \"touch '{outside}/ran'; cat\""
    return {
        "command": f'select transform (1) using "{run}" as (x string)',
        "reflect": f"reflect('java.nio.file.Files', 'createFile', '{outside}/ran')",
        "jinja": JINJA,
        "cloud": "abfss://c@acct.dfs.evil.example/p",
        "address": "ktk:s3://victim/p?relation=x&version=" + DIGITS,
        "file": f"{outside}/secret",
        "up": "../../../../../../../.." + f"{outside}/secret",
        "url": "jdbc:x://u:swordfish@h",
        "escapes": f"a{ESCAPES}b",
        "digits": DIGITS,
    }


# What is put in the place of any value: other types, and numbers and texts that nobody expects.
VALUES: list[Any] = [
    *(-1, 0, 0.5, 2**31, 2**63, 2**64, 10**30, 1e308, True, None, [], {}, [[]], {"a": 1}),
    *("", "\ud800", "\0", "a/b", "..", "a" * 300, "x" * 100_000, "9999-99-99", "2020-01-01"),
    *("{" * 2_000, "[" * 2_000, "struct<" * 500, "list<item: " * 300 + "int64" + ">" * 300),
    *("decimal128(99, 99)", "decimal128(-1, 0)", "timestamp[us, tz=../../etc/passwd]", "p=%ff"),
    *("fixed_size_binary[99999999999]", "fixed_size_list<item: int64>[2147483647]", "a\\"),
    *("dictionary<values=string, indices=int8, ordered=0>", "extension<arrow.uuid>", "p=%00"),
]


def build_store(folder: Path) -> LocalStore:
    """Use every feature once; names, notes and comments hold what their rules allow."""
    warehouse = Warehouse(folder.parent)
    store = warehouse.create_schema(folder.name)
    assert isinstance(store, LocalStore)
    face = Store.of(store)
    odd = pa.array([{JINJA: 1, ESCAPES: "x"}, None])
    rows = pa.table(
        {"p": ["a", ESCAPES], "x": [1, 2], "v": [1.5, 2.5], JINJA: ["s", ESCAPES], "n": odd}
    )
    more = rows.select(["p", "x"]).append_column("w", rows[JINJA])
    datasets = {"seed": rows, "more": more}
    note = {"seed": {"note": JINJA, ESCAPES: ESCAPES}}
    face.build("c", datasets, dimension_columns=["x"], partition_by=["p"], indexes=["v"],
               metadata=note)  # fmt: skip
    plain = rows.select(["p", "x", "v"])  # other engines take no odd names
    face.write_table("t", plain, partition_by=["p"], indexes=["x"], metadata={"note": JINJA})
    face.table("t").publish("delta")
    face.table("t").publish("iceberg")
    face.table("t").tag("gold")
    face.write_table("t", plain)
    face.write_table("odd", rows, metadata={"note": ESCAPES})
    face.table("t").delete("x = 2")
    face.write_table("gone", rows)
    face.drop("gone")
    relations, actor = Relations(warehouse), Actor({"user": ESCAPES, "command": JINJA})
    said = Comments(ESCAPES, {"x": JINJA})
    relations.create_view(folder.name, "v", f"select x from {folder.name}.t", {"x": "bigint"},
                          actor, said)  # fmt: skip
    relations.comment_on(folder.name, "t", said, {"user": ESCAPES, "command": JINJA})
    add_view(store, ViewDocument("c", "cube", cube="c"))
    Store.of(warehouse.create_schema("sister")).build("c", datasets, dimension_columns=["x"],
                                                       partition_by=["p"])  # fmt: skip
    both = ViewDocument("both", "cube", cube="c", datasets=("more", "seed"),
                        external={"more": "sister"}, comments=said)  # fmt: skip
    add_view(store, both)
    note_computed(store, scope_of("t"), "t", "")
    note_computed(store, cube_scope("c"), "c++seed", "sister")
    Store.of(LocalStore(folder)).cleanup("t", older_than=timedelta(0), keep_versions=2)
    return store


def note_computed(store: LocalStore, scope: LogScope, uuid: str, elsewhere: str) -> None:
    """Note that a dataset was computed from others of its own and of another store."""
    entry = resolve(store, scope).datasets[uuid].entry
    read = (
        DatasetVersion("", "odd", 1, entry.commit, moment="version as of 1"),
        DatasetVersion(elsewhere, "c++more", 2, entry.commit, document="0" * 64),
    )
    texts = {"SQL": "0" * 16, f"view {JINJA}": ESCAPES}
    note = Computed(
        *(entry.version, entry.commit, store.now(), texts, read, {f"calls {ESCAPES}": JINJA}, True)
    )
    write_computed(store, scope, uuid, note)


def documents(store: LocalStore) -> list[str]:
    """Keys of what holds texts: JSON in any form, and the parquet files of snapshots."""
    keys = [info.key for info in store.list()]
    return sorted(key for key in keys if key.endswith((".json", ".text")) or "/snapshots/" in key)


def places(store: LocalStore, key: str) -> list[Path_]:
    """Where a document holds a text or a number, keys of mappings included."""
    found = list(_leaves(_read(store, key)))
    if key.endswith(".parquet"):  # names of columns of ours, around what is stored
        found = [p for p in found if p[0] != "key" and p[:3] != ("value", "texts", "key")]
    return found


def replace(store: LocalStore, key: str, place: Path_, value: object) -> None:
    """Put a value there, and compute again whatever vouches for the document.

    Raises an error of any kind where nothing can hold it.
    """
    content = _read(store, key)
    _put(content, place, value)
    _write(store, key, content)


def _read(store: LocalStore, key: str) -> Any:
    data = store.get(key)
    if key.endswith(".parquet"):
        table = pq.read_table(pa.BufferReader(data))
        texts = {n: table[n].to_pylist()[:2] for n in table.column_names
                 if pa.types.is_string(table[n].type)}  # fmt: skip
        return {"document": json.loads(table.schema.metadata[b"ktk"]), "texts": texts}
    if key.endswith(".text"):
        return [data.decode()]
    if "/_delta_log/" in key:
        return [json.loads(line) for line in data.splitlines()]
    content = json.loads(data)
    content.pop("sha256", None)
    return content


def _write(store: LocalStore, key: str, content: Any) -> None:
    if key.endswith(".parquet"):
        table = pq.read_table(pa.BufferReader(store.get(key)))
        for name, texts in content["texts"].items():
            column = pa.array([*texts, *table[name].to_pylist()[2:]], pa.string())
            table = table.set_column(table.schema.get_field_index(name), name, column)
        metadata = {b"ktk": json.dumps(content["document"]).encode()}
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink)
        before, data = digest(store.get(key)), sink.getvalue().to_pybytes()
        _put_bytes(store, key, data)
        _vouch(store, before, digest(data))
    elif key.endswith(".text"):
        _put_bytes(store, key, content[0].encode())
    elif "/_delta_log/" in key:
        _put_bytes(store, key, "\n".join(map(json.dumps, content)).encode())
    elif key.endswith("by-dataset-metadata.json"):
        stamp = content.pop(STAMP_KEY, None)
        body = json.dumps(content).encode()
        if isinstance(stamp, dict) and isinstance(stamp.get("version"), int):
            said = Stamp(stamp["version"], str(stamp.get("commit_id")), digest(body))
            body = add_stamp(said, [body])
        _put_bytes(store, key, body)
    elif b'"sha256": "' in store.get(key)[:16]:
        before, data = digest(store.get(key)), _checksummed(content)
        _put_bytes(store, key, data)
        _vouch(store, before, digest(data))
    else:
        _put_bytes(store, key, json.dumps(content).encode())


def _checksummed(content: Any) -> bytes:
    """With the digest that an attacker computes, and with texts that the library never writes."""
    body = json.dumps(content, indent=1).encode()
    return b'{\n "sha256": "' + digest(body).encode() + b'",' + body[1:]


def _put_bytes(store: LocalStore, key: str, data: bytes) -> None:
    (store.root / key).write_bytes(data)


def _vouch(store: LocalStore, before: str, after: str) -> None:
    """Let documents that name a digest name the new one, and so on."""
    for path in sorted((store.root / ".ktk").rglob("log/*.json")):
        data = path.read_bytes()
        if before in data.decode():
            content = json.loads(data.decode().replace(before, after))
            content.pop("sha256", None)
            path.write_bytes(_checksummed(content))
            _vouch(store, digest(data), digest(path.read_bytes()))


def _leaves(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*place, "key", key)
            yield from _leaves(item, (*place, "value", key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, number))
    elif isinstance(value, str | int | float):
        yield place


def _put(value: Any, place: Path_, text: Any) -> None:
    while True:
        first, *rest = place
        if first == "key":
            value[text] = value.pop(rest[0])
            return
        at, rest = (rest[0], rest[1:]) if first == "value" else (first, rest)
        if not rest:
            value[at] = text
            return
        value, place = value[at], tuple(rest)


# A terminal obeys these; a line feed and a tab are harmless.
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
