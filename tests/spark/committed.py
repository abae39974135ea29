"""What two ways of writing have to do alike: what they read, refuse and commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from ktk_engine.change.stage import Stage
from ktk_engine.errors import KtkError
from tests.support.changes import WriteRequest, WriteResult
from tests.support.committed import snapshot_of
from tests.support.queries import Condition, IsIn
from tests.support.stores import LocalStore


def committed(store: LocalStore, target: WriteRequest) -> list[Any]:
    """The schema and each file's place, columns and rows; names of files differ."""
    snapshot = snapshot_of(store, target.uuid)
    files = []
    for key, label in zip(snapshot.files["key"].to_pylist(), snapshot.labels, strict=True):
        table = pq.ParquetFile(store.root / key).read()
        rows = repr(table.to_pylist())
        files.append((label.rpartition("/")[0], str(table.schema.remove_metadata()), rows))
    return [str(snapshot.schema), sorted(snapshot.indices), *sorted(files)]


def outcome(
    monkeypatch: Any,
    store: LocalStore,
    target: WriteRequest,
    write: Callable[[], WriteResult | None],
) -> list[Any]:
    """What a rewrite says, what its commit depends on, and what it leaves."""
    reads: list[Any] = []
    put = Stage.put

    def note(self: Stage, rows: Any, types: Any, touched: Any, read: Any) -> WriteResult:
        reads.append([sorted(map(_shown, conditions)) for conditions in read])
        return put(self, rows, types, touched, read)

    said: object
    with monkeypatch.context() as patch:
        patch.setattr(Stage, "put", note)
        try:
            done = write()
            said = done and (done.changes, done.rewritten_files, done.total_files, done.rows)
        except KtkError as error:
            said = str(error)
    return [said, reads, *committed(store, target)]


def _shown(condition: Condition) -> str:
    """Values come in any order."""
    if isinstance(condition, IsIn):
        return f"{condition.column} in {sorted(condition.values.to_pylist(), key=repr)}"
    return repr(condition)
