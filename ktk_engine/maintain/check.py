"""Checks all that is committed of a cube or table: files, log, and what is published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ktk_engine.catalog.find_scope import find_scope, present_scopes
from ktk_engine.errors import ConsistencyError, FormatError, KtkError
from ktk_engine.format.dataset_key import TABLE
from ktk_engine.format.load_document import list_documents
from ktk_engine.gate.gate import check_scope
from ktk_engine.log.scope import FOLDER, LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.log.version import state_at, tags_of
from ktk_engine.maintain.check_files import check_files
from ktk_engine.maintain.check_log import check_log, check_published
from ktk_engine.maintain.problem import Problem
from ktk_engine.messages import Message
from ktk_engine.progress import Progress, no_progress
from ktk_engine.snapshot.snapshot import Snapshot, check_partition_values
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class Checked:
    """The result of a check."""

    name: str  # the cube or table
    version: int  # of its log
    datasets: int  # number of datasets
    files: int  # number of data files that were read
    indices: int  # number of index files that were read
    problems: tuple[Problem, ...]
    deep: bool = False  # data files were read as a whole, not only their footers
    tagged: int = 0  # number of earlier versions with a name, whose files were checked too

    def as_dict(self) -> dict[str, Any]:
        """Give the result as data for JSON."""
        return asdict(self)


def check(
    store: ObjectStore,
    name: str,
    only: Collection[str] | None = None,
    deep: bool = False,
    progress: Progress = no_progress,
) -> Checked:
    """Check a cube or a table, or only some of its datasets by id.

    A check of all includes how datasets fit together, versions with a tag, and the log; `deep`
    reads every page of every data file and every snapshot of history. Raises a `FormatError` if the
    newest log entry is damaged: what is committed is then unknown.
    """
    state = find_scope(store, name)
    problems: list[Problem] = []
    snapshots: dict[str, Snapshot] = {}
    id_of = state.scope.dataset_id
    chosen = {u: item for u, item in state.datasets.items() if only is None or id_of(u) in only}
    for uuid, item in chosen.items():
        dataset = id_of(uuid)
        if item.problem:
            problems.append(Problem(dataset, "", "", "", "", item.problem))
        if not item.is_readable:
            continue
        try:
            snapshot = state.snapshot(uuid)
            snapshot.verify_segments()
            snapshots[uuid] = snapshot
        except KtkError as error:
            file = item.entry.snapshot if item.entry and not item.problem else ""
            problems.append(Problem(dataset, file, "", "", "", error.message))
    for uuid, snapshot in snapshots.items():
        problems += _partition_problems(id_of(uuid), snapshot)
        problems += check_files(store, id_of(uuid), snapshot, deep, progress=progress)
        problems += check_published(state, uuid, snapshot)
    if len(snapshots) == len(chosen):
        problems += _cube_problems(state, snapshots)
    files = {key for item in snapshots.values() for key in item.file_column("key").to_pylist()}
    indices = {key for item in snapshots.values() for key in item.index_keys}
    tagged: set[int] = set()
    if only is None:
        problems += check_log(state, deep)
        for tag, version in tags_of(state).items():
            if version not in {state.version, *tagged}:
                tagged.add(version)
                problems += _check_tagged(state, tag, version, files, indices, deep)
    return Checked(
        name=state.scope.name,
        version=state.version,
        datasets=len(chosen),
        files=len(files),
        indices=len(indices),
        problems=tuple(problems),
        deep=deep,
        tagged=len(tagged),
    )


def check_all(
    store: ObjectStore, deep: bool = False, progress: Progress = no_progress
) -> Iterator[Checked]:
    """Check every cube and table of a store, cubes first, by name; see `check`.

    What cannot be checked at all is a problem as well.
    """
    if has_lost_logs(store):
        reason = (
            f"{store.url} has files of datasets, but no log and no document that names them. "
            "Restore them from a backup."
        )
        problem = Problem("", "", "", "", "", reason)
        yield Checked(store.url.rpartition("/")[2], 0, 0, 0, 0, (problem,), deep)
    for scope, documents in present_scopes(store).items():
        try:
            state = resolve(store, scope, documents)
            if state.datasets:
                yield check(store, scope.name, deep=deep, progress=progress)
            elif state.head is None and _lost_log(store, scope):
                raise ConsistencyError("Its log is gone. Restore it from a backup.")
        except KtkError as error:
            problem = Problem("", "", "", "", "", str(error))
            yield Checked(scope.name, 0, 0, 0, 0, (problem,), deep)


def has_lost_logs(store: ObjectStore) -> bool:
    """Whether a store has files of datasets, but no log and no document that names them."""
    names = store.list_names()
    if f"{FOLDER}/" in names or list_documents(store):
        return False
    folders = [name.removesuffix("/") for name in names if name.endswith("/")]
    return any(f"{TABLE}/" in store.list_names(folder) for folder in folders)


def _lost_log(store: ObjectStore, scope: LogScope) -> bool:
    """Whether a scope without a log has snapshots of a write that left no note.

    A first write that was killed left one.
    """
    written, noted = (store.list_names(f"{scope.folder}/{it}") for it in ("snapshots", "intent"))
    return bool({it.removesuffix("/") for it in written} - {it.partition(".")[0] for it in noted})


def _check_tagged(
    state: State, tag: str, version: int, files: set[str], indices: set[str], deep: bool
) -> Iterator[Problem]:
    """Check the files that only a tagged version needs, and add them to the known ones."""
    where = f"version {version}, tagged {tag}"
    try:
        old = state_at(state, version)
    except KtkError as error:
        yield Problem("", "", "", "", "", Message(f"{where}: ", error))
        return
    for uuid, item in old.datasets.items():
        dataset = state.scope.dataset_id(uuid)
        try:
            snapshot = old.snapshot(uuid)
            snapshot.verify_segments()
        except KtkError as error:
            file = item.entry.snapshot if item.entry else ""
            yield Problem(dataset, file, "", "", "", Message(f"{where}: ", error))
            continue
        for problem in check_files(state.store, dataset, snapshot, deep, files | indices):
            yield replace(problem, reason=Message(f"{where}: ", problem.reason))
        files.update(snapshot.file_column("key").to_pylist())
        indices.update(snapshot.index_keys)


def _partition_problems(dataset: str, snapshot: Snapshot) -> Iterator[Problem]:
    """Partition values of other programs that do not fit their class, which blocks writes."""
    for name in snapshot.partition_keys:
        try:
            check_partition_values(snapshot, (name,))
        except FormatError as error:
            yield Problem(dataset, "", name, "", "", error.message)


def _cube_problems(state: State, snapshots: Mapping[str, Snapshot]) -> Iterator[Problem]:
    if state.scope.kind != "cube":
        return
    try:
        check_scope(snapshots)
    except ConsistencyError as error:
        yield Problem("", "", "", "", "", error.message)
