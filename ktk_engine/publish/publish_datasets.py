"""Lets every commit of a dataset be published in another format, and compares what was."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from ktk_engine.log.change.dataset_change import DatasetChange, Rebase
from ktk_engine.log.change.transaction import Transaction
from ktk_engine.log.commit import commit, role_of
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.publish.form import Form, Wanted
from ktk_engine.publish.publish import publish
from ktk_engine.publish.published_forms import FORMS, check_form, forms_of, publish_form
from ktk_engine.snapshot.snapshot import PUBLISH, Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.did_you_mean import did_you_mean

FORMATS = tuple(form.name for form in FORMS)
_DEFAULT = FORMATS[:1]


@dataclass(frozen=True)
class Published:
    """How a dataset is published in one format.

    Attributes:
        dataset: its id within the cube, or the table's name.
        uuid: the dataset, which is also the folder of the Delta or Iceberg table.
        format: `delta` or `iceberg`.
        version: version of ours that is committed.
        format_version: version of the Delta log or of the Iceberg metadata; -1 if there is none.
        problem: how the two differ; empty if they do not.
    """

    dataset: str
    uuid: str
    format: str
    version: int
    format_version: int
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Give it as data for JSON."""
        return asdict(self)


def publish_datasets(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    formats: Sequence[str] = (),
) -> list[Published]:
    """Publish a table, a cube's datasets or one of them, now and with every commit.

    What is published already is brought up to date. No data file is written.

    Args:
        store: where it lives.
        name: the cube or the table.
        dataset: id of a dataset of the cube; None for all of them.
        history: what the log says of this commit, for people.
        formats: in which formats, beside those in which it is published already; none for those
            alone, or Delta if it is published in none.

    Raises:
        DatasetNotFoundError: there is no such cube, table or dataset.
        PublishError: a format cannot say what a dataset holds; nothing was changed.
        ForeignWriterError: nobody can tell what a dataset holds.
    """
    state = find_scope(store, name)
    uuids = _chosen(state, dataset)
    wanted = {uuid: _wanted_formats(state.snapshot(uuid), formats) for uuid in uuids}
    changed = {uuid: found for uuid, found in wanted.items() if _is_new(state, uuid, found)}
    for uuid in uuids:
        _check(state, uuid, wanted[uuid])
    if changed:
        titles = titles_of({name for found in changed.values() for name in found})
        said = f"publish as {titles.replace(' or ', ' and ')}"
        _commit(state, changed, {"reason": said, **(history or {})})
        state = resolve(store, state.scope)
    return [
        _published(state, uuid, form, publish_form(form, state, uuid))
        for uuid in uuids
        for form in forms_of(state.snapshot(uuid))
        if form.name in wanted[uuid]
    ]


def _wanted_formats(snapshot: Snapshot, formats: Sequence[str]) -> tuple[str, ...]:
    """The formats that a dataset is published in, once somebody has asked for some."""
    wanted = snapshot.published_as.union(formats) or _DEFAULT
    return tuple(name for name in FORMATS if name in wanted)


def titles_of(formats: Collection[str]) -> str:
    """Name formats as people do; all if there are none."""
    found = [form.title for form in FORMS if not formats or form.name in formats]
    return " or ".join(found)


def stop_publishing(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    formats: Sequence[str] = (),
) -> list[str]:
    """Publish datasets no more, and delete what was published; see `publish_datasets`.

    Args:
        store: where it lives.
        name: the cube or the table.
        dataset: id of a dataset of the cube; None for all of them.
        history: what the log says of this commit, for people.
        formats: in which formats no more; none for all.

    Returns:
        The uuids of those that were published.

    Raises:
        PublishError: the run is staged; nothing was changed.
    """
    if store.is_staged:
        raise PublishError(
            Message(
                f"A staged run cannot stop publishing {name}: what was published could not be "
                "brought back. Nothing was changed. Stop it by itself: ",
                Remedy("stop_publishing", name=name),
            )
        )
    state = find_scope(store, name)
    uuids = _chosen(state, dataset)
    ended = [form for form in FORMS if not formats or form.name in formats]
    gone = {form.name for form in ended}
    changed = {
        uuid: tuple(sorted(published - gone))
        for uuid in uuids
        if (published := state.snapshot(uuid).published_as) & gone
    }
    if changed:
        said = f"publish as {titles_of(formats)} no more"
        _commit(state, changed, {"reason": said, **(history or {})})
    deleted = {uuid for uuid in uuids for form in ended if form.delete(store, uuid)}
    newest = resolve(store, state.scope)
    for uuid in deleted & set(newest.datasets):
        for form in forms_of(newest.snapshot(uuid)):
            if form in ended:  # again, since somebody asked for it meanwhile
                publish_form(form, newest, uuid)
    return [uuid for uuid in uuids if uuid in {*changed, *deleted}]


def check_publishing(
    store: ObjectStore, name: str, dataset: str | None = None, formats: Sequence[str] = ()
) -> list[Published]:
    """Compare what is published of datasets with what is committed; changes nothing.

    Args:
        store: where it lives.
        name: the cube or the table.
        dataset: id of a dataset of the cube; None for all of them.
        formats: in which formats; none for all.

    Raises:
        PublishError: no such dataset is published.
    """
    state = find_scope(store, name)
    found = [
        (uuid, form)
        for uuid in _chosen(state, dataset)
        for form in forms_of(state.snapshot(uuid))
        if not formats or form.name in formats
    ]
    if not found:
        how = "publish_iceberg" if "iceberg" in formats else "publish"
        raise PublishError(
            Message(
                f"{name} is not published as {titles_of(formats)}. To publish it, and every "
                "commit from now on: ",
                Remedy(how, name=name),
            )
        )
    return [_checked(state, uuid, form) for uuid, form in found]


def _checked(state: State, uuid: str, form: Form) -> Published:
    try:
        problem = state.datasets[uuid].problem or check_form(form, state, uuid)
        problem = problem or form.verify_with_library(Wanted.of(state, uuid))
    except PublishError as error:
        problem = error.message
    return _published(state, uuid, form, form.read(state.store, uuid).version, problem)


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
    if ended := state.snapshot(uuid).published_as.difference(formats):
        stop_publishing(store, scope.name, dataset, history, sorted(ended))
    if formats:
        publish_datasets(store, scope.name, dataset, history, formats)


def check_formats(formats: str | Sequence[str]) -> tuple[str, ...]:
    """Read the formats that somebody wants a dataset to be published in.

    Args:
        formats: a name, several with commas between them, or a list of names.

    Raises:
        ConfigurationError: one that does not exist.
    """
    listed = (formats,) if isinstance(formats, str) else formats
    said = (name.strip() for item in listed for name in str(item).split(","))
    names = tuple(dict.fromkeys(said))
    for name in names:
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            known = ", ".join(FORMATS)
            raise ConfigurationError(f"{name!r} is no format to publish in.{hint} Known: {known}.")
    return names


def _chosen(state: State, dataset: str | None) -> list[str]:
    if dataset is None:
        return list(state.datasets)
    if state.scope.kind != "cube":
        name = state.scope.name
        raise ConfigurationError(f"{name} is a table, not a cube: it has no dataset {dataset}.")
    return [find_dataset(state, dataset)]


def _published(
    state: State, uuid: str, form: Form, format_version: int, problem: str = ""
) -> Published:
    entry = state.datasets[uuid].entry
    version, dataset = entry.version if entry else 0, state.scope.dataset_id(uuid)
    return Published(dataset, uuid, form.name, version, format_version, problem)


def _is_new(state: State, uuid: str, formats: Sequence[str]) -> bool:
    """Whether a commit has to say that a dataset is published, or what its files hold."""
    snapshot, item = state.snapshot(uuid), state.datasets[uuid]
    return (
        not snapshot.published_as.issuperset(formats)
        or item.entry is None
        or bool(item.foreign)
        or (snapshot.file_column("physical").null_count > 0)
    )


def _check(state: State, uuid: str, formats: Sequence[str]) -> None:
    """Refuse what a format cannot say, before anything is written."""
    if problem := state.datasets[uuid].problem:
        raise ForeignWriterError(Message(problem, ". Nothing was written."))
    entry = state.datasets[uuid].entry
    (snapshot,) = describe_files(state.store, [state.snapshot(uuid)])
    for form in FORMS:
        if form.name not in formats:
            continue
        try:
            form.check(snapshot)
        except PublishError as error:
            as_it_is = " as it is" if entry else ""
            raise PublishError(
                Message(
                    f"{uuid} cannot be published as {form.title}{as_it_is}: ",
                    error.message.rstrip("."),
                    ". Nothing was written.",
                )
            ) from error


def _commit(
    state: State, formats: Mapping[str, tuple[str, ...]], history: Mapping[str, str]
) -> None:
    """Let datasets remember in which formats they are published."""
    store, scope, write = state.store, state.scope, PendingCommit()

    def rebase_to(wanted: tuple[str, ...]) -> Rebase:
        def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
            if base is None:
                raise CommitConflictError("A dataset was removed meanwhile. Nothing was committed.")
            (known,) = describe_files(store, [base]) if wanted else (base,)
            return replace(known, properties={**known.properties, PUBLISH: list(wanted)})

        return rebase

    changes = tuple(
        DatasetChange(
            u, "properties", rebase_to(wanted), frozenset(), role_of(scope, state.snapshot(u))
        )
        for u, wanted in formats.items()
    )
    with write_intent(store, scope, write, f"publish {', '.join(formats)}"):
        commit(state, Transaction(write, changes, history=history), publish)
