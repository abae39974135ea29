"""Earlier versions of a scope, by number, time or tag."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, date, datetime

from ktk_engine.errors import ConfigurationError, QueryError, VersionGoneError
from ktk_engine.log.chain import break_of, logged_versions, read_chain, read_entries, read_entry
from ktk_engine.log.dataset_state import DatasetState
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_name

_NUMBER = re.compile("[0-9]{1,99}")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,99}")


def state_at(
    state: State, version: int | str | None = None, timestamp: datetime | None = None
) -> State:
    """The scope as a commit left it; its datasets are all of one version.

    `timestamp` has a time zone: the last commit until then, by the store's clock, counts. Without
    both, the scope as it is, with what other programs have changed since. Costs two or three log
    entries for a version, about ten for a moment. Raises a `VersionGoneError`, which names the
    versions that are left.
    """
    if version is None:
        if timestamp is None:
            return state
        version = _version_at(state, timestamp)
    elif isinstance(version, str):
        version = version_of(state, version)
    if version == state.version and not (version and state.changed_by_others):
        return state
    if not 0 < version <= state.version:
        raise VersionGoneError(_unknown(state, version))
    # The entry that follows names its digest.
    entries = read_entries(state.store, state.scope, version - 1, min(version + 1, state.version))
    (entry, sha256), *_ = list(entries)
    found = {uuid: DatasetState(uuid, item, None) for uuid, item in entry.datasets.items()}
    if not all(state.store.exists(key) for key in _needed(entry)):
        raise VersionGoneError(_cleaned(state, version))
    return State(
        state.store, state.scope, version, entry, sha256, dict(sorted(found.items())),
        snapshot_cache=state.snapshot_cache,
    )  # fmt: skip


def parse_moment(version: int | str | None, timestamp: date | str | None) -> datetime | None:
    """Parse the moment that a person gave instead of a version; a date means its beginning.

    A text is ISO 8601, in UTC if it has no time zone. Raises a `QueryError` if it is neither date
    nor time, if the version is neither a number nor a text, or if both were given.
    """
    if isinstance(version, bool) or not isinstance(version, int | str | None):
        raise QueryError(
            f"A version is a number or a tag, but is {version!r}. A moment is the argument "
            "`timestamp` of `at`."
        )
    if timestamp is None:
        return None
    if version is not None:
        raise QueryError("Give a version or a timestamp, not both.")
    try:
        if isinstance(timestamp, date) and not isinstance(timestamp, datetime):
            timestamp = timestamp.isoformat()
        moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
        if not isinstance(moment, datetime):
            raise ValueError("neither a moment nor text")
    except ValueError as error:
        raise QueryError(
            f"The timestamp {timestamp!r} is not a date or time in ISO 8601, for instance "
            "2026-11-01 or 2026-11-01T09:30:00+01:00."
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def check_tag(name: str) -> str:
    """Return a valid tag; raises a `ConfigurationError` if it is not valid or reads as a number."""
    if not isinstance(name, str) or not _TAG.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} cannot be a tag: it has 1 to 100 letters, digits, `.`, `_` and `-` of "
            "ASCII, and starts with a letter or digit, for instance 2026-q1. Nothing was written."
        )
    if _is_number(name):
        raise ConfigurationError(
            f"{name!r} cannot be a tag, since versions have numbers: add a letter, for instance "
            f"v{name}. Nothing was written."
        )
    return name


def tags_of(state: State) -> Mapping[str, int]:
    """The tags of a scope and their versions, sorted by name."""
    return dict(sorted(state.head.tags.items())) if state.head else {}


def version_of(state: State, text: str) -> int:
    """Parse a version given as text: a tag in any letter case, or a number.

    Raises a `VersionGoneError`, which names the existing tags.
    """
    if _NUMBER.fullmatch(text):
        return int(text)
    tags = tags_of(state)
    tag = find_name(text, tags)
    if tag is None:
        known = f"Its tags are {', '.join(tags)}." if tags else "It has no tags."
        raise VersionGoneError(
            f"{state.scope} of {state.store.url} has no version {text!r}."
            f"{did_you_mean(text, tags)} A version is a number, as ",
            Remedy("history", name=state.scope.name),
            f" lists them, or a tag. {known}",
        )
    return tags[tag]


def readable_versions(state: State) -> list[int]:
    """The versions whose files no clean-up has given up, ascending; reads every log entry.

    Raises a `VersionGoneError` if an entry is missing or damaged.
    """
    links = read_chain(state.store, state.scope, 1, state.version, state.head_sha256)
    found: list[int] = []
    gone: set[str] = set()
    for link in reversed(links):
        if link.entry is None:
            raise VersionGoneError(break_of(links))
        if not _needed(link.entry) & gone:
            found.append(link.version)
        gone.update(link.entry.deleted)
    return found[::-1]


def oldest_version(state: State) -> int:
    """The oldest version from which on none is missing; see `readable_versions`."""
    oldest = state.version
    for version in reversed(readable_versions(state)):
        if version < oldest - 1:
            break
        oldest = version
    return oldest


def _version_at(state: State, timestamp: datetime) -> int:
    """The version that was the newest at a moment."""
    versions = logged_versions(state.store, state.scope)
    at = bisect_right(
        versions, timestamp, key=lambda n: read_entry(state.store, state.scope, n)[0].time
    )
    if not at:
        since = "it has no log"
        if versions:
            first, _ = read_entry(state.store, state.scope, versions[0])
            since = f"its first commit was at {first.time.isoformat()}"
        what = f"{state.scope} of {state.store.url} has no version at {timestamp.isoformat()}"
        raise VersionGoneError(f"{what}: {since}.")
    return versions[at - 1]


def _needed(entry: LogEntry) -> frozenset[str]:
    """Keys of everything needed to read an entry's datasets."""
    return frozenset(item.snapshot for item in entry.datasets.values())


def _unknown(state: State, version: int) -> str:
    what = f"{state.scope} of {state.store.url} has no version {version}"
    if not state.version:
        return f"{what}: it has no log, since only other programs have written to it."
    return f"{what}: its versions are {oldest_version(state)} to {state.version}."


def _cleaned(state: State, version: int) -> Message:
    oldest, tags = oldest_version(state), tags_of(state)
    before = [f"{version} ({name})" for name, version in tags.items() if version < oldest]
    tagged = f", and the tagged {', '.join(before)}" if before else ""
    return Message(
        f"{state.scope} of {state.store.url}: a clean-up has removed version {version}. Versions "
        f"{oldest} to {state.version} are left{tagged}; ",
        Remedy("kept_versions"),
        " say how many are kept.",
    )


def _is_number(text: str) -> bool:
    """Whether Python or SQL would read the text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
