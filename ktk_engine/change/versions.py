"""The columns that tell the versions of a row apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ktk_engine.types.identifier import find_name


@dataclass(frozen=True)
class Versions:
    """The columns that tell the versions of a row apart, with dbt's names by default."""

    scd_id: str = "dbt_scd_id"  # identifies a version
    valid_from: str = "dbt_valid_from"
    valid_to: str = "dbt_valid_to"  # null, or `current`, in the version that holds now
    updated_at: str = "dbt_updated_at"  # when the source row changed
    is_deleted: str = "dbt_is_deleted"  # says that the row is gone; not every snapshot has it
    current: str = ""  # an SQL expression without columns; empty for null
    unique_key: str = ""  # of the configuration, for messages

    def spelled(self, columns: Sequence[str]) -> Versions:
        """The same, named as a dataset names its columns."""
        names = ("scd_id", "valid_from", "valid_to", "updated_at", "is_deleted")
        given = {name: str(getattr(self, name)) for name in names}
        return replace(self, **{n: find_name(c, columns) or c for n, c in given.items()})

    @property
    def times(self) -> tuple[str, str, str]:
        """The columns with times."""
        return (self.valid_from, self.valid_to, self.updated_at)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.scd_id, *self.times, self.is_deleted)
