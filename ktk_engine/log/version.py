"""Earlier versions of a scope: what a cube or table was after some commit."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime

from ktk_engine.errors import QueryError, VersionGoneError
from ktk_engine.log.chain import break_of, logged_versions, read_chain, read_entries, read_entry
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.state import DatasetState, State


def state_at(state: State, version: int | None = None, timestamp: datetime | None = None) -> State:
    """Give a scope as an earlier commit left it; its datasets are all of one version.

    Costs two or three log entries for a version, and some ten for a moment.

    Args:
        state: the scope at any later version.
        version: the number of the commit; None to go by `timestamp`.
        timestamp: the last commit until this moment counts, by the store's clock; aware.

    Raises:
        VersionGoneError: there is no such version, or a clean-up has removed it; the message says
            which versions are left.
        FormatError: its log entry is damaged.
    """
    if version is None:
        version = _version_at(state, timestamp)
    if version == state.version:
        return state
    if not 0 < version < state.version:
        raise VersionGoneError(_unknown(state, version))
    # The entry that follows names its digest.
    entries = read_entries(state.store, state.scope, version - 1, min(version + 1, state.version))
    (entry, sha256), *_ = list(entries)
    found = {uuid: DatasetState(uuid, item, None) for uuid, item in entry.datasets.items()}
    if not all(state.store.exists(key) for key in _needed(entry)):
        raise VersionGoneError(_cleaned(state, version))
    return State(
        state.store, state.scope, version, entry, sha256, dict(sorted(found.items())),
        known=state.known,
    )  # fmt: skip


def parse_moment(version: int | None, timestamp: datetime | str | None) -> datetime | None:
    """Read the moment that a person gave in place of a version.

    Args:
        version: what was given as the version.
        timestamp: a moment, or its text in ISO 8601; without a time zone it is UTC.

    Raises:
        QueryError: both were given, or the text is no date or time.
    """
    if timestamp is None:
        return None
    if version is not None:
        raise QueryError("Give a version or a timestamp, not both.")
    try:
        moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    except ValueError as error:
        raise QueryError(
            f"The timestamp {timestamp!r} is no date or time in ISO 8601, for instance "
            "2026-11-01 or 2026-11-01T09:30:00+01:00."
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def oldest_version(state: State) -> int:
    """Give the oldest version whose files no clean-up has given up; reads every log entry.

    Raises:
        FormatError: an entry is damaged.
    """
    links = read_chain(state.store, state.scope, 1, state.version, state.head_sha256)
    gone: set[str] = set()
    for link in reversed(links):
        if link.entry is None:
            raise VersionGoneError(break_of(links))
        if _needed(link.entry) & gone:
            return link.version + 1
        gone.update(link.entry.deleted)
    return 1


def _version_at(state: State, timestamp: datetime | None) -> int:
    """The version that counted at a moment."""
    if timestamp is None:
        return state.version
    versions = logged_versions(state.store, state.scope)
    at = bisect_right(
        versions, timestamp, key=lambda n: read_entry(state.store, state.scope, n)[0].time
    )
    if not at:
        since = "it has no log"
        if versions:
            first, _ = read_entry(state.store, state.scope, versions[0])
            since = f"its first commit was at {first.time.isoformat()}"
        what = f"{state.scope} of {state.store.url} has no version of {timestamp.isoformat()}"
        raise VersionGoneError(f"{what}: {since}.")
    return versions[at - 1]


def _needed(entry: LogEntry) -> frozenset[str]:
    """Keys of what it takes to read an entry's datasets."""
    return frozenset[str]().union(*(item.snapshots for item in entry.datasets.values()))


def _unknown(state: State, version: int) -> str:
    what = f"{state.scope} of {state.store.url} has no version {version}"
    if not state.version:
        return f"{what}: it has no log, since only other programs have written to it."
    return f"{what}: its versions are {oldest_version(state)} to {state.version}."


def _cleaned(state: State, version: int) -> str:
    return (
        f"{state.scope} of {state.store.url}: a clean-up has removed version {version}. Versions "
        f"{oldest_version(state)} to {state.version} are left; --older-than and "
        "--keep-versions of ktk cleanup say how many are kept."
    )
