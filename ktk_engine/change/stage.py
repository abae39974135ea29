"""One attempt at a change of single rows, on one state: what it finds, and what it puts there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.change.predicates import RowFilter
from ktk_engine.change.replacement import Replacement
from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import ConfigurationError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.gate.gate import ValidatedWrite
from ktk_engine.gate.write_request import Conditions, WriteRequest
from ktk_engine.log.state import State
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.sql.dialect import Dialect
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.exact_cast import cast_exactly
from ktk_engine.types.mismatch import wider
from ktk_engine.types.type_class import class_name, plain_type
from ktk_engine.write.affected_files import affected_files, cell_columns, goes_whole
from ktk_engine.write.build import write_rows
from ktk_engine.write.check_write import check_write
from ktk_engine.write.rows import (
    ArrowRows,
    Rows,
    check_constraints,
    names_of_columns,
    schema_of,
    selected,
)
from ktk_engine.write.small_files import types_in_spark
from ktk_engine.write.staging import Staging, staged
from ktk_engine.write.write_result import RowChanges, WriteResult


@dataclass(frozen=True)
class Stage:
    """A dataset as a change finds it, and the new rows."""

    write: ValidatedWrite  # as the gate let the new rows pass
    base: Snapshot
    new: Rows  # with the stored columns; none where rows only go
    footers: FooterCache

    @property
    def target(self) -> WriteRequest:
        """The dataset and its layout."""
        return self.write.target

    @property
    def store(self) -> ObjectStore:
        """Where the dataset lives."""
        return self.write.state.store

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The old columns that stay stored."""
        committed = set(self.write.committed.names)
        return tuple(name for name in self.base.schema.names if name in committed)

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns that address a cell of a cube's dataset; empty for a table."""
        return cell_columns(self.base)

    @property
    def changes_layout(self) -> bool:
        """Whether a commit without rows would still change columns, indexes or properties."""
        own, new = self.base.schema.names, names_of_columns(self.new)
        indices = {name for name in self.base.with_index if name in new}
        same = set(new) <= set(own) == set(self.kept) and indices == set(self.write.indexes)
        known = self.base.metadata
        noted = all(key in known and known[key] == v for key, v in self.target.metadata.items())
        return not (same and noted)

    def goes_whole(self, change: Replacement, files: pa.Table) -> bool:
        """Whether partition values alone say that all rows of some files go, without a read."""
        if change.keys or change.updated is not None:
            return False
        return goes_whole(replace(self.base, file_table=files), change.where)

    def known_count(self, files: pa.Table) -> int | None:
        """How many rows readers see in some files; None where cells may be overlaid."""
        plan = plan_dataset(replace(self.base, file_table=files), self.write.state.version)
        if plan.datasets[0].overlaid or files["rows"].null_count:
            return None
        return int(pc.sum(files["rows"]).as_py() or 0)

    def files(self, conditions: Conditions) -> pa.Table:
        """The files to rewrite so that rows which fulfil all conditions are replaced."""
        return affected_files(self.store, self.base, conditions)

    def types(self, files: pa.Table) -> pa.Schema:
        """The types in which old and new rows are stored, the same for both executors.

        `files` are those whose rows are stored again. New rows in Spark decide for Spark's types.
        Rows in Arrow keep the files' types where these agree and hold new values, too.
        """
        new = schema_of(self.new)
        if isinstance(self.new, ArrowRows):
            old = stored_schema(self.store, self.footers, self.base, files)
            given = set(new.names)
            both = [
                _common_type(old.field(name), self.new[name]) if name in given else old.field(name)
                for name in self.kept
            ]
        else:
            old = types_in_spark(self.base.schema, self.kept)
            given = set(new.names)
            shared = [field for field in old if field.name in given]
            if any(not field.type.equals(new.field(field.name).type) for field in shared):
                from ktk_engine.spark.write.keys import types_of_union

                return types_of_union(old, self.new)
            both = list(old)
        kept = set(self.kept)
        added = [field for field in new if field.name not in kept]
        return pa.schema([field.with_nullable(True) for field in (*both, *added)])

    def commit(
        self,
        rows: Rows,
        types: pa.Schema,
        touched: pa.Table,
        reads: tuple[Conditions, ...],
        new_count: int,
        before: int,
    ) -> WriteResult:
        """Put rows in the place of the touched files, and count what became of them.

        `rows` are the new rows and the old ones that stay; `before` is how many rows readers saw.
        """
        result = self.put(rows, types, touched, reads)
        gone = before + new_count - result.rows
        return replace(result, changes=RowChanges(new_count, deleted=gone))

    def put(
        self, rows: Rows, types: pa.Schema, touched: pa.Table, reads: tuple[Conditions, ...]
    ) -> WriteResult:
        """Put rows in the place of files without counting changes; see `commit`."""
        write = self._replacing(types, touched, reads)
        return replace(
            write_rows(write, rows),
            rewritten_files=touched.num_rows,
            total_files=self.base.file_table.num_rows,
        )

    def put_in(
        self,
        staging: Staging,
        rows: Rows,
        types: pa.Schema,
        touched: pa.Table,
        reads: tuple[Conditions, ...],
    ) -> None:
        """Put rows in the place of files in a transaction; see `put`."""
        check_constraints(self.target.constraints, self.new)
        staging.write(self._replacing(types, touched, reads), rows)

    def left_alone(self, *looked_at: Conditions) -> None:
        """See that what was read and looked at still holds, since no commit will.

        Raises a `CommitConflictError` if another run has changed it.
        """
        write, uuid = self.write, self.target.uuid
        with staged(write.state, f"change {uuid}", write.target.history) as staging:
            staging.transaction.depends_on(write.target.reads)
            for conditions in looked_at:
                staging.looked_at(uuid, conditions)

    def _replacing(
        self, types: pa.Schema, touched: pa.Table, reads: tuple[Conditions, ...]
    ) -> ValidatedWrite:
        # The configuration cannot name a column that the model lacks: its index stays with it.
        stays = set(self.kept) - set(names_of_columns(self.new))
        others = [name for name in self.base.with_index if name in stays]
        target = replace(
            self.target,
            indexes=(*self.target.indexes, *others),
            mode="files",
            replaced=touched,
            looked_for=reads,
        )
        return replace(self.write, target=target).of_rows(types)


def start_stage(rows: Rows, target: WriteRequest, state: State, footers: FooterCache) -> Stage:
    """Check the new rows' columns against the dataset.

    Raises a `ConfigurationError` for another layout, and a `TypeClassError` for columns that break
    the rules of type classes.
    """
    write = check_write(schema_of(rows), replace(target, mode="files"), state)
    given = names_of_columns(rows)
    new = selected(rows, [name for name in write.committed.names if name in given])
    return Stage(write, state.snapshot(target.uuid), new, footers)


def condition_of(
    where: RowFilter, target: WriteRequest, schema: pa.Schema, dialect: Dialect
) -> Condition:
    """A filter as a condition on the columns of a dataset; see `RowFilter`."""
    try:
        return where.condition(schema, dialect)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"Dataset {target.uuid}: ", error, " Nothing was written."
        ) from error


def _common_type(old: pa.Field, new: pa.ChunkedArray) -> pa.Field:
    """A column of files with the type that holds new values as well."""
    column, known = new.combine_chunks(), plain_type(old.type)
    type_ = wider(old.type, column.type)
    if type_.equals(old.type):
        return old
    fits = class_name(known) == class_name(type_) and cast_exactly(column, known)[0] is not None
    return old if fits else old.with_type(plain_type(type_))
