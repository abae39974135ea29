"""Changes columns, comments and properties of relations, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ktk_engine.errors import ConfigurationError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.properties import Notes, note
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.identifier import Identifier
from ktk_engine.warehouse.alter_statement import Alteration
from ktk_engine.warehouse.relations import Relations
from ktk_engine.write.alter.alter_columns import alter_columns
from ktk_engine.write.alter.column_changes import ColumnChanges, column_of
from ktk_engine.write.retry import retry_on_conflict
from ktk_engine.write.staging import staged


def alter_relation(relations: Relations, wanted: Alteration, history: Mapping[str, str]) -> None:
    """Change columns, comments and properties of a relation; `history` is for the log.

    Raises a `DatasetNotFoundError` if there is no such relation.
    """
    schema, name = wanted.relation
    found = relations.existing(schema, name)
    if found.kind == "view":
        _comment_on_view(relations, wanted)
    else:
        alter(relations.store_of(schema), found.uuid, wanted, history)


def alter(store: ObjectStore, uuid: str, wanted: Alteration, history: Mapping[str, str]) -> None:
    """Change columns, comments and properties of a dataset; each kind is a commit of its own."""
    if wanted.columns != ColumnChanges():
        _alter_columns(store, uuid, wanted, history)
    if wanted.notes != Notes():
        snapshot = resolve(store, scope_of(uuid)).snapshot(uuid)
        columns = {column_of(snapshot, n): text for n, text in wanted.notes.columns.items()}
        note(store, uuid, replace(wanted.notes, columns=columns), history)


def _alter_columns(
    store: ObjectStore, uuid: str, wanted: Alteration, history: Mapping[str, str]
) -> None:
    cache = MetadataCache()

    def run(state: State) -> None:
        changes = wanted.columns
        if wanted.lenient:
            changes = _of_existing(state.snapshot(uuid), changes)
        said = {"reason": str(changes), **history}
        with staged(state, f"alter {uuid}", said) as staging:
            alter_columns(staging, uuid, changes, cache)

    retry_on_conflict(store, scope_of(uuid), run)


def _of_existing(base: Snapshot, changes: ColumnChanges) -> ColumnChanges:
    """Leave out columns to drop that do not exist."""
    names = set(map(Identifier, base.schema.names))
    return replace(changes, drop=tuple(n for n in changes.drop if Identifier(n) in names))


def _comment_on_view(relations: Relations, wanted: Alteration) -> None:
    """Change the comments of a view; everything else depends on its query."""
    schema, name = wanted.relation
    if wanted.columns != ColumnChanges() or wanted.notes.set or wanted.notes.unset:
        raise ConfigurationError(
            f"{schema}.{name} is a view: its columns are those of its query, and it has no "
            "properties. Nothing was changed. Replace the view."
        )
    relations.add_comments(schema, name, wanted.notes.comment, wanted.notes.columns)
