"""Reads the entries of a log; each names the digest of the one before, and that is verified."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ktk_engine.errors import ConsistencyError, FormatError, ObjectNotFoundError
from ktk_engine.format.stamp import digest
from ktk_engine.log.entry import LogEntry, parse_entry
from ktk_engine.log.scope import LogScope
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import folded

_THREADS = 16
_PAGE = 1_000  # names that a store lists in one request
_PROBES = 16  # entries probed at once
_NAME = re.compile(r"[0-9]{20}\.json")


@dataclass(frozen=True)
class Link:
    """One version of a log, and what is wrong with it."""

    version: int
    key: str
    entry: LogEntry | None  # None if it cannot be read
    problem: str = ""  # what is wrong with its file; empty if nothing is


def logged_versions(store: ObjectStore, scope: LogScope, since: int = 0) -> list[int]:
    """List the versions from `since` on that have an entry, in order, with one shallow listing."""
    folder, _, first = scope.entry_key(since).rpartition("/")
    names = store.list_names(folder, since=first if since > 0 else "")
    return [int(name[:-5]) for name in names if _NAME.fullmatch(name)]


def newest_version(store: ObjectStore, scope: LogScope, since: int = 0) -> int:
    """Find the newest version from the known version `since` on; 0 if there is none.

    A listing takes a request for each thousand versions, so a long log is not listed from its
    start. Entries are probed until few can come after one of them. Only those are listed.
    """
    if store.is_remote and not since:
        folder = scope.entry_key(0).rpartition("/")[0]
        names = store.list_names(folder, at_most=_PAGE)
        found = [int(name[:-5]) for name in names if _NAME.fullmatch(name)]
        if len(names) < _PAGE:
            return found[-1] if found else 0
        since = _near_the_end(store, scope, found[-1]) if found else 0
    versions = logged_versions(store, scope, since)
    return versions[-1] if versions else 0


def _near_the_end(store: ObjectStore, scope: LogScope, low: int) -> int:
    """Find a version at or after `low`, which exists, that few others can follow.

    Where an entry is missing, it finds an earlier version, and the caller lists more.
    """
    high: int | None = None
    while high is None or high - low > _PAGE:
        if high is None:
            probes = [low + (_PAGE << doubled) for doubled in range(_PROBES)]
        else:
            step = -(-(high - low) // _PROBES)
            probes = [*range(low + step, high, step)]
        there = ask_all(store, lambda n: store.exists(scope.entry_key(n)), probes)
        for version, is_there in zip(probes, there, strict=True):
            if not is_there:
                high = version
                break
            low = version
    return low


def read_entry(store: ObjectStore, scope: LogScope, version: int) -> tuple[LogEntry, str]:
    """Read one entry, with its digest.

    Raises an `ObjectNotFoundError` if this version has none, and a `FormatError` if it is damaged
    or belongs to another version or log; a `ConsistencyError` if only letter case tells the log's
    name from the wanted one, on a file system that ignores it.
    """
    key = scope.entry_key(version)
    data = store.get(key)
    entry = parse_entry(data, key)
    if entry.scope != str(scope) and folded(entry.scope) == folded(str(scope)):
        other = entry.scope.partition("/")[2]
        raise ConsistencyError(
            f"{scope.name} and {other} are one name in {store.url}, whose file system ignores "
            f"letter case. Nothing was written. Spell it {other}, or choose another name."
        )
    if entry.version != version or entry.scope != str(scope):
        raise FormatError(
            f"Log entry {key} of {store.url} is version {entry.version} of {entry.scope}: another "
            "entry has taken its place. Restore it from a backup of the store."
        )
    return entry, digest(data)


def read_entries(
    store: ObjectStore,
    scope: LogScope,
    after: int,
    until: int | None = None,
    parent_sha256: str | None = None,
) -> Iterator[tuple[LogEntry, str]]:
    """Read the entries after a version in order, each with its digest, until one is missing.

    Raises a `FormatError` if an entry is damaged, missing up to `until`, or not built on the one
    before it. `parent_sha256` is the digest of entry `after`, if known.
    """
    version = after + 1
    while until is None or version <= until:
        try:
            entry, sha256 = read_entry(store, scope, version)
        except ObjectNotFoundError as error:
            if until is None:
                return
            raise FormatError(missing_entry(store, scope, version)) from error
        if parent_sha256 is not None and entry.parent_sha256 != parent_sha256:
            raise FormatError(_exchanged(store, scope, version - 1))
        yield entry, sha256
        parent_sha256 = sha256
        version += 1


def read_chain(
    store: ObjectStore, scope: LogScope, first: int, last: int, head_sha256: str = ""
) -> list[Link]:
    """Read the entries from `first` to `last` in parallel and judge each; one link per version.

    `head_sha256` is the digest that entry `last` must have, if known.
    """
    versions = range(max(first, 1), last + 1)
    if not versions:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(versions))) as pool:
        read = list(pool.map(lambda version: _read_link(store, scope, version), versions))
    expected = head_sha256
    links: list[Link] = []
    for link, sha256 in reversed(read):
        if link.entry is not None and expected and sha256 != expected:
            problem = _exchanged(store, scope, link.version)
            link = Link(link.version, link.key, None, problem)
        links.append(link)
        expected = link.entry.parent_sha256 if link.entry is not None else ""
    return links[::-1]


def break_of(links: Sequence[Link]) -> str:
    """Describe the newest broken link; empty if none is broken."""
    return next((link.problem for link in reversed(links) if link.problem), "")


def missing_entry(store: ObjectStore, scope: LogScope, version: int) -> Message:
    """The message that an entry is missing, and what to do."""
    return Message(
        f"Log entry {scope.entry_key(version)} of {store.url} is missing, but version {version} "
        "was committed. Restore it from a backup of the store. To see what else is damaged: ",
        Remedy("check", name=scope.name),
    )


def refuse_gap(store: ObjectStore, scope: LogScope, head: int) -> None:
    """Raise a `FormatError` if an entry exists beyond the free slot after the head.

    The log has then lost the entry in between, and a commit there would hide the loss.
    """
    later = logged_versions(store, scope, head + 1)
    if later and later[0] != head + 1:
        gap = missing_entry(store, scope, head + 1)
        raise FormatError(gap, ". Nothing was committed.")


def _read_link(store: ObjectStore, scope: LogScope, version: int) -> tuple[Link, str]:
    key = scope.entry_key(version)
    try:
        entry, sha256 = read_entry(store, scope, version)
    except ObjectNotFoundError:
        return Link(version, key, None, missing_entry(store, scope, version)), ""
    except FormatError as error:
        return Link(version, key, None, error.message), ""
    return Link(version, key, entry), sha256


def _exchanged(store: ObjectStore, scope: LogScope, version: int) -> str:
    return (
        f"Log entry {scope.entry_key(version)} of {store.url} is not what it was: version "
        f"{version + 1} was built on another. Restore it from a backup of the store."
    )
