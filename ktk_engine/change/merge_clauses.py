"""What a model's configuration says of its merge, beside the key and the columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ktk_engine.sql.read_row_change import read_action
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.quote import quote_identifier

DESTINATION, SOURCE = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"


@dataclass(frozen=True)
class MergeClauses:
    """The clauses of a model's merge; dbt-databricks has the same settings.

    Attributes:
        matched_condition: which matched rows are updated; empty for all.
        not_matched_condition: which new rows are inserted; empty for all.
        not_matched_by_source_action: `delete` or `update set ...`, for rows that no new row
            matches; empty for none.
        not_matched_by_source_condition: which of them; empty for all.
        skip_matched_step: whether matched rows stay as they are.
        skip_not_matched_step: whether new rows are left out.
        target_alias: how the texts call the stored rows.
        source_alias: how they call the new rows.
    """

    matched_condition: str = ""
    not_matched_condition: str = ""
    not_matched_by_source_action: str = ""
    not_matched_by_source_condition: str = ""
    skip_matched_step: bool = False
    skip_not_matched_step: bool = False
    target_alias: str = DESTINATION
    source_alias: str = SOURCE

    def change(
        self,
        unique_key: Sequence[str],
        predicates: Sequence[str],
        columns: Sequence[str],
        updated: Iterable[str],
    ) -> RowChange:
        """Give the merge as a statement would.

        Args:
            unique_key: columns by which a new row matches a stored one.
            predicates: SQL expressions that have to be true beside that.
            columns: the new rows' columns.
            updated: those that a matched row takes over.
        """
        keys = [f"{self._stored(name)} = {self._new(name)}" for name in unique_key]
        on = " and ".join([*keys, *(f"({text}\n)" for text in predicates)])
        clauses = []
        if not self.skip_matched_step:
            values = {name: self._new(name) for name in updated}
            clauses.append(Clause("matched", "update", self.matched_condition, values))
        if not self.skip_not_matched_step:
            values = {name: self._new(name) for name in columns}
            clauses.append(Clause("not matched", "insert", self.not_matched_condition, values))
        if self.not_matched_by_source_action:
            clauses.append(
                read_action(
                    "not matched by source",
                    self.not_matched_by_source_action,
                    self.target_alias,
                    self.not_matched_by_source_condition,
                )
            )
        return RowChange("merge", self.target_alias, tuple(clauses), self.source_alias, on=on)

    def _stored(self, name: str) -> str:
        return f"{quote_identifier(self.target_alias)}.{quote_identifier(name)}"

    def _new(self, name: str) -> str:
        return f"{quote_identifier(self.source_alias)}.{quote_identifier(name)}"
