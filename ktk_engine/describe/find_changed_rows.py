"""Prepares the comparison of two versions: keys, columns, and the files that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.cube.discovery import visible_columns
from ktk_engine.describe.changed_files import (
    ChangedCells,
    DatasetVersion,
    all_changed,
    compare_files,
)
from ktk_engine.describe.changed_rows import ChangedRows, Compared, Loaded, Version
from ktk_engine.errors import QueryError
from ktk_engine.gate.constraint import CONSTRAINTS, Constraint
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.cell_codes import Codes, cell_codes
from ktk_engine.plan.cube_query import check_known, listed_names
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.type_class import MAX_WIDE_PRECISION, class_name, is_nested


def find_changed_rows(
    before: Loaded,
    after: Loaded,
    engines: tuple[LocalEngine, LocalEngine],
    key: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    where: tuple[Condition, Condition] = (TrueCondition(), TrueCondition()),
) -> ChangedRows:
    """Find the files that two versions do not have in common; no data is read yet.

    Args:
        before: the older version.
        after: the newer version, of the same kind.
        engines: what reads each of them.
        key: columns of a table that identify a row. None takes the dimensions of a cube or dataset
            of a cube, or else a key that is a constraint.
        columns: the columns that are compared besides the key; None means all.
        where: which rows of each version are looked at.

    Raises:
        QueryError: an unknown column, or versions that have no key in common.
    """
    if isinstance(before, LoadedCube) != isinstance(after, LoadedCube):
        raise QueryError(f"{_named(before)} and {_named(after)}: one is a cube, the other a table.")
    keys = [_key(item, key) for item in (before, after)]
    schemas = [item.schema for item in (before, after)]
    by_cells = bool(_cells_of(after)) or bool(_cells_of(before))
    if by_cells:
        _check_cells(before, after)
    chosen = keys[1] if by_cells or key is not None else _common_key(keys, schemas)
    compared, notes = _compared_columns(schemas, chosen, columns, _named(after))
    if others := [i.name for i in compared if i.name in chosen and not i.is_same]:
        raise QueryError(_other_keys(before, after, f"the type of {', '.join(others)} differs"))
    read = [
        tuple(i.name for i in compared if i.before),
        tuple(i.name for i in compared),
    ]
    cells: tuple[ChangedCells, ...] = ()
    if by_cells:
        # A row may begin or cease to fulfil the condition.
        deciding = [(*names, *item.columns) for names, item in zip(read, where, strict=True)]
        cells = tuple(_changed_cells(before, after, deciding))
        known = [side for item in cells for side in item.sides]
        datasets = map(_main_dataset, (before, after))
        mains = [next(side for side in known if side.snapshot is one) for one in datasets]
        partitions = _partitions_of_cells(mains, cells, _within(after))
    else:
        mains = list(compare_files(_whole(before), _whole(after), None))
        partitions = _partitions_of_files(mains, chosen)
    sides = [
        Version(*items)
        for items in zip((before, after), engines, read, where, mains, partitions, strict=True)
    ]
    unique = by_cells or (bool(chosen) and all(_is_verified(i, chosen) for i in (before, after)))
    return ChangedRows(sides[0], sides[1], chosen, unique, compared, cells, notes)


def version_text(version: int, is_changed: bool) -> str:
    """A version, and whether another program has changed it since."""
    if not version:
        return "of another program"
    return f"{version}, changed by another program" if is_changed else str(version)


def _named(loaded: Loaded) -> str:
    state = loaded.state
    version = version_text(state.version, bool(state.changed_by_others))
    return f"{state.scope} of {state.store.url} (version {version})"


def _within(loaded: Loaded) -> tuple[str, ...]:
    """The partition columns of a cell."""
    if isinstance(loaded, LoadedCube):
        return tuple(loaded.specification.partition_columns)
    return tuple(address_partitions(loaded.snapshot))


def _cells_of(loaded: Loaded) -> tuple[str, ...]:
    """What addresses a cell, in the order of the rows; empty for a table."""
    if isinstance(loaded, LoadedCube):
        dimensions = tuple(loaded.specification.dimension_columns)
    else:
        dimensions = loaded.snapshot.dimension_columns
    return (*_within(loaded), *dimensions) if dimensions else ()


def _key(loaded: Loaded, key: Sequence[str] | None) -> tuple[str, ...]:
    """The key of a version: given, by cells, or by a constraint; empty if it has none."""
    if cells := _cells_of(loaded):
        if key is not None:
            raise QueryError(f"{_named(loaded)} has a key already: {', '.join(cells)}.")
        return cells
    if key is not None:
        names = listed_names(_named(loaded), "key", key, loaded.schema.names)
        check_known(_named(loaded), names, loaded.schema.names)
        if nested := [name for name in names if is_nested(loaded.schema.field(name).type)]:
            raise QueryError(f"{_named(loaded)}: a key has no nested columns: {', '.join(nested)}.")
        return names
    keys = _verified_keys(loaded)
    return keys[0] if keys else ()


def _verified_keys(loaded: Loaded) -> list[tuple[str, ...]]:
    """The keys that each commit verifies, a primary key first."""
    if isinstance(loaded, LoadedCube):
        return []
    items = map(Constraint.of, loaded.snapshot.properties.get(CONSTRAINTS) or ())
    found = sorted((item for item in items if item.key), key=lambda i: i.kind != "primary_key")
    return [item.key for item in found if {*item.key} <= {*loaded.schema.names}]


def _is_verified(loaded: Loaded, key: Sequence[str]) -> bool:
    return any({*known} <= {*key} for known in _verified_keys(loaded))


def _common_key(keys: Sequence[tuple[str, ...]], schemas: Sequence[pa.Schema]) -> tuple[str, ...]:
    """The newer version's key if both have its columns, else the older one's, else none."""
    for found in (keys[1], keys[0]):
        if found and all(
            name in schema.names and schema.field(name).type == schemas[1].field(name).type
            for name in found
            for schema in schemas
        ):
            return found
    return ()


def _check_cells(before: Loaded, after: Loaded) -> None:
    """Refuse versions whose cells have other addresses."""
    old, new = _cells_of(before), _cells_of(after)
    if {*old} != {*new}:
        said = f"rows were addressed by {', '.join(old) or 'nothing'}, and now by {', '.join(new)}"
        raise QueryError(_other_keys(before, after, said))
    if {*_within(before)} != {*_within(after)}:
        said = (
            f"cells were partitioned by {', '.join(_within(before)) or 'nothing'}, and now by "
            f"{', '.join(_within(after)) or 'nothing'}"
        )
        raise QueryError(_other_keys(before, after, said))


def _other_keys(before: Loaded, after: Loaded, why: str) -> str:
    return (
        f"{_named(after)} cannot be compared with {_named(before)}: {why}. Versions with the same "
        "keys, of the same classes, can be compared."
    )


def _compared_columns(
    schemas: Sequence[pa.Schema], key: Sequence[str], columns: Sequence[str] | None, named: str
) -> tuple[tuple[Compared, ...], tuple[str, ...]]:
    """The columns to compare, and what to say about the others."""
    old, new = schemas
    names = tuple(new.names)
    if columns is not None:
        names = listed_names(named, "columns", columns, new.names)
        check_known(named, names, new.names)
    order = [*key, *(name for name in names if name not in key)]
    found = [_compared(old, new.field(name)) for name in order]
    gone = [name for name in old.names if name not in new.names] if columns is None else []
    notes = [f"column `{name}` is gone" for name in gone]
    for item in found:
        if item.name not in old.names:
            notes.append(f"column `{item.name}` is new")
        elif not item.is_same:
            classes = (class_name(schema.field(item.name).type) for schema in schemas)
            notes.append(f"column `{item.name}` was {' and is now '.join(classes)}")
            if not item.before:
                notes[-1] += ", so its values count as new"
    return tuple(found), tuple(notes)


def _compared(old: pa.Schema, field: pa.Field) -> Compared:
    """How a column is compared: in a type that holds its values in both versions, if there is."""
    name, new = field.name, field.type
    if name not in old.names:
        return Compared(name, new, False, False)
    t = old.field(name).type
    if t.equals(new):
        return Compared(name, new, True, True)
    if pat.is_null(t):
        return Compared(name, new, True, False)
    if pat.is_null(new):
        return Compared(name, t, True, False)
    if pat.is_decimal(new) and (pat.is_decimal(t) or pat.is_integer(t)):
        scale = max(new.scale, t.scale if pat.is_decimal(t) else 0)
        return Compared(name, pa.decimal256(MAX_WIDE_PRECISION, scale), True, False)
    return Compared(name, new, False, False)


def datasets_of(loaded: Loaded) -> dict[str, Snapshot]:
    """The datasets of a cube by id, or a table."""
    if isinstance(loaded, LoadedCube):
        return loaded.snapshots
    return {loaded.snapshot.uuid: loaded.snapshot}


def _whole(loaded: Loaded, dataset: str = "") -> DatasetVersion:
    snapshots = datasets_of(loaded)
    return all_changed(loaded.state.store, snapshots[dataset or next(iter(snapshots))])


def _changed_cells(
    before: Loaded, after: Loaded, columns: Sequence[Sequence[str]]
) -> Iterator[ChangedCells]:
    """The cells in files that differ, of each dataset that gives one of the columns."""
    address = {*_cells_of(after)}
    sides = []
    for loaded, names in zip((before, after), columns, strict=True):
        found = {}
        for name, snapshot in datasets_of(loaded).items():
            payload = {*visible_columns(snapshot)} - address
            if snapshot is _main_dataset(loaded) or payload & {*names}:
                within = tuple(n for n in _within(after) if n in snapshot.partition_keys)
                own = tuple(n for n in _cells_of(after) if n in snapshot.columns)
                found[name] = (within, tuple(n for n in own if n not in within))
        sides.append(found)
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        forms = [side.get(name) for side in sides]
        form, other = forms
        if form and other and all({*a} == {*b} for a, b in zip(form, other, strict=True)):
            files = compare_files(_whole(before, name), _whole(after, name), form[0])
            yield ChangedCells(files, *form)
            continue
        for loaded, known in zip((before, after), forms, strict=True):
            if known:
                yield ChangedCells((_whole(loaded, name),), *known)


def _main_dataset(loaded: Loaded) -> Snapshot:
    """The dataset whose files make the partitions: the table, or the seed dataset of a cube."""
    if isinstance(loaded, LoadedCube):
        return loaded.snapshots[loaded.specification.seed_dataset]
    return loaded.snapshot


def _partitions_of_cells(
    mains: Sequence[DatasetVersion], cells: Sequence[ChangedCells], within: Sequence[str]
) -> list[Codes]:
    """Number the partitions in which cells may differ; -1 for the others."""
    found = cell_codes([side.partitions(within) for side in mains]).parts
    reached = [np.zeros(len(codes), np.bool_) for codes in found]
    for item in cells:
        tables = [item.partitions(), *(side.partitions(item.within) for side in mains)]
        changed, *own = cell_codes(tables).parts
        reached = [old | np.isin(codes, changed) for old, codes in zip(reached, own, strict=True)]
    return [np.where(flags, codes, -1) for flags, codes in zip(reached, found, strict=True)]


def _partitions_of_files(mains: Sequence[DatasetVersion], key: Sequence[str]) -> list[Codes]:
    """Number the partitions of a table's changed files, where a row never leaves its partition."""
    old, new = (
        {(name, side.snapshot.schema.field(name).type) for name in side.snapshot.partition_keys}
        for side in mains
    )
    stay = old == new and (not key or {name for name, _ in old} <= {*key})
    names = mains[0].snapshot.partition_keys if stay else ()
    found = cell_codes([side.partitions(names) for side in mains]).parts
    return [np.where(side.changed, c, -1) for side, c in zip(mains, found, strict=True)]
