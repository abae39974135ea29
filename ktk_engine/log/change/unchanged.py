"""Tells whether a change leaves a dataset as it was, so that no version has to be made of it.

See docs/design/files-and-commits.md, The same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ktk_engine.cube.user_metadata import OF_A_BUILD
from ktk_engine.format.parse_json import render_json
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.entry import Operation
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot, changed_files

# Others look for themselves whether there is something to do.
_OF_ROWS: frozenset[Operation] = frozenset(("rebuild", "append", "replace", "compact"))


def leaves_unchanged(
    head: State, change: DatasetChange, before: Snapshot | None, after: Snapshot | None
) -> bool:
    """Whether a change of rows leaves files, columns, settings, name and owner as they were.

    Where another program has changed the scope, a version is made that says what became of that.
    """
    if change.operation not in _OF_ROWS or before is None or after is None:
        return False
    entry = head.datasets[change.uuid].entry
    if entry is None or head.changed_by_others:
        return False
    builder = change.builder
    if builder is not None and (builder.node, builder.project) != (entry.node, entry.project):
        return False
    return change.relation in (None, entry.relation) and _is_same(before, after)


def _is_same(before: Snapshot, after: Snapshot) -> bool:
    if before is after:
        return True
    if not before.schema.equals(after.schema) or _settings(before) != _settings(after):
        return False
    if before.file_table.num_rows != after.file_table.num_rows:
        return False
    return not any(files.num_rows for files in changed_files(before, after))


def _settings(snapshot: Snapshot) -> tuple[Any, ...]:
    """All but columns, files and the time of the build, as it is stored."""
    said = {key: value for key, value in snapshot.metadata.items() if key not in OF_A_BUILD}
    return (
        snapshot.partition_keys,
        dict(snapshot.indices),
        dict(snapshot.index_segments),
        list(snapshot.physical_schemas),
        *map(_stored, (said, snapshot.properties, snapshot.others)),
    )


def _stored(content: Mapping[str, Any]) -> bytes:
    return render_json(content, sort_keys=True)
