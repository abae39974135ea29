"""Relations: two-part names, quoted only where they have to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.contracts.relation import ComponentName
from dbt.adapters.spark import SparkRelation

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, eq=False, repr=False)
class KtkRelation(SparkRelation):
    """A relation of a store."""

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        """Quote names that Spark's parser would not take as they are, such as `a-b`."""
        for component, name in super()._render_iterator():
            if name and not name.startswith("`") and not _PLAIN.fullmatch(name):
                yield component, self.quoted(name)
            else:
                yield component, name
