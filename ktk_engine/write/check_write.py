"""All checks of a write that need no rows: claim, layout, gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    ConsistencyError,
    KtkError,
    TypeClassError,
)
from ktk_engine.gate.gate import ValidatedWrite, check_configured, validate_write
from ktk_engine.gate.ownership import check_ownership
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.arrow_name import sql_name
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.type_class import class_name
from ktk_engine.write.rows import Rows, schema_of


def check_write(schema: pa.Schema, target: WriteRequest, state: State) -> ValidatedWrite:
    """Check a write before it has any file.

    A dataset that does not exist is built, whatever the mode says. Raises a `TypeClassError`, a
    `ConfigurationError` if columns or layout do not fit, and a `ConsistencyError` if another node
    builds the dataset or the cube's datasets would not fit together.
    """
    if target.mode and target.uuid not in state.datasets:
        target = replace(target, mode=None)
    check_configured(target, schema)
    claimed = check_ownership(target, state)
    write = replace(_passed_gate(schema, target, state), claimed=claimed)
    _check_old_values(write)
    for key, names in (("clustered_by", target.clustered_by), ("bucket_by", target.bucket_by)):
        _check_known(target, key, names, write.committed.names)
    _check_sortable(target, write.committed)
    return write


def _passed_gate(schema: pa.Schema, target: WriteRequest, state: State) -> ValidatedWrite:
    """Pass the gate with the cube's datasets, except for those that the run is yet to replace.

    Of these, only misfits leave the cube, in the commit of this write: what is committed always
    fits. Raises a `CommitConflictError` if a misfit has changed since `state`.
    """
    own = state.snapshots_by_id()
    if target.external:
        external = {name: item for name, item in target.external.items() if name not in own}
        target = replace(target, external=external)

    def fits(name: str) -> bool:
        pair = {key: own[key] for key in (name, target.dataset) if key in own}
        try:
            return not validate_write(target, schema, state, pair).leaving
        except KtkError:
            return False

    try:
        return validate_write(target, schema, state)
    except (TypeClassError, ConsistencyError) as error:
        misfits = sorted(name for name in own if name != target.dataset and not fits(name))
        leaving = tuple(sorted({*misfits} & {*target.rebuilt()}))
        _refuse_old_misfits(state, [name for name in misfits if name not in leaving])
        if not leaving:
            if way_out := _way_out(error, target, misfits):
                raise ConsistencyError(error, "\n", way_out) from error
            raise
    staying = {name: item for name, item in own.items() if name not in leaving}
    found = validate_write(target, schema, state, staying)
    note = f"taken out of the cube until this run builds it: {', '.join(leaving)}"
    return replace(found, leaving=(*found.leaving, *leaving), notes=(*found.notes, note))


def _refuse_old_misfits(state: State, misfits: Sequence[str]) -> None:
    """Raise a `CommitConflictError` if a misfit is no longer what this write looked at.

    The run itself may have replaced it, so that it is not among those that may leave any more.
    """
    if not misfits:
        return
    newest = resolve(state.store, state.scope)
    for uuid in map(state.scope.uuid_of, misfits):
        if newest.version > state.version and _entry(newest, uuid) != _entry(state, uuid):
            raise CommitConflictError(
                f"Dataset {uuid} was changed by version {newest.version} of its log, after this "
                "run looked at it. Nothing was written. Run it again."
            )


def _entry(state: State, uuid: str) -> DatasetEntry | None:
    return state.datasets[uuid].entry if uuid in state.datasets else None


def _way_out(
    error: TypeClassError | ConsistencyError,
    target: WriteRequest,
    misfits: Sequence[str],
) -> Message | None:
    """Say how to rebuild datasets that were changed together, if stored ones do not fit."""
    built_by = target.built_by or {}
    models = [built_by[name] for name in misfits if name in built_by]
    if isinstance(error, TypeClassError) or not models or target.owner is None:
        return None
    own = built_by.get(target.dataset, target.dataset)
    return Message(
        f"If {', '.join(misfits)} have changed as well, which are stored as they were: ",
        Remedy("rebuild_together", select=" ".join([*models, own])),
    )


def check_writes(
    targets: Sequence[WriteRequest], rows: Mapping[str, Rows], state: State
) -> list[ValidatedWrite]:
    """Check the writes of one commit before any of them has a file; see `check_write`.

    `rows` are by id. Each write is checked against the datasets as the writes before it leave them;
    the seed dataset comes first.
    """
    staged: dict[str, Snapshot | None] = {item.uuid: None for item in targets if not item.mode}
    checked: list[ValidatedWrite] = []
    for target in sorted(targets, key=lambda item: item.role != "seed"):
        seen = state.with_staged(staged) if staged else state
        checked.append(check_write(schema_of(rows[target.dataset]), target, seen))
        staged[target.uuid] = checked[-1].candidate
    return checked


def _check_old_values(write: ValidatedWrite) -> None:
    """Refuse a new column if files that stay have old values of a dropped column of its name."""
    base, gone = write.base, write.target.replaced
    if base is None:
        return
    new = {*map(Identifier, write.committed.names)}.difference(map(Identifier, base.schema.names))
    if not new:
        return
    kept = pa.repeat(pa.scalar(True), base.file_table.num_rows)
    if gone is not None:
        replaced = gone["label"].combine_chunks()
        kept = pc.invert(pc.is_in(base.file_column("label"), value_set=replaced))
    used = pc.unique(base.file_column("physical").filter(kept).drop_null()).to_pylist()
    stored = {Identifier(n) for place in used for n in base.physical_schemas[place].names}
    if found := sorted(str(name) for name in new if name in stored):
        name = readable_identifier(found[0])
        raise ConfigurationError(
            f"Dataset {base.uuid}: files that stay hold values of an earlier column {name}, "
            "which would come back. Nothing was written. Add it by hand first, which writes "
            f"these rows again (alter table {base.uuid} add column {name} "
            f"{sql_name(write.committed.field(found[0]).type)}), or ",
            Remedy("replace_rows"),
            ".",
        )


def _check_sortable(target: WriteRequest, schema: pa.Schema) -> None:
    for name in target.clustered_by:
        if pat.is_nested(schema.field(name).type):
            raise ConfigurationError(
                f"Dataset {target.uuid}: clustered_by names `{name}`, a column of class "
                f"{class_name(schema.field(name).type)}, by which rows cannot be sorted. Nothing "
                "was written."
            )


def _check_known(
    target: WriteRequest, key: str, names: Sequence[str], columns: Sequence[str]
) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        hint = did_you_mean(unknown[0], columns)
        raise ConfigurationError(
            f"Dataset {target.uuid}: {key} names {', '.join(unknown)}, which the rows "
            f"lack.{hint} They have: {', '.join(columns)}. Nothing was written."
        )
