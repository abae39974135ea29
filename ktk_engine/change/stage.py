"""What writes that replace single rows share: merges, and rows replaced by a predicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.change.predicates import RowFilter
from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.gate.target import Target
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.messages import Message
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.jvm import select_names
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.merge_rows import rows_with_keys
from ktk_engine.types.refusal import Problem, refusal
from ktk_engine.write.affected_files import affected_files, cell_columns
from ktk_engine.write.affected_rows import find_keys, rows_of, stored_rows
from ktk_engine.write.build import write_rows
from ktk_engine.write.checked_write import CheckedWrite, check_write
from ktk_engine.write.retained import Conditions, Retained
from ktk_engine.write.rows import Rows, schema_of
from ktk_engine.write.write_context import WriteContext
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rewrite:
    """A dataset as a rewrite finds it, and the new rows.

    Attributes:
        scanner: reads the files of the store.
        write: what is to be written, as the gate let the new rows pass.
        base: the dataset.
        new: the new rows, with the columns that are stored.
    """

    scanner: Scanner
    write: CheckedWrite
    base: Snapshot
    new: DataFrame

    @property
    def target(self) -> Target:
        """The dataset and its layout."""
        return self.write.target

    @property
    def kept(self) -> tuple[str, ...]:
        """The old columns that are stored on."""
        committed = self.write.gate.committed.names
        return tuple(name for name in self.base.schema.names if name in committed)

    @property
    def changes_layout(self) -> bool:
        """Whether a commit without any row would still change columns, indices or properties."""
        own, new = self.base.schema.names, self.new.columns
        indices = {name for name in self.base.indices if name in new}
        same = set(new) <= set(own) == set(self.kept) and indices == set(self.write.gate.indexes)
        known = self.base.metadata
        noted = all(key in known and known[key] == v for key, v in self.target.metadata.items())
        return not (same and noted)

    def files(self, conditions: Conditions) -> pa.Table:
        """The files to rewrite so that rows which fulfil all conditions are replaced."""
        return affected_files(self.scanner.store, self.base, conditions)

    def rows(self, files: pa.Table) -> DataFrame:
        """The rows of some files, with all old columns."""
        return rows_of(self.scanner, self.base, files, self.write.state.version)

    def stored(self, rows: DataFrame) -> DataFrame:
        """Old rows with the columns that are stored on; the others go (sync_all_columns)."""
        return select_names(rows, self.kept)

    def check_cells(
        self, stay: Callable[[DataFrame], DataFrame], reason: object, shown: Sequence[str]
    ) -> Conditions:
        """Refuse new rows whose cell an old row has that stays.

        Args:
            stay: of old rows, those that stay.
            reason: why such rows stay, for the message.
            shown: columns of the example, beside the cell's.

        Returns:
            What was read for that.

        Raises:
            DataError: with an example; nothing was written.
        """
        cells = cell_columns(self.base)
        conditions = find_keys(self.new, cells).conditions(self.base)
        old = stay(self.rows(self.files(conditions)))
        example = rows_with_keys(old, self.new, cells).first()
        if example is not None:
            values = (f"{name}={example[name]!r}" for name in dict.fromkeys([*cells, *shown]))
            problem = Problem(
                Message(
                    f"New rows have cells ({', '.join(cells)}) of old rows that stay, ",
                    reason,
                    ". Each cell of a cube may occur only once.",
                ),
                "Leave these rows out, or let them replace the old ones.",
                f"the old row {', '.join(values)}",
            )
            raise DataError(refusal(self.target.uuid, [problem]))
        return conditions

    def commit(
        self,
        rows: Rows,
        touched: pa.Table,
        reads: tuple[Conditions, ...],
        new_count: int,
        updates: bool,
        before: int | None = None,
    ) -> WriteResult:
        """Put rows in the place of files.

        Args:
            rows: what stays of the old rows, and the new rows.
            touched: the files that go.
            reads: what the rows depend on; see `Retained`.
            new_count: number of new rows.
            updates: whether each new row takes the place of one old row that is gone.
            before: how many rows the files have that readers see; None counts them.
        """
        if before is None:
            before = stored_rows(self.scanner, self.base, touched, self.write.state.version)
        result = self.put(rows, touched, reads)
        gone = before + new_count - result.rows
        changes = RowChanges(new_count, deleted=gone)
        if updates:
            changes = RowChanges(new_count - gone, updated=gone)
        return replace(result, changes=changes)

    def put(self, rows: Rows, touched: pa.Table, reads: tuple[Conditions, ...]) -> WriteResult:
        """Put rows in the place of files; see `commit`. Its changes are not counted."""
        labels = frozenset(touched["label"].to_pylist())
        # A column that the model lacks cannot be configured: its index stays if it does.
        stays = set(self.kept) - set(self.new.columns)
        others = [name for name in self.base.indices if name in stays]
        target = replace(self.target, indexes=(*self.target.indexes, *others))
        write = replace(
            self.write,
            target=target,
            retained=Retained("files", labels, reads),
            gate=self.write.gate.of_rows(target, schema_of(rows)),
        )
        return replace(
            write_rows(write, rows),
            rewritten_files=touched.num_rows,
            total_files=self.base.files.num_rows,
        )


def start_rewrite(
    scanner: Scanner, frame: DataFrame, target: Target, state: State, context: WriteContext
) -> Rewrite:
    """Check the new rows' columns against the dataset.

    Raises:
        ConfigurationError: the dataset is laid out in another way.
        TypeClassError: columns break the rules of type classes.
    """
    write = check_write(arrow_schema(frame.schema), target, state, Retained("files"), context)
    stored = [name for name in write.gate.committed.names if name in frame.columns]
    new = select_names(frame, stored)
    return Rewrite(scanner, write, state.snapshot(target.uuid), new)


def condition_of(
    where: RowFilter, target: Target, schema: pa.Schema, scanner: Scanner
) -> Condition:
    """Give a filter as a condition on the columns of a dataset.

    Raises:
        ConfigurationError: it does not fit them; nothing was written.
    """
    zone = str(scanner.session.conf.get("spark.sql.session.timeZone"))
    try:
        return where.condition(schema, zone)
    except ConfigurationError as error:
        raise ConfigurationError(
            Message(f"Dataset {target.uuid}: ", error, " Nothing was written.")
        ) from error
