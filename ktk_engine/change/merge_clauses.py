"""The clauses of a model's merge, besides its key and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ktk_engine.sql.read_row_change import read_action
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.quote import quote_identifier

DESTINATION, SOURCE = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"


@dataclass(frozen=True)
class MergeClauses:
    """The clauses of a model's merge, with the settings of dbt-databricks; empty texts mean all."""

    matched_condition: str = ""  # which matched rows are updated
    not_matched_condition: str = ""  # which new rows are inserted
    # `delete` or `update set ...`, for stored rows that no new row matches; empty for neither.
    not_matched_by_source_action: str = ""
    not_matched_by_source_condition: str = ""  # for which of them
    skip_matched_step: bool = False  # leaves matched rows as they are
    skip_not_matched_step: bool = False  # leaves new rows out
    target_alias: str = DESTINATION  # of the stored rows, in these texts
    source_alias: str = SOURCE  # of the new rows

    def change(
        self,
        unique_key: Sequence[str],
        predicates: Sequence[str],
        columns: Sequence[str],
        updated: Iterable[str],
    ) -> RowChange:
        """Give the merge as a statement would; all of `predicates` narrow the match."""
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
