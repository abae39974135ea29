"""What has to hold in a store after anything whatever has happened to a writer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ktk_engine.files.compact_segments import sorted_pairs  # deep: pairs as they are stored
from ktk_engine.format.index_file import VALUE  # deep: the stored column
from ktk_engine.format.stamp import read_stamp, stamp_is_valid  # deep: stamps by the byte
from ktk_engine.maintain.cleanup import (  # deep: what killed writers left
    delete_unfinished,
    find_unfinished,
)
from ktk_engine.maintain.problem import Problem  # deep: what check finds
from tests.faults.content import TABLE, Content
from tests.faults.read import content_of, rows_of
from tests.support.changes import Retention, publish_head, run_cleanup
from tests.support.committed import (
    Snapshot,
    State,
    check,
    cube_scope,
    digest,
    list_scopes,
    read_entries,
    resolve,
    scope_of,
    version_of,
)
from tests.support.documents import (
    common_metadata_key,
    data_key,
    document_key,
    parse_document,
    published_index_key,
    stored_index,
)
from tests.support.stores import LocalStore, ObjectStore

SCOPES = (cube_scope("c"), scope_of(TABLE))


class Broken(Exception):
    """An invariant does not hold."""


class AgedStore(LocalStore):
    """A store whose clock is a month ahead: everything in it is old."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=31)


def require(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


def found_content(store: ObjectStore) -> dict[str, tuple]:
    """The rows of all datasets; every head has to resolve."""
    found: dict[str, tuple] = {}
    for scope in SCOPES:
        found.update(content_of(resolve(store, scope)))
    return found


def versions(store: ObjectStore) -> int:
    """How many commits there are."""
    return sum(version_of(store, scope) for scope in SCOPES)


def verify(store: LocalStore, allowed: tuple[Content, ...]) -> Content:
    """Check everything that holds at any moment, also right after a kill.

    Returns:
        The content that was found, one of those that are allowed.

    Raises:
        Broken: something does not hold.
    """
    found = found_content(store)
    require(found in allowed, f"rows are neither old nor new: {found}")
    for scope in SCOPES:
        state = resolve(store, scope)
        _verify_chain(state)
        for snapshot in state.snapshots().values():
            _verify_files(store, snapshot)
        _verify_documents(state)
    for name in {scope_of(uuid).name for uuid in found}:
        problems = problems_of(store, name)
        require(not problems, f"check finds {problems}")
    return next(content for content in allowed if content == found)


def problems_of(store: ObjectStore, name: str) -> list[Problem]:
    """What `check` finds, but that a document waits for the next commit to publish it.

    A commit stands before it is published, so whatever ends a writer there leaves it so;
    `verify_published` says that it can be mended.
    """
    return [
        problem
        for problem in check(store, name).problems
        if "see an older version" not in problem.reason
    ]


def verify_published(store: LocalStore) -> None:
    """Check that the published documents say what the newest versions say."""
    for scope in SCOPES:
        require(publish_head(store, scope).warning == "", f"{scope} cannot be published")
        state = resolve(store, scope)
        require(not state.unpublished_removals, "a removed dataset is still published")
        seeds = [item for item in state.datasets.values() if item.entry.role == "seed"]
        for uuid, snapshot in state.snapshots().items():
            if scope.kind == "cube" and not seeds:
                continue
            document = parse_document(uuid, store.get(document_key(uuid)))
            require(list(document.partitions) == snapshot.labels, f"{uuid}: not the newest files")
            commit = state.datasets[uuid].entry.commit
            segmented = {n: published_index_key(uuid, n, commit) for n in snapshot.index_segments}
            indices = {**snapshot.indices, **segmented}
            require(dict(document.indices) == indices, f"{uuid}: not the indices")
            for column, key in segmented.items():
                _verify_index(store, snapshot, column, key)


def verify_cleanup(root: Path, content: Content) -> None:
    """Clean up a store in which everything is old: nothing needed goes, nothing else stays."""
    store = AgedStore(root)
    for scope in list_scopes(store):
        done = run_cleanup(store, scope, Retention(timedelta(0), 1))
        require(not done.warning, f"clean-up: {done.warning}")
    delete_unfinished(store, find_unfinished(store))
    verify(store, (content,))
    present = {info.key for info in store.list() if not info.key.startswith(".ktk/relation/")}
    unknown = present - set(_expected_keys(store))
    require(not unknown, f"clean-up left {sorted(unknown)}")
    require(not list(store.list_unfinished()), "clean-up left temporary files")


def _verify_chain(state: State) -> None:
    """Versions have no gap, no commit occurs twice, each entry names the one before."""
    commits: set[str] = set()
    parent, sha256, version, time = "", "", 0, datetime.min.replace(tzinfo=UTC)
    for entry, digest_ in read_entries(state.store, state.scope, 0):
        version += 1
        require(entry.version == version, f"{state.scope}: version {version} is missing")
        require((entry.parent, entry.parent_sha256) == (parent, sha256), f"chain at {version}")
        require(entry.commit not in commits, f"commit {entry.commit} occurs twice")
        require(entry.time > time, f"time runs backwards at {version}")
        commits.add(entry.commit)
        parent, sha256, time = entry.commit, digest_, entry.time
    require(version == state.version, f"{state.scope}: head {state.version}, log {version}")


def _verify_files(store: LocalStore, snapshot: Snapshot) -> None:
    """Every file is there in its length, and the indexes say what the files hold."""
    for key, size in zip(*snapshot.files.select(["key", "bytes"]).columns, strict=True):
        path = store.root / key.as_py()
        require(path.is_file(), f"{key} is missing")
        # Kartothek records no sizes.
        require(size.as_py() in (None, path.stat().st_size), f"{key} has another length")
    for column, key in snapshot.indices.items():
        _verify_index(store, snapshot, column, key)
    labels = dict(zip(snapshot.files["position"].to_pylist(), snapshot.labels, strict=True))
    for column, segments in snapshot.index_segments.items():
        named = {
            (pair[VALUE], labels[pair["file"]])
            for pairs in sorted_pairs(store, segments)
            for pair in pairs.to_pylist()
            if pair["file"] in labels
        }
        require(named == _pairs(store, snapshot, column), f"{column}: not what is in the files")


def _verify_index(store: LocalStore, snapshot: Snapshot, column: str, key: str) -> None:
    index = stored_index(store, key)
    named = set(zip(index[VALUE].to_pylist(), index["label"].to_pylist(), strict=True))
    require(named == _pairs(store, snapshot, column), f"{key} does not fit the files")


def _pairs(store: LocalStore, snapshot: Snapshot, column: str) -> set[tuple[object, str]]:
    """What an index has to hold; each file is read by itself."""
    place = 1 if column in ("k", "L") else 2
    return {
        (row[place], snapshot.labels[number])
        for number in range(snapshot.files.num_rows)
        for row in rows_of(store, replace(snapshot, file_table=snapshot.files.slice(number, 1)))
    }


def _verify_documents(state: State) -> None:
    """A published document is whole, and says what some version said."""
    entries = {entry.version: entry for entry, _ in read_entries(state.store, state.scope, 0)}
    for path in Path(state.store.root).glob("*.by-dataset-metadata.json"):
        uuid = path.name.partition(".")[0]
        if scope_of(uuid) != state.scope:
            continue
        data = path.read_bytes()
        json.loads(data)
        stamp = read_stamp(data)
        require(stamp is not None and stamp_is_valid(data), f"{path.name} is not whole")
        require(stamp.version in entries, f"{path.name} names version {stamp.version}")
        document = parse_document(uuid, data)
        for label, key in document.partitions.items():
            require(key == data_key(uuid, label), f"{path.name}: {label} is {key}")
            require(state.store.exists(key), f"{path.name} names {key}, which is gone")


def _expected_keys(store: ObjectStore) -> Iterator[str]:
    """What lies in a store of which only the newest versions are kept."""
    for scope in list_scopes(store):
        state = resolve(store, scope)
        yield from (scope.entry_key(version + 1) for version in range(state.version))
        yield scope.name_key
        for uuid, snapshot in state.snapshots().items():
            yield from snapshot.files["key"].to_pylist()
            yield from (*snapshot.segments, *snapshot.index_keys)
            yield common_metadata_key(uuid)
            yield document_key(uuid)
            yield scope.published_key(uuid)
            entry = state.datasets[uuid].entry
            assert entry is not None
            yield entry.snapshot
            for column in snapshot.index_segments:
                yield published_index_key(uuid, column, entry.commit)


def digests(store: ObjectStore) -> Mapping[str, str]:
    """Digests of all objects by key."""
    return {info.key: digest(store.get(info.key)) for info in store.list()}
