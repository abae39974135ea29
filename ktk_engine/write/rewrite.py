"""What writes that replace single rows share: merges, and rows replaced by a predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.gate.gate import pass_gate
from ktk_engine.gate.target import Target
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.merge_rows import rows_with_keys
from ktk_engine.types.quote import quote_identifier
from ktk_engine.write.affected import (
    affected_files,
    cell_columns,
    find_keys,
    rows_of,
    stored_rows,
)
from ktk_engine.write.build import Written, build
from ktk_engine.write.claim import check_claim
from ktk_engine.write.predicates import RowFilter
from ktk_engine.write.retained import Conditions, Retained
from ktk_engine.write.row_changes import RowChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rewritten:
    """The outcome of a write that replaces single rows.

    Attributes:
        written: the new files.
        changes: what happened to rows.
        files: how many of the dataset's files were rewritten.
        total_files: how many it had; 0 where it was rebuilt.
    """

    written: Written
    changes: RowChanges
    files: int = 0
    total_files: int = 0

    def __str__(self) -> str:
        if not self.total_files:
            return str(self.written)
        return self.written.remarked(
            f"{self.changes}; {self.files:,} of {self.total_files:,} files rewritten"
        )


@dataclass(frozen=True)
class Rewrite:
    """A dataset as a rewrite finds it, and the new rows.

    Attributes:
        scanner: reads the files of the store.
        target: the dataset and its layout.
        state: what the rewrite is computed from.
        base: the dataset.
        new: the new rows, with the columns that are stored.
        kept: the old columns that are stored on.
        indexes: the columns that get an index.
        history: what the log says of the commit, for people.
        built_by: dataset id -> the dbt model that builds it, for messages.
    """

    scanner: Scanner
    target: Target
    state: State
    base: Snapshot
    new: DataFrame
    kept: tuple[str, ...]
    indexes: tuple[str, ...]
    history: Mapping[str, str] | None
    built_by: Mapping[str, str] | None

    @property
    def changes_layout(self) -> bool:
        """Whether a commit without any row would still change columns or indices."""
        own, new = self.base.schema.names, self.new.columns
        indices = {name for name in self.base.indices if name in new}
        same = set(new) <= set(own) == set(self.kept) and indices == set(self.indexes)
        return not same

    def files(self, conditions: Conditions) -> pa.Table:
        """The files to rewrite so that rows which fulfil all conditions are replaced."""
        return affected_files(self.scanner.store, self.base, conditions)

    def rows(self, files: pa.Table) -> DataFrame:
        """The rows of some files, with all old columns."""
        return rows_of(self.scanner, self.base, files, self.state.version)

    def stored(self, rows: DataFrame) -> DataFrame:
        """Old rows with the columns that are stored on; the others go (sync_all_columns)."""
        return rows.select(*map(quote_identifier, self.kept))

    def check_cells(
        self, stay: Callable[[DataFrame], DataFrame], reason: str, shown: Sequence[str]
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
            raise DataError(
                f"Dataset {self.target.uuid} was refused (nothing was written):\n"
                f"- New rows have cells ({', '.join(cells)}) of old rows that stay, {reason}. "
                "Each cell of a cube may occur only once.\n"
                f"  Example of such an old row: {', '.join(values)}\n"
                "  Fix: Leave these rows out of the model, or let it replace the old ones."
            )
        return conditions

    def commit(
        self,
        rows: DataFrame | pa.Table,
        touched: pa.Table,
        reads: tuple[Conditions, ...],
        new_count: int,
        updates: bool,
    ) -> Rewritten:
        """Put rows in the place of files.

        Args:
            rows: what stays of the old rows, and the new rows.
            touched: the files that go.
            reads: what the rows depend on; see `Retained`.
            new_count: number of new rows.
            updates: whether each new row takes the place of one old row that is gone.
        """
        labels = frozenset(touched["label"].to_pylist())
        before = stored_rows(self.scanner, self.base, touched, self.state.version)
        retained = Retained("files", labels, reads)
        # A column that the model lacks cannot be configured: its index stays.
        others = [name for name in self.base.indices if name not in self.new.columns]
        written = build(
            self.scanner.store,
            rows,
            replace(self.target, indexes=(*self.target.indexes, *others)),
            self.history,
            built_by=self.built_by,
            retained=retained,
            state=self.state,
        )
        gone = before + new_count - written.rows
        changes = RowChanges(new_count, deleted=gone)
        if updates:
            changes = RowChanges(new_count - gone, updated=gone)
        return Rewritten(written, changes, touched.num_rows, self.base.files.num_rows)


def start_rewrite(
    scanner: Scanner,
    frame: DataFrame,
    target: Target,
    state: State,
    history: Mapping[str, str] | None,
    built_by: Mapping[str, str] | None,
) -> Rewrite:
    """Check the new rows' columns against the dataset.

    Raises:
        ConfigurationError: the dataset is laid out in another way.
        TypeClassError: columns break the rules of type classes.
    """
    base = state.snapshot(target.uuid)
    check_claim(target, state, keeps_rows=True, full_refresh=False)
    datasets = {target.scope.dataset_id(uuid): item for uuid, item in state.snapshots().items()}
    model = arrow_schema(frame.schema)
    passed = pass_gate(target, model, datasets, False, built_by, keeps_rows=True)
    stored = [name for name in passed.committed.names if name in frame.columns]
    kept = tuple(name for name in base.schema.names if name in passed.committed.names)
    new = frame.select(*map(quote_identifier, stored))
    indexes = passed.indexes
    return Rewrite(scanner, target, state, base, new, kept, indexes, history, built_by)


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
        raise ConfigurationError(f"Dataset {target.uuid}: {error} Nothing was written.") from error
