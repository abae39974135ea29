"""A write that has passed every check that needs no rows: claim, layout, gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from ktk_engine.gate.target import Target
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.arrow_name import sql_name
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.type_class import class_name
from ktk_engine.write.write_context import WriteContext
from ktk_engine.write.write_mode import WriteMode


@dataclass(frozen=True)
class CheckedWrite:
    """A write that has passed the checks."""

    target: Target
    state: State  # what the rows were computed from; its store is written to
    mode: WriteMode | None  # what stays of the old content; None: rebuild
    gate: ValidatedWrite
    history: Mapping[str, str]  # of the commit, for the log
    claimed: str  # whose dataset is taken over, as a note; else empty
    reads: Reads = NOTHING_READ  # by the computation of the rows

    @property
    def base(self) -> Snapshot | None:
        """The dataset that rows are added to; None if it is rebuilt."""
        return self.state.snapshot(self.target.uuid) if self.mode else None


def check_write(
    schema: pa.Schema,
    target: Target,
    state: State,
    mode: WriteMode | None,
    context: WriteContext,
) -> CheckedWrite:
    """Check a write before it has any file.

    A dataset that does not exist is built, whatever `mode` says. Raises a `TypeClassError`, a
    `ConfigurationError` if columns or layout do not fit, and a `ConsistencyError` if another node
    builds the dataset or the cube's datasets would not fit together.
    """
    if target.uuid not in state.datasets:
        mode = None
    keeps_rows, full_refresh = mode is not None, context.full_refresh
    check_configured(target, schema)
    claimed = check_ownership(target, state, keeps_rows, full_refresh)
    gate = _passed_gate(schema, target, state, context, keeps_rows)
    if mode is not None:
        _check_old_values(state.snapshot(target.uuid), mode, gate)
    for key, names in (("clustered_by", target.clustered_by), ("bucket_by", target.bucket_by)):
        _check_known(target, key, names, gate.committed.names)
    _check_sortable(target, gate.committed)
    return CheckedWrite(target, state, mode, gate, context.history, claimed, context.reads)


def _passed_gate(
    schema: pa.Schema,
    target: Target,
    state: State,
    context: WriteContext,
    keeps_rows: bool,
) -> ValidatedWrite:
    """Pass the gate with the cube's datasets, except for those that the run is yet to replace.

    Of these, only misfits leave the cube, in the commit of this write: what is committed always
    fits. Raises a `CommitConflictError` if a misfit has changed since `state`.
    """
    own = state.snapshots_by_id()
    elsewhere = {name: item for name, item in context.elsewhere.items() if name not in own}

    def passed(datasets: Mapping[str, Snapshot]) -> ValidatedWrite:
        return validate_write(
            target, schema, datasets, context.full_refresh, context.built_by, keeps_rows, elsewhere
        )

    def fits(name: str) -> bool:
        pair = {key: own[key] for key in (name, target.dataset) if key in own}
        try:
            return not passed(pair).leaving
        except KtkError:
            return False

    try:
        return passed(own)
    except (TypeClassError, ConsistencyError) as error:
        misfits = sorted(name for name in own if name != target.dataset and not fits(name))
        leaving = tuple(sorted({*misfits} & {*context.rebuilt()}))
        _refuse_old_misfits(state, [name for name in misfits if name not in leaving])
        if not leaving:
            if way_out := _way_out(error, target, misfits, context):
                raise ConsistencyError(Message(error, "\n", way_out)) from error
            raise
    found = passed({name: item for name, item in own.items() if name not in leaving})
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
    target: Target,
    misfits: Sequence[str],
    context: WriteContext,
) -> Message | None:
    """Say how to rebuild datasets that were changed together, if stored ones do not fit."""
    built_by = context.built_by or {}
    models = [built_by[name] for name in misfits if name in built_by]
    if isinstance(error, TypeClassError) or not models or target.owner is None:
        return None
    own = built_by.get(target.dataset, target.dataset)
    return Message(
        f"If {', '.join(misfits)} have changed as well, which are stored as they were: ",
        Remedy("rebuild_together", select=" ".join([*models, own])),
    )


@dataclass(frozen=True)
class Planned:
    """A write to be checked."""

    target: Target
    schema: pa.Schema  # of the new rows
    mode: WriteMode | None  # what stays of the old content; None: new or replaced


def check_writes(
    writes: Sequence[Planned], state: State, context: WriteContext
) -> list[CheckedWrite]:
    """Check the writes of one commit before any of them has a file; see `check_write`.

    Each is checked against the datasets as the writes before it leave them; the seed dataset comes
    first.
    """
    staged: dict[str, Snapshot | None] = {
        write.target.uuid: None for write in writes if write.mode is None
    }
    checked: list[CheckedWrite] = []
    for write in sorted(writes, key=lambda item: item.target.role != "seed"):
        seen = state.with_staged(staged) if staged else state
        checked.append(check_write(write.schema, write.target, seen, write.mode, context))
        staged[write.target.uuid] = checked[-1].gate.candidate
    return checked


def _check_old_values(base: Snapshot, mode: WriteMode, gate: ValidatedWrite) -> None:
    """Refuse a new column if files that stay have old values of a dropped column of its name."""
    new = {*map(Identifier, gate.committed.names)}.difference(map(Identifier, base.schema.names))
    if not new:
        return
    kept = pa.repeat(pa.scalar(True), base.file_table.num_rows)
    if mode.replaced is not None:
        replaced = mode.replaced["label"].combine_chunks()
        kept = pc.invert(pc.is_in(base.file_column("label"), value_set=replaced))
    used = pc.unique(base.file_column("physical").filter(kept).drop_null()).to_pylist()
    stored = {Identifier(n) for place in used for n in base.physical_schemas[place].names}
    if found := sorted(str(name) for name in new if name in stored):
        name = readable_identifier(found[0])
        raise ConfigurationError(
            Message(
                f"Dataset {base.uuid}: files that stay hold values of an earlier column {name}, "
                "which would come back. Nothing was written. Add it by hand first, which writes "
                f"these rows again (alter table {base.uuid} add column {name} "
                f"{sql_name(gate.committed.field(found[0]).type)}), or ",
                Remedy("replace_rows"),
                ".",
            )
        )


def _check_sortable(target: Target, schema: pa.Schema) -> None:
    for name in target.clustered_by:
        if pat.is_nested(schema.field(name).type):
            raise ConfigurationError(
                f"Dataset {target.uuid}: clustered_by names `{name}`, a column of class "
                f"{class_name(schema.field(name).type)}, by which rows cannot be sorted. Nothing "
                "was written."
            )


def _check_known(target: Target, key: str, names: Sequence[str], columns: Sequence[str]) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        hint = did_you_mean(unknown[0], columns)
        raise ConfigurationError(
            f"Dataset {target.uuid}: {key} names {', '.join(unknown)}, which the rows "
            f"lack.{hint} They have: {', '.join(columns)}. Nothing was written."
        )
