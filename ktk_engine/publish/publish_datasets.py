"""Lets every commit of a dataset be published in another format, and compares what was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ktk_engine.catalog.find_dataset import find_dataset
from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    ForeignWriterError,
    PublishError,
)
from ktk_engine.files.others.describe_files import describe_files
from ktk_engine.log.change.dataset_change import DatasetChange
from ktk_engine.log.change.transaction import Transaction
from ktk_engine.log.commit import commit, role_of
from ktk_engine.log.intent import announced
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.log.write import Write
from ktk_engine.messages import Message, Remedy
from ktk_engine.publish.delta.delta_log import delete_log, read_log
from ktk_engine.publish.delta.publish_delta import (
    DELTA,
    check_delta,
    check_expressible,
    publish_delta,
)
from ktk_engine.publish.delta.second_reader import second_opinion
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import PUBLISH, Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.did_you_mean import did_you_mean

FORMATS = (DELTA,)


@dataclass(frozen=True)
class Published:
    """How a dataset is published.

    Attributes:
        dataset: its id within the cube, or the table's name.
        uuid: the dataset, which is also the folder of the Delta table.
        version: version of ours that is committed.
        delta_version: version of the Delta log; -1 if it has none.
        problem: how the two differ; empty if they do not.
    """

    dataset: str
    uuid: str
    version: int
    delta_version: int
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Give it as data for JSON."""
        return asdict(self)


def publish_datasets(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
) -> list[Published]:
    """Publish a table, a cube's datasets or one of them as Delta, now and with every commit.

    What is published already is brought up to date. No data file is written.

    Args:
        store: where it lives.
        name: the cube or the table.
        dataset: id of a dataset of the cube; None for all of them.
        history: what the log says of this commit, for people.

    Raises:
        DatasetNotFoundError: there is no such cube, table or dataset.
        PublishError: Delta cannot say what a dataset holds; nothing was changed.
        ForeignWriterError: nobody can tell what a dataset holds.
    """
    state = find_scope(store, name)
    uuids = _chosen(state, dataset)
    changed = [uuid for uuid in uuids if _is_new(state, uuid)]
    for uuid in uuids:
        _check(state, uuid)
    if changed:
        _commit(state, changed, (DELTA,), {"reason": "publish as Delta", **(history or {})})
        state = resolve(store, state.scope)
    return [_published(state, uuid, publish_delta(state, uuid)) for uuid in uuids]


def stop_publishing(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
) -> list[str]:
    """Publish datasets as Delta no more, and delete their Delta logs; see `publish_datasets`.

    Returns:
        The uuids of those that were published.

    Raises:
        PublishError: the run is staged; nothing was changed.
    """
    if store.is_staged:
        raise PublishError(
            Message(
                f"A staged run cannot stop publishing {name}: the Delta log could not be brought "
                "back. Nothing was changed. Stop it by itself: ",
                Remedy("stop_publishing", name=name),
            )
        )
    state = find_scope(store, name)
    uuids = _chosen(state, dataset)
    changed = [uuid for uuid in uuids if DELTA in state.snapshot(uuid).published_as]
    if changed:
        _commit(state, changed, (), {"reason": "publish as Delta no more", **(history or {})})
    deleted = [uuid for uuid in uuids if delete_log(store, uuid)]
    newest = resolve(store, state.scope)
    for uuid in set(deleted) & set(newest.datasets):
        if (
            DELTA in newest.snapshot(uuid).published_as
        ):  # again, since somebody asked for it meanwhile
            publish_delta(newest, uuid)
    return [uuid for uuid in uuids if uuid in {*changed, *deleted}]


def check_publishing(store: ObjectStore, name: str, dataset: str | None = None) -> list[Published]:
    """Compare the Delta logs of published datasets with what is committed; changes nothing.

    Raises:
        PublishError: no such dataset is published.
    """
    state = find_scope(store, name)
    uuids = [u for u in _chosen(state, dataset) if DELTA in state.snapshot(u).published_as]
    if not uuids:
        raise PublishError(
            Message(
                f"{name} is not published as Delta. To publish it, and every commit from now on: ",
                Remedy.on("publish", name),
            )
        )
    found = []
    for uuid in uuids:
        try:
            problem = state.datasets[uuid].problem or check_delta(state, uuid)
            problem = problem or second_opinion(store, state.snapshot(uuid))
        except PublishError as error:
            problem = error.message
        found.append(_published(state, uuid, read_log(store, uuid).version, problem))
    return found


def follow_setting(
    store: ObjectStore,
    uuid: str,
    formats: tuple[str, ...],
    history: Mapping[str, str] | None = None,
) -> None:
    """Let a dataset be published as its configuration says; what is so already stays untouched.

    Args:
        store: where it lives.
        uuid: the dataset.
        formats: in which formats; none to publish it no more.
        history: what the log says of this commit, for people.

    Raises:
        PublishError: Delta cannot say what it holds; nothing was changed.
    """
    scope = scope_of(uuid)
    state = resolve(store, scope)
    if uuid not in state.datasets or state.snapshot(uuid).published_as == set(formats):
        return
    dataset = scope.dataset_id(uuid) if scope.kind == "cube" else None
    change = publish_datasets if formats else stop_publishing
    change(store, scope.name, dataset, history)


def check_formats(formats: str | Sequence[str]) -> tuple[str, ...]:
    """Read the formats that somebody wants a dataset to be published in.

    Raises:
        ConfigurationError: one that does not exist.
    """
    names = (formats,) if isinstance(formats, str) else tuple(formats)
    for name in names:
        if name not in FORMATS:
            hint = did_you_mean(str(name), FORMATS)
            raise ConfigurationError(f"{name!r} is no format to publish in.{hint} Known: {DELTA}.")
    return names


def _chosen(state: State, dataset: str | None) -> list[str]:
    if dataset is None:
        return list(state.datasets)
    if state.scope.kind != "cube":
        name = state.scope.name
        raise ConfigurationError(f"{name} is a table, not a cube: it has no dataset {dataset}.")
    return [find_dataset(state, dataset)]


def _published(state: State, uuid: str, delta_version: int, problem: str = "") -> Published:
    entry = state.datasets[uuid].entry
    version = entry.version if entry else 0
    return Published(state.scope.dataset_id(uuid), uuid, version, delta_version, problem)


def _is_new(state: State, uuid: str) -> bool:
    """Whether a commit has to say that a dataset is published, or what its files hold."""
    snapshot, item = state.snapshot(uuid), state.datasets[uuid]
    return (
        DELTA not in snapshot.published_as
        or item.entry is None
        or bool(item.foreign)
        or (snapshot.file_column("physical").null_count > 0)
    )


def _check(state: State, uuid: str) -> None:
    """Refuse what Delta cannot say, before anything is written."""
    if problem := state.datasets[uuid].problem:
        raise ForeignWriterError(Message(problem, ". Nothing was written."))
    entry = state.datasets[uuid].entry
    (snapshot,) = describe_files(state.store, [state.snapshot(uuid)])
    try:
        check_expressible(snapshot)
    except PublishError as error:
        raise PublishError(
            Message(
                f"{uuid} cannot be published as Delta{' as it is' if entry else ''}: ",
                error.message.rstrip("."),
                ". Nothing was written.",
            )
        ) from error


def _commit(
    state: State, uuids: Sequence[str], formats: tuple[str, ...], history: Mapping[str, str]
) -> None:
    """Let datasets remember in which formats they are published."""
    store, scope, write = state.store, state.scope, Write()

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError("A dataset was removed meanwhile. Nothing was committed.")
        (known,) = describe_files(store, [base]) if formats else (base,)
        return replace(known, properties={**known.properties, PUBLISH: list(formats)})

    changes = tuple(
        DatasetChange(u, "properties", rebase, frozenset(), role_of(scope, state.snapshot(u)))
        for u in uuids
    )
    with announced(store, scope, write, f"publish {', '.join(uuids)}"):
        commit(state, Transaction(write, changes, history=history), publish)
