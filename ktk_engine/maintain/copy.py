"""Copies a cube's datasets, or a table, into a store, as one commit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.dataset_uuid import dataset_uuid
from ktk_engine.cube.specification import check_cube_name, check_together
from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    DatasetNotFoundError,
    FormatError,
    KtkError,
)
from ktk_engine.files.index_place import IndexPlace, pairs_of_index
from ktk_engine.files.index_runs import new_segment_key
from ktk_engine.format.dataset_key import TABLE, common_metadata_key
from ktk_engine.format.file_digest import FileDigest, damaged, named_damage, shorten
from ktk_engine.format.stamp import BASE_KEY
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.dbt_node import DbtNode, builder_of
from ktk_engine.log.scope import cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.maintain.change_datasets import ChangeResult, brought, check_brought
from ktk_engine.progress import Progress, no_progress
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.column_index import ColumnIndex, indices_of, with_indices
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.snapshot import Snapshot, digests_of
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import check_new_uuid
from ktk_engine.types.did_you_mean import did_you_mean

_PIECE_BYTES = 8 << 20
_THREADS = 8


@dataclass(frozen=True)
class CopyPlan:
    """What a copy would do."""

    source: State  # the scope that is copied, at any version
    target: State  # the scope that it is copied to
    datasets: Mapping[str, str]  # uuid in the source -> uuid in the target
    replaced: tuple[str, ...]  # uuids of the target whose content goes
    # Copies belong to the dbt nodes of the originals, under their names in SQL.
    keeps_owner: bool = False

    @property
    def files(self) -> int:
        """How many data files are copied."""
        return sum(self.source.snapshot(uuid).file_table.num_rows for uuid in self.datasets)

    @property
    def bytes(self) -> int:
        """Size of the files to copy in bytes; datasets of unknown size count as 0."""
        return sum(self.source.snapshot(uuid).bytes or 0 for uuid in self.datasets)


def plan_copy(
    source: State,
    target: ObjectStore,
    name: str = "",
    datasets: Collection[str] | None = None,
    rename: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> CopyPlan:
    """Check everything that can be checked before a file is copied.

    An empty `name` keeps the name, and `rename` maps ids of datasets to new ones. Raises a
    `DatasetNotFoundError`, a `ConfigurationError` if two datasets would have one name, and a
    `ConsistencyError` if a dataset exists in the target without `overwrite` or the target's others
    would not fit.
    """
    scope, renamed = source.scope, dict(rename or {})
    known = {scope.dataset_id(uuid): uuid for uuid in source.datasets}
    chosen = list(known) if datasets is None or not scope.cube else list(datasets)
    for wanted in (*chosen, *renamed):
        if wanted not in known:
            raise DatasetNotFoundError(
                f"{scope.name} of {source.store.url} has no dataset {wanted}."
                f"{did_you_mean(wanted, known)} It has: {', '.join(known)}. Nothing was copied."
            )
    cube = (name or scope.cube) if scope.cube else ""
    ids = {item: renamed.get(item, item) if cube else name or item for item in chosen}
    for copied in (*([cube] if cube else []), *ids.values()):
        check_cube_name("name", copied)
    for copied in ids.values() if cube else ():
        check_together(cube, copied)
    if len(set(ids.values())) < len(ids):
        raise ConfigurationError(
            f"Two datasets would both be {_repeated(ids)}: rename one of them. Nothing was copied."
        )
    pairs = {known[item]: check_new_uuid(dataset_uuid(cube, new)) for item, new in ids.items()}
    there = resolve(target, cube_scope(cube) if cube else scope_of(next(iter(ids.values()))))
    replaced = tuple(uuid for uuid in pairs.values() if uuid in there.datasets)
    plan = CopyPlan(source, there, pairs, replaced)
    _check(plan, overwrite)
    return plan


def _repeated(ids: Mapping[str, str]) -> str:
    names = list(ids.values())
    return next(name for name in names if names.count(name) > 1)


def _check(plan: CopyPlan, overwrite: bool) -> None:
    source, target = plan.source, plan.target
    same = source.store.url == target.store.url
    if same and (itself := [uuid for uuid in plan.replaced if uuid in plan.datasets]):
        raise ConsistencyError(
            f"{', '.join(itself)} would be copied onto itself: give the copy another name, or "
            "another store. Nothing was copied."
        )
    if plan.replaced and not overwrite:
        raise ConsistencyError(
            f"{target.store.url} has {', '.join(plan.replaced)} already. Overwrite it, or give the "
            "copy another name. Nothing was copied."
        )
    copies = {new: source.snapshot(old) for old, new in plan.datasets.items()}
    for uuid in plan.replaced:  # what is published goes on as it was
        copies[uuid] = copies[uuid].published_like(target.snapshot(uuid))
    others = target.snapshots_except(plan.replaced)
    _check_copies(plan)({**others, **copies})


def _check_copies(plan: CopyPlan) -> Callable[[Mapping[str, Snapshot]], None]:
    is_here = plan.source.store.url == plan.target.store.url
    return check_brought(plan.target, plan.datasets.values(), lambda: plan.source, is_here=is_here)


def run_copy(
    plan: CopyPlan, history: Mapping[str, str] | None = None, progress: Progress = no_progress
) -> ChangeResult:
    """Copy the files and commit them, all datasets or none.

    Digests of data files and index segments are verified on the way. Index files are rewritten,
    since the copies have other names. Raises a `FormatError` for a damaged file, a
    `CommitConflictError` if another run changed the target meanwhile, and a `StoreError`; nothing
    is committed then.
    """
    source, target = plan.source, plan.target
    store, scope = target.store, target.scope
    operation = f"copy {scope.name} from {source.store.url}"
    said = history or {}
    check = _check_copies(plan)
    with source.reading(), ScopeTransaction(target, operation, said, check, None) as changing:
        changing.announce(*plan.datasets.values())
        done_files = count()

        def tell() -> None:
            progress(next(done_files) + 1, plan.files)

        for uuid, new in plan.datasets.items():
            changing.change(_change(plan, uuid, new, changing.commit_id, tell))
        if plan.keeps_owner:  # a renaming must not add what was not copied
            changing.require_base()
        done = changing.commit(f"copied version {source.version} of {source.scope.name}")
        for uuid, new in plan.datasets.items():
            _copy_schema(source.store, store, source.snapshot(uuid), new)
        changing.committed = publish(done)
    return ChangeResult.of(changing)


def _copy_schema(source: ObjectStore, target: ObjectStore, snapshot: Snapshot, new: str) -> None:
    """Let the copy's schema say what the original's says, beyond the classes of its columns.

    If that fails, the next publishing writes a schema.
    """
    table = str(snapshot.properties.get("table", TABLE))
    with suppress(KtkError):
        key = common_metadata_key(new, table)
        target.put(key, source.get(common_metadata_key(snapshot.uuid, table)))


def _change(
    plan: CopyPlan, uuid: str, new: str, commit_id: str, tell: Callable[[], None]
) -> DatasetChange:
    snapshot, store = plan.source.snapshot(uuid), plan.target.store
    copied = _renamed(snapshot, new, commit_id)
    _copy_files(plan.source.store, store, snapshot, copied, tell)
    place = IndexPlace(store, new, commit_id, plan.target.scope.segment_folder(commit_id))
    copied = _with_indices(plan.source.store, place, snapshot, copied)
    rebase = brought(new, copied, replaces=new in plan.replaced)
    entry = plan.source.datasets[uuid].entry
    relation, builder = "", None
    if plan.keeps_owner and entry is not None:
        relation, builder = entry.relation, builder_of(plan.source, uuid)
    builder = builder or DbtNode("", "")
    return DatasetChange(new, "rebuild", rebase, None, relation, builder)


def _renamed(snapshot: Snapshot, uuid: str, commit_id: str) -> Snapshot:
    """The copy, without indexes; names of its files have the commit, in order of position."""
    files, count = snapshot.files, snapshot.file_table.num_rows
    folders = pc.replace_substring_regex(files["label"].combine_chunks(), r"(?s)[^/]*$", "")
    width = len(str(count))
    names = pa.array([f"{commit_id}-0-0-{number:0{width}}" for number in range(count)], pa.string())
    labels = pc.binary_join_element_wise(folders, names, "")
    keys = pc.binary_join_element_wise(f"{uuid}/{TABLE}/", labels, ".parquet", "")
    for column, values in (("label", labels), ("key", keys)):
        place = files.schema.get_field_index(column)
        files = files.set_column(place, files.schema.field(column), values)
    metadata = {key: value for key, value in snapshot.metadata.items() if key != BASE_KEY}
    return replace(with_indices(snapshot, {}), uuid=uuid, file_table=files, metadata=metadata)


def _copy_files(
    source: ObjectStore,
    target: ObjectStore,
    snapshot: Snapshot,
    copied: Snapshot,
    tell: Callable[[], None],
) -> None:
    old, new = snapshot.files["key"].to_pylist(), copied.files["key"].to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = [
            pool.submit(_copy_file, source, target, *item)
            for item in zip(old, new, digests_of(snapshot.files), strict=True)
        ]
        try:
            for job in jobs:
                job.result()
                tell()
        finally:
            for job in jobs:  # after a failure, the others are not awaited
                job.cancel()


def _copy_file(
    source: ObjectStore, target: ObjectStore, old: str, new: str, digest: FileDigest | None
) -> None:
    """Copy a file piece by piece; one with a wrong digest does not appear."""
    found, size = hashlib.sha256(), 0
    with target.open_write(new) as sink:
        with named_damage(source, old), source.open_read(old) as stream:
            while piece := stream.read(_PIECE_BYTES):
                found.update(piece)
                size += len(piece)
                sink.write(piece)
        if digest is not None and (size, shorten(found)) != (digest.size, digest.digest):
            raise FormatError(damaged(source, old, "its content is not what was written"))


def _with_indices(
    source: ObjectStore, place: IndexPlace, snapshot: Snapshot, copied: Snapshot
) -> Snapshot:
    """Write index files with the labels of the copies; segments name files by their numbers."""
    labels = copied.files["label"].combine_chunks()
    indices = {}
    for name, index in indices_of(snapshot).items():
        if index.segments is not None:
            copies = (_copy_segment(source, place, segment) for segment in index.segments)
            indices[name] = ColumnIndex(segments=tuple(copies))
            continue
        t, large = snapshot.schema.field(name).type, name in snapshot.large_columns
        pairs = pairs_of_index(source, index, t, snapshot.files, labels)
        indices[name] = place.build(name, t, pairs, large=large)
    return with_indices(copied, indices)


def _copy_segment(source: ObjectStore, place: IndexPlace, segment: IndexSegment) -> IndexSegment:
    key = new_segment_key(place.folder, place.uuid)
    _copy_file(source, place.store, segment.key, key, segment.digest)
    return replace(segment, key=key)
