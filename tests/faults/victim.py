"""A store with every kind of file, to be damaged one bit at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.faults.content import ENRICHMENT, SEED, TABLE, Content, Row, Verb
from tests.faults.verbs import run, table
from tests.support.committed import list_scopes, new_commit_id, resolve, scope_of
from tests.support.dataset_builder import write_plain, write_plain_nyc
from tests.support.documents import ViewDocument, add_view
from tests.support.stores import LocalStore

CUBE, VIEW, PLAIN, PLAIN_CUBE = "c", "w", "plain", "nyc"
KEYS = 25
_PLACES = ("a", "b", "c")


def build_victim(root: Path) -> LocalStore:
    """Write all of it: ours in several commits each, and as Kartothek does."""
    store, content = _ours(root, Random(7))
    sql = "select P, k, v + 1 as v from an.t where v >= 500000"
    add_view(store, ViewDocument(VIEW, "view", sql))
    note = {"operation": "build t", "heartbeat": "2026-01-01T00:00:00+00:00"}
    store.put(scope_of(TABLE).intent_key(new_commit_id()), json.dumps(note).encode())
    write_plain(store, PLAIN, table(TABLE, content[TABLE]), ("P",), indexes=("k",))
    write_plain_nyc(store)
    return store


def _ours(root: Path, random: Random) -> tuple[LocalStore, Content]:
    store = LocalStore(root)
    content: Content = {}
    for name, uuid in (
        *(("build", TABLE), ("append", TABLE), ("merge", TABLE), ("comment", TABLE)),
        *(("build", SEED), ("append", SEED), ("build", ENRICHMENT), ("overwrite", ENRICHMENT)),
        *(("append", SEED), ("compact", ENRICHMENT), ("append", ENRICHMENT)),
    ):
        verb = Verb(name, uuid, _rows(random, uuid))
        run(store, verb)
        content = verb.after(content)
    return store, content


def build_segmented(root: Path) -> tuple[LocalStore, Content]:
    """Write ours over tiny bounds, so that all is in segments; the table began as Kartothek's."""
    random = Random(8)
    store = LocalStore(root)
    content: Content = {TABLE: _rows(random, TABLE)}
    write_plain(store, TABLE, table(TABLE, content[TABLE]), ("P",), indexes=("k",))
    for name, uuid in (
        *(("append", TABLE), ("append", TABLE), ("merge", TABLE), ("append", TABLE)),
        *(("build", SEED), ("append", SEED), ("build", ENRICHMENT), ("append", ENRICHMENT)),
        *(("append", SEED), ("delete", SEED), ("append", SEED), ("append", ENRICHMENT)),
    ):
        verb = Verb(name, uuid, _rows(random, uuid)[:20], number=200_000)
        run(store, verb)
        content = verb.after(content)
    return store, content


def segment_kinds(store: LocalStore) -> dict[str, list[str]]:
    """Roots and segments that the newest versions name, by kind."""
    found: dict[str, list[str]] = {}
    for scope in list_scopes(store):
        state = resolve(store, scope)
        for uuid, snapshot in state.snapshots().items():
            entry = state.datasets[uuid].entry
            assert entry is not None
            segments = [item.key for items in snapshot.index_segments.values() for item in items]
            for kind, keys in (
                ("a root", [entry.snapshot]),
                ("a file segment", snapshot.segments),
                ("an index segment", segments),
            ):
                found.setdefault(kind, []).extend(keys)
    return found


def _rows(random: Random, uuid: str) -> tuple[Row, ...]:
    """So many that a file has more than its frame; each cell, and each key of a merge, once."""
    cells = {(random.choice(_PLACES), random.randrange(KEYS)) for _ in range(40)}
    rows = [(place, key, random.randrange(10**6)) for place, key in sorted(cells)]
    return tuple({row[1]: row for row in rows}.values()) if uuid == TABLE else tuple(rows)


def kinds(store: LocalStore) -> dict[str, list[str]]:
    """Every file that anything reads, by kind; ours, and those of Kartothek's form."""
    found: dict[str, list[str]] = {}
    needed = set(_needed(store))
    for info in store.list():
        kind = _kind(info.key, needed)
        if kind and info.size:
            found.setdefault(kind, []).append(info.key)
    return found


def _kind(key: str, needed: set[str]) -> str:
    whose = "Kartothek's" if key.startswith((PLAIN, PLAIN_CUBE + "++")) else "our"
    if key.startswith(".ktk/relation/"):
        return ""  # only its name is read
    if key.startswith(".ktk/"):
        kind = key.split("/")[-2] if "/log/" in key or "/intent/" in key else key.split("/")[1]
        kind = "snapshot" if "/snapshots/" in key else kind
        age = "" if key in needed or kind in ("intent", "view") else "old "
        return {"log": f"{age}log entry", "snapshot": f"{age}snapshot"}.get(kind, kind)
    if key.endswith("_common_metadata"):
        return f"{whose} _common_metadata"
    if key.endswith(".by-dataset-metadata.json"):
        return f"{whose} published document"
    if key not in needed:
        return ""  # superseded: nothing reads it
    return f"{whose} index file" if "/indices/" in key else f"{whose} data file"


def _needed(store: LocalStore) -> Iterator[str]:
    names = [*list_scopes(store), scope_of(PLAIN), scope_of(PLAIN_CUBE + "++flights")]
    for scope in names:
        state = resolve(store, scope)
        if state.version:
            yield scope.entry_key(state.version)
        for uuid, snapshot in state.snapshots().items():
            yield from snapshot.files["key"].to_pylist()
            yield from snapshot.indices.values()
            entry = state.datasets[uuid].entry
            if entry is not None:
                yield entry.snapshot
