"""Runs the model's operations on a real store, through Arrow: no JVM is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from ktk_engine import Store
from ktk_engine.change.by_arrow import _replaced  # deep: a merge without Spark
from ktk_engine.change.replacement import Replacement  # deep: a merge without Spark
from ktk_engine.errors import StoreError
from ktk_engine.write.affected_files import affected_files  # deep: a merge without Spark
from tests.faults.content import ENRICHMENT, SEED, TABLE, Row, Verb
from tests.support.changes import (
    Retention,
    WriteRequest,
    build,
    comment_on,
    compact,
    find_compaction,
    publish_head,
    remove,
    retry_on_conflict,
    run_cleanup,
)
from tests.support.committed import State, resolve, scope_of
from tests.support.documents import Comments
from tests.support.queries import conjunction, is_in, read_rows
from tests.support.stores import LocalStore, ObjectStore

COLUMNS = {TABLE: ("P", "k", "v"), SEED: ("P", "L", "v"), ENRICHMENT: ("P", "L", "w")}
TARGETS = {
    TABLE: WriteRequest("t", partition_by=("P",), indexes=("k",)),
    SEED: WriteRequest("s", "seed", "c", ("L",), ("P",), indexes=("v",), buckets=2),
    ENRICHMENT: WriteRequest("e", "enrichment", "c", ("L",), ("P",), buckets=2),
}
SUPERSEDED_AT_ONCE = Retention(versions=1)


def table(uuid: str, rows: tuple[Row, ...]) -> pa.Table:
    """Rows as the engine takes them."""
    place, key, payload = COLUMNS[uuid]
    return pa.table(
        {
            place: pa.array([row[0] for row in rows], pa.string()),
            key: pa.array([row[1] for row in rows], pa.int64()),
            payload: pa.array([row[2] for row in rows], pa.int64()),
        }
    )


def prepare(store: LocalStore, verb: Verb) -> None:
    """What has to be there before the operation: for `publish`, a commit that is not published."""
    if verb.name == "publish":
        _append(_Unpublished(store.root), verb)


def run(store: ObjectStore, verb: Verb) -> None:
    """Do it."""
    _VERBS[verb.name](store, verb)


class _Unpublished(LocalStore):
    """A store on which documents cannot be replaced, so that commits stay unpublished."""

    def put(self, key: str, data: bytes) -> None:
        if key.startswith(".ktk/"):
            return super().put(key, data)
        raise StoreError(f"cannot write {key}: on purpose")


def _build(store: ObjectStore, verb: Verb) -> None:
    build(store, table(verb.uuid, verb.rows), TARGETS[verb.uuid], full_refresh=True)


def _append(store: ObjectStore, verb: Verb) -> None:
    rows = table(verb.uuid, verb.rows)
    build(store, rows, TARGETS[verb.uuid], mode="append")


def _overwrite(store: ObjectStore, verb: Verb) -> None:
    rows = table(verb.uuid, verb.rows)
    build(store, rows, TARGETS[verb.uuid], mode="partitions")


def _merge(store: ObjectStore, verb: Verb) -> None:
    """As `operations.merge` does for few rows, whose frame of new rows alone needs Spark."""
    new, target = table(verb.uuid, verb.rows), TARGETS[verb.uuid]
    key = new.column_names[1]

    def write(state: State) -> None:
        base = state.snapshot(verb.uuid)
        reads = [is_in(key, base.schema.field(key).type, new[key].unique().to_pylist())]
        files = affected_files(store, base, reads)
        old = new.slice(0, 0)
        if files.num_rows:
            old = read_rows(store, base, files, new.column_names)
        change = Replacement((key,))
        if verb.name == "merge":
            change = Replacement((key,), updated=tuple(new.column_names), appends=False)
        rows = pa.concat_tables(_replaced(change, [old], new, new, new.schema, base.schema))
        read = {"replaced": files["label"].to_pylist(), "reads": [reads], "state": state}
        build(store, rows, target, mode="files", **read)

    retry_on_conflict(store, target.scope, write)


def _compact(store: ObjectStore, verb: Verb) -> None:
    def write(state: State) -> None:
        found = find_compaction(state, verb.uuid)
        if found.files.num_rows:
            compact(found)

    retry_on_conflict(store, TARGETS[verb.uuid].scope, write)


def _comment(store: ObjectStore, verb: Verb) -> None:
    comment_on(store, verb.uuid, Comments(f"number {verb.number}", {"v": "a payload"}))


def _remove(store: ObjectStore, verb: Verb) -> None:
    scope = scope_of(verb.uuid)
    remove(store, scope.name, None if scope.kind == "dataset" else scope.dataset_id(verb.uuid))


def _cleanup(store: ObjectStore, verb: Verb) -> None:
    run_cleanup(store, scope_of(verb.uuid), SUPERSEDED_AT_ONCE)


def _publish(store: ObjectStore, verb: Verb) -> None:
    warning = publish_head(store, resolve(store, scope_of(verb.uuid)).scope).warning
    if warning:
        raise StoreError(warning)


def _write_merge(store: ObjectStore, verb: Verb) -> None:
    rows = table(verb.uuid, verb.rows)
    Store.of(store).write_table(verb.uuid, rows, "merge", key=[COLUMNS[verb.uuid][1]])


def _delete(store: ObjectStore, verb: Verb) -> None:
    where = f"{COLUMNS[verb.uuid][2]} < {verb.number}"
    if verb.uuid == TABLE:
        Store.of(store).table(verb.uuid).delete(where)
    else:
        Store.of(store).cube("c").delete(where, [TARGETS[verb.uuid].dataset])


def _update(store: ObjectStore, verb: Verb) -> None:
    places = sorted({row[0] for row in verb.rows})
    where = conjunction([is_in("P", pa.string(), places)])
    rows = {TARGETS[verb.uuid].dataset: table(verb.uuid, verb.rows)}
    Store.of(store).cube("c").update(rows, where)


def _transaction(store: ObjectStore, verb: Verb) -> None:
    dataset = TARGETS[verb.uuid].dataset
    with Store.of(store).cube("c").transaction() as changes:
        changes.append({dataset: table(verb.uuid, verb.rows)})
        changes.delete(f"{COLUMNS[verb.uuid][2]} < {verb.number}", [dataset])


_VERBS: Mapping[str, Callable[[ObjectStore, Verb], None]] = {
    "build": _build,
    "append": _append,
    "overwrite": _overwrite,
    "merge": _merge,
    "delete+insert": _merge,
    "compact": _compact,
    "comment": _comment,
    "remove": _remove,
    "cleanup": _cleanup,
    "publish": _publish,
    "write merge": _write_merge,
    "delete": _delete,
    "update": _update,
    "transaction": _transaction,
}
