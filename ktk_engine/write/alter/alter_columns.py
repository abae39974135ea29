"""Adds, drops and renames columns of a dataset, in this process.

Readers, Kartothek's included, find the columns of a data file by name. Files are therefore
rewritten when a name changes or goes: no reader sees the old column, and a column added later under
that name does not bring the old values back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import CommitConflictError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.physical_schemas import physical_schemas, unstored_columns
from ktk_engine.format.comments import Comments, comments_of, with_comments
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.state import State
from ktk_engine.publish.publish import declines_documents
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.identifier import Identifier
from ktk_engine.write.alter.column_changes import ColumnChanges, widened
from ktk_engine.write.check_write import check_write
from ktk_engine.write.present_rows import present_rows
from ktk_engine.write.staging import Staging


def alter_columns(
    staging: Staging, uuid: str, changes: ColumnChanges, cache: MetadataCache
) -> bool:
    """Change the columns of a dataset, and say whether there was anything to change.

    A type of the same class changes nothing: a column already holds every value of its class.
    Raises a `ConfigurationError` for columns that do not exist or cannot change like this and for
    names that are taken, a `TypeClassError` for names and types that no column can have, and a
    `LocalEngineError` if a piece does not fit into memory.
    """
    state = staging.state
    base = state.snapshot(uuid)
    changes = changes.of(base)
    changes = replace(changes, types=widened(base, changes.types))
    schema = changes.schema(base.schema)
    if schema.equals(base.schema):
        return False
    if _is_read_as_it_is(state, base, changes, cache):
        # At the gate a column gets the type of its class, as where its rows are written.
        write = check_write(schema, replace(_target(base, changes), mode="append"), state)
        change = _Altered(base, changes, write.committed)
        staging.change(DatasetChange(uuid, "alter", change, frozenset()))
        if changes.add and state.scope.cube:
            staging.transaction.chose(_publishes_documents)
        return True
    _rewrite(staging, base, changes, cache)
    return True


def write_missing_columns(staging: Staging, uuid: str, cache: MetadataCache) -> None:
    """Write the rows of a cube's dataset again if a file lacks a column, for Kartothek.

    Raises a `LocalEngineError` if a piece does not fit into memory.
    """
    base = staging.state.snapshot(uuid)
    schemas, at = physical_schemas(staging.state.store, cache.footers, base, base.files)
    if unstored_columns(base, schemas, at):
        _rewrite(staging, base, ColumnChanges(), cache)


def _is_read_as_it_is(
    state: State, base: Snapshot, changes: ColumnChanges, cache: MetadataCache
) -> bool:
    """Whether every reader gets the changed rows from the present files.

    Our readers give null where a file lacks a column. Kartothek does so for a table. For a cube, it
    asks the files for each column by name, and fails; `write_missing_columns` lets it read them.
    """
    in_cube = state.scope.cube and not declines_documents(state)
    if changes.drop or changes.rename or (changes.add and in_cube):
        return False
    schemas, at = physical_schemas(state.store, cache.footers, base, base.files)
    used = [schemas[place] for place in pc.unique(at).to_pylist()]
    stored = {Identifier(name) for schema in used for name in schema.names}
    return not any(Identifier(name) in stored for name in changes.add)


def _publishes_documents(snapshot: Snapshot) -> bool:
    return snapshot.is_seed and snapshot.has_documents


def _target(base: Snapshot, changes: ColumnChanges) -> WriteRequest:
    known = WriteRequest.of(base)
    return replace(
        known,
        indexes=changes.renamed(known.indexes),
        clustered_by=changes.renamed(known.clustered_by),
        on_schema_change="sync_all_columns",
    )


def _rewrite(
    staging: Staging, base: Snapshot, changes: ColumnChanges, cache: MetadataCache
) -> None:
    """Write all rows again, with the changes and otherwise as they are."""
    state = staging.state
    present = present_rows(state, base, cache.footers)
    schema = changes.schema(present.schema)
    rows = pa.RecordBatchReader.from_batches(schema, _changed(present, changes, schema))
    # A row that another commit adds meanwhile has the old columns.
    target = _target(base, changes)
    target = replace(target, mode="files", replaced=base.files, looked_for=((),), verb="alter")
    write = check_write(schema, target, state)
    staging.write(write, rows)
    change = _Altered(base, changes, write.committed, written=True)
    staging.change(DatasetChange(base.uuid, "alter", change, frozenset()))


def _changed(
    rows: pa.RecordBatchReader, changes: ColumnChanges, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Give rows the changed columns; new columns are null."""
    kept = [name for name in rows.schema.names if name not in changes.drop]
    for batch in rows:
        columns = [batch[name] for name in kept]
        columns += [pa.nulls(len(batch), field.type) for field in schema][len(kept) :]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class _Altered:
    """The dataset's change in the commit."""

    started: Snapshot  # as the changes found the dataset
    changes: ColumnChanges
    schema: pa.Schema  # of all columns, after the changes
    written: bool = False  # whether rows were rewritten: that write detects conflicts itself

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        """Give the new snapshot; raises a `CommitConflictError` if columns changed meanwhile."""
        if base is None or not (self.written or base.schema == self.started.schema):
            raise CommitConflictError(
                f"Dataset {self.started.uuid} was removed, or had its columns changed, meanwhile. "
                "Nothing was committed. Run it again."
            )
        changes, comments = self.changes, comments_of(base.metadata)
        texts = {
            changes.rename.get(name, name): text
            for name, text in comments.only(self.started.schema.names).columns.items()
            if name not in changes.drop
        }
        said = Comments(comments.relation, {**texts, **changes.comments})
        properties = dict(base.properties)
        if "clustered_by" in properties:
            properties["clustered_by"] = list(changes.renamed(properties["clustered_by"]))
        metadata = with_comments(base.metadata, said)
        return replace(base, schema=self.schema, metadata=metadata, properties=properties)
