"""One attempt at a change of single rows, on one state: what it finds, and what it puts there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.change.predicates import RowFilter
from ktk_engine.change.replacement import Replacement
from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import ConfigurationError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.gate.target import Target
from ktk_engine.log.state import State
from ktk_engine.messages import Message
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import normalize
from ktk_engine.write.affected_files import affected_files, cell_columns, goes_whole
from ktk_engine.write.build import write_rows
from ktk_engine.write.checked_write import CheckedWrite, check_write
from ktk_engine.write.rows import (
    ArrowRows,
    Rows,
    check_constraints,
    names_of_columns,
    schema_of,
    selected,
)
from ktk_engine.write.small_files import types_in_spark
from ktk_engine.write.staging import Staging
from ktk_engine.write.write_context import WriteContext
from ktk_engine.write.write_mode import Conditions, WriteMode
from ktk_engine.write.write_result import RowChanges, WriteResult


@dataclass(frozen=True)
class Stage:
    """A dataset as a change finds it, and the new rows.

    Attributes:
        write: what is to be written, as the gate let the new rows pass.
        base: the dataset.
        new: the new rows, with the columns that are stored; none where rows only go.
        footers: what is known of files of other writers.
    """

    write: CheckedWrite
    base: Snapshot
    new: Rows
    footers: FooterCache

    @property
    def target(self) -> Target:
        """The dataset and its layout."""
        return self.write.target

    @property
    def store(self) -> ObjectStore:
        """Where the dataset lives."""
        return self.write.state.store

    @property
    def kept(self) -> tuple[str, ...]:
        """The old columns that are stored on."""
        committed = self.write.gate.committed.names
        return tuple(name for name in self.base.schema.names if name in committed)

    @property
    def cells(self) -> tuple[str, ...]:
        """What addresses a cell of a cube's dataset; empty for a table."""
        return cell_columns(self.base)

    @property
    def changes_layout(self) -> bool:
        """Whether a commit without any row would still change columns, indices or properties."""
        own, new = self.base.schema.names, names_of_columns(self.new)
        indices = {name for name in self.base.with_index if name in new}
        same = set(new) <= set(own) == set(self.kept) and indices == set(self.write.gate.indexes)
        known = self.base.metadata
        noted = all(key in known and known[key] == v for key, v in self.target.metadata.items())
        return not (same and noted)

    def goes_whole(self, change: Replacement, files: pa.Table) -> bool:
        """Whether all rows of some files go, by partition values alone: none has to be read."""
        if change.keys or change.updated is not None:
            return False
        return goes_whole(replace(self.base, file_table=files), change.where)

    def known_count(self, files: pa.Table) -> int | None:
        """How many rows of some files readers see; None where cells may be overlaid."""
        plan = plan_dataset(replace(self.base, file_table=files), self.write.state.version)
        if plan.datasets[0].overlaid or files["rows"].null_count:
            return None
        return int(pc.sum(files["rows"]).as_py() or 0)

    def files(self, conditions: Conditions) -> pa.Table:
        """The files to rewrite so that rows which fulfil all conditions are replaced."""
        return affected_files(self.store, self.base, conditions)

    def types(self, files: pa.Table) -> pa.Schema:
        """Decide the types in which old and new rows are stored, for both executors.

        New rows of Spark decide for Spark's types. Those in Arrow leave the files' types where
        both agree, else they take the containers of the columns' classes.

        Args:
            files: those whose rows are stored again.
        """
        new = schema_of(self.new)
        if isinstance(self.new, ArrowRows):
            old = stored_schema(self.store, self.footers, self.base, files)
            both = [_common_type(old.field(name), new) for name in self.kept]
        else:
            old = types_in_spark(self.base.schema, self.kept)
            shared = [field for field in old if field.name in new.names]
            if any(not field.type.equals(new.field(field.name).type) for field in shared):
                from ktk_engine.spark.write.keys import types_of_union

                return types_of_union(old, self.new)
            both = list(old)
        added = [field for field in new if field.name not in self.kept]
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
        """Put rows in the place of files, and count what became of them.

        Args:
            rows: what stays of the old rows, and the new rows.
            types: see `put`.
            touched: the files that go.
            reads: what the rows depend on; see `WriteMode`.
            new_count: number of new rows.
            before: how many rows the files have that readers see.
        """
        result = self.put(rows, types, touched, reads)
        gone = before + new_count - result.rows
        return replace(result, changes=RowChanges(new_count, deleted=gone))

    def put(
        self, rows: Rows, types: pa.Schema, touched: pa.Table, reads: tuple[Conditions, ...]
    ) -> WriteResult:
        """Put rows in the place of files; see `commit`. Its changes are not counted.

        Args:
            types: the columns, in the types to store.
        """
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

    def _replacing(
        self, types: pa.Schema, touched: pa.Table, reads: tuple[Conditions, ...]
    ) -> CheckedWrite:
        # A column that the model lacks cannot be configured: its index stays if it does.
        stays = set(self.kept) - set(names_of_columns(self.new))
        others = [name for name in self.base.with_index if name in stays]
        target = replace(self.target, indexes=(*self.target.indexes, *others))
        return replace(
            self.write,
            target=target,
            retained=WriteMode("files", touched, reads),
            gate=self.write.gate.of_rows(target, types),
        )


def start_stage(
    rows: Rows, target: Target, state: State, context: WriteContext, footers: FooterCache
) -> Stage:
    """Check the new rows' columns against the dataset.

    Raises:
        ConfigurationError: the dataset is laid out in another way.
        TypeClassError: columns break the rules of type classes.
    """
    write = check_write(schema_of(rows), target, state, WriteMode("files"), context)
    given = names_of_columns(rows)
    new = selected(rows, [name for name in write.gate.committed.names if name in given])
    return Stage(write, state.snapshot(target.uuid), new, footers)


def condition_of(where: RowFilter, target: Target, schema: pa.Schema, zone: str) -> Condition:
    """Give a filter as a condition on the columns of a dataset.

    Args:
        zone: that of timestamps which are written without one.

    Raises:
        ConfigurationError: it does not fit them; nothing was written.
    """
    try:
        return where.condition(schema, zone)
    except ConfigurationError as error:
        raise ConfigurationError(
            Message(f"Dataset {target.uuid}: ", error, " Nothing was written.")
        ) from error


def _common_type(old: pa.Field, new: pa.Schema) -> pa.Field:
    """A column of files with the type that holds new values as well."""
    if old.name not in new.names:
        return old
    type_ = new.field(old.name).type
    same = type_.equals(old.type) or pat.is_null(type_)
    return old if same else old.with_type(normalize(old.type))
