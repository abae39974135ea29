"""Lets every commit of a dataset be published in another format, and checks what was published."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from ktk_engine.catalog.find_scope import find_dataset, find_scope
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    ForeignWriterError,
    PublishError,
)
from ktk_engine.files.others.describe_files import describe_files
from ktk_engine.log.change.after_commit import after_commit
from ktk_engine.log.change.change_set import DatasetChange, Rebase, unchecked
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.messages import Remedy
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
    """How a dataset is published in one format."""

    dataset: str  # id within the cube, or the table's name
    uuid: str
    folder: str  # key of the folder of the Delta or Iceberg table
    format: str  # `delta` or `iceberg`
    version: int  # the committed version
    format_version: int  # of the Delta log or Iceberg metadata; -1 if there is none
    problem: str = ""  # how the two differ; empty if they do not

    def as_dict(self) -> dict[str, Any]:
        """Return data for JSON."""
        return asdict(self)


def publish_datasets(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    formats: Sequence[str] = (),
) -> list[Published]:
    """Publish a table, a cube's datasets or one of them, now and with every commit.

    Without `formats`, datasets keep their formats; unpublished ones get Delta. No data file is
    written. Raises a `DatasetNotFoundError`, a `PublishError` if a format cannot express a dataset
    (nothing was changed then), or a `ForeignWriterError` if its content is unknown.
    """
    state = find_scope(store, name)
    uuids = chosen_uuids(state, dataset)
    added = {uuid: _added_formats(state.snapshot(uuid), formats) for uuid in uuids}
    wanted = {uuid: state.snapshot(uuid).published_as | added[uuid] for uuid in uuids}
    changed = [uuid for uuid in uuids if _is_new(state, uuid, wanted[uuid])]
    for uuid in uuids:
        _check(state, uuid, wanted[uuid])
    if changed:
        titles = titles_of({name for uuid in changed for name in wanted[uuid]})
        said = f"publish as {titles.replace(' or ', ' and ')}"
        rebases = {uuid: _rebase(store, added=added[uuid]) for uuid in changed}
        _commit(state, rebases, {"reason": said, **(history or {})})
    with _after_commit(name, changed):
        state = resolve(store, state.scope) if changed else state
        return [
            _published(state, uuid, form, publish_form(form, state, uuid))
            for uuid in uuids
            for form in forms_of(state.snapshot(uuid))
            if form.name in wanted[uuid]
        ]


def _added_formats(snapshot: Snapshot, formats: Sequence[str]) -> frozenset[str]:
    """What a dataset gets if `formats` are requested: without any, the default if it has none."""
    return frozenset(formats or (() if snapshot.published_as else _DEFAULT))


def titles_of(formats: Collection[str]) -> str:
    """The titles of formats; of all formats if none are given."""
    found = [form.title for form in FORMS if not formats or form.name in formats]
    return " or ".join(found)


def stop_publishing(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    formats: Sequence[str] = (),
) -> list[str]:
    """Stop publishing datasets, in all formats by default, and delete what was published.

    Returns the uuids of those that were published. Raises a `PublishError` if the run is staged;
    nothing was changed then. See `publish_datasets`.
    """
    if store.is_staged:
        raise PublishError(
            f"A staged run cannot stop publishing {name}: what was published could not be "
            "brought back. Nothing was changed. Stop it by itself: ",
            Remedy("stop_publishing", name=name),
        )
    state = find_scope(store, name)
    uuids = chosen_uuids(state, dataset)
    ended = [form for form in FORMS if not formats or form.name in formats]
    gone = frozenset(form.name for form in ended)
    changed = [uuid for uuid in uuids if state.snapshot(uuid).published_as & gone]
    if changed:
        said = f"stop publishing as {titles_of(formats)}"
        rebases = dict.fromkeys(changed, _rebase(store, ended=gone))
        _commit(state, rebases, {"reason": said, **(history or {})})
    with _after_commit(name, changed):
        deleted = {uuid for uuid in uuids for form in ended if form.delete(store, uuid)}
        newest = resolve(store, state.scope)
        for uuid in deleted & set(newest.datasets):
            for form in forms_of(newest.snapshot(uuid)):
                if form in ended:  # published again meanwhile
                    publish_form(form, newest, uuid)
    return [uuid for uuid in uuids if uuid in {*changed, *deleted}]


def check_publishing(
    store: ObjectStore, name: str, dataset: str | None = None, formats: Sequence[str] = ()
) -> list[Published]:
    """Compare what is published of datasets with what is committed; changes nothing.

    Without `formats`, checks all. Raises a `PublishError` if no such dataset is published.
    """
    state = find_scope(store, name)
    found = [
        (uuid, form)
        for uuid in chosen_uuids(state, dataset)
        for form in forms_of(state.snapshot(uuid))
        if not formats or form.name in formats
    ]
    if not found:
        asked = [form for form in FORMS if form.name in (formats or _DEFAULT)]
        raise PublishError(
            f"{name} is not published as {titles_of(formats)}. To publish it, and every "
            "commit from now on: ",
            Remedy("publish_as", name=name, format=asked[-1].name),
        )
    return [_checked(state, uuid, form) for uuid, form in found]


def _checked(state: State, uuid: str, form: Form) -> Published:
    wanted, present = Wanted.of(state, uuid), form.read(state.store, uuid)
    try:
        problem = state.datasets[uuid].problem or check_form(form, wanted, present)
        problem = problem or form.verify_with_library(wanted, present)
    except PublishError as error:
        problem = error.message
    return _published(state, uuid, form, present.version, problem)


def follow_setting(
    store: ObjectStore,
    uuid: str,
    formats: tuple[str, ...],
    history: Mapping[str, str] | None = None,
) -> None:
    """Publish a dataset in the configured formats and in no others; does nothing if it already is.

    Raises a `PublishError` if a format cannot express it; nothing was changed then.
    """
    scope = scope_of(uuid)
    state = resolve(store, scope)
    if uuid not in state.datasets or state.snapshot(uuid).published_as == set(formats):
        return
    dataset = scope.dataset_id(uuid) if scope.kind == "cube" else None
    known = state.snapshot(uuid).published_as
    if formats:  # first, since it may be refused
        publish_datasets(store, scope.name, dataset, history, formats)
    if ended := known.difference(formats):
        with _after_commit(uuid, set(formats) - known):
            stop_publishing(store, scope.name, dataset, history, sorted(ended))


def check_formats(formats: str | Sequence[str]) -> tuple[str, ...]:
    """Parse format names: one, several with commas between them, or a list.

    Raises a `ConfigurationError` for a name that does not exist.
    """
    listed = (formats,) if isinstance(formats, str) else formats
    said = (name.strip() for item in listed for name in str(item).split(","))
    names = tuple(dict.fromkeys(said))
    for name in names:
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            known = ", ".join(FORMATS)
            raise ConfigurationError(
                f"{name!r} is not a format to publish in.{hint} Known: {known}."
            )
    return names


def chosen_uuids(state: State, dataset: str | None) -> list[str]:
    """The uuids of a scope's datasets, or of the one that was named.

    Raises a `DatasetNotFoundError`, or a `ConfigurationError` if it is named for a table.
    """
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
    folder = form.folder(uuid).rpartition("/")[0]
    return Published(dataset, uuid, folder, form.name, version, format_version, problem)


def _is_new(state: State, uuid: str, formats: Collection[str]) -> bool:
    """Whether a commit has to record that a dataset is published, or what its files hold."""
    snapshot, item = state.snapshot(uuid), state.datasets[uuid]
    return (
        not snapshot.published_as.issuperset(formats)
        or item.entry is None
        or not item.is_as_committed
        or (snapshot.file_column("physical").null_count > 0)
    )


def _check(state: State, uuid: str, formats: Collection[str]) -> None:
    """Refuse what a format cannot express, before anything is written."""
    if problem := state.datasets[uuid].problem:
        raise ForeignWriterError(problem, ". Nothing was written.")
    entry = state.datasets[uuid].entry
    (snapshot,) = describe_files(state.store, [state.snapshot(uuid)])
    for form in FORMS:
        if form.name not in formats:
            continue
        try:
            form.check(state.store, snapshot)
        except PublishError as error:
            as_it_is = " as it is" if entry else ""
            raise PublishError(
                f"{uuid} cannot be published as {form.title}{as_it_is}: ",
                error.message.rstrip("."),
                ". Nothing was written.",
            ) from error


def _rebase(
    store: ObjectStore,
    added: frozenset[str] = frozenset(),
    ended: frozenset[str] = frozenset(),
) -> Rebase:
    """Change the formats in which a dataset is published, whatever others change meanwhile."""

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError("A dataset was removed meanwhile. Nothing was committed.")
        formats = sorted((base.published_as | added) - ended)
        (known,) = describe_files(store, [base]) if formats else (base,)
        return replace(known, properties={**known.properties, PUBLISH: formats})

    return rebase


def _after_commit(name: str, changed: Collection[str]) -> AbstractContextManager[None]:
    """Let errors say what was committed, if anything was; publishing is safe to repeat."""
    return after_commit(name, "Run it again to finish.") if changed else nullcontext()


def _commit(state: State, rebases: Mapping[str, Rebase], history: Mapping[str, str]) -> None:
    """Commit the formats in which datasets are published."""
    operation = f"publish {', '.join(rebases)}"
    with ScopeTransaction(state, operation, history, unchecked, publish) as changing:
        for uuid, rebase in rebases.items():
            changing.change(DatasetChange(uuid, "properties", rebase, frozenset()))
        changing.commit()
