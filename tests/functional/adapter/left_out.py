"""Why a case or a class of dbt-tests-adapter is left out; `docs/dbt-tests.md` shows the same.

A case that is inherited and skipped carries the marker `left_out(reason, why)`, with
`storage="cube"` where it is only skipped with cube storage. A class that is not inherited stands
in `NOT_INHERITED`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

NOT_SPARK = "not a Spark feature"
ABSTRACT = "an abstract parent"
ALTERNATIVE = "an alternative to an inherited class"

_REASON = re.compile(
    rf"{NOT_SPARK}|refused by a decision \(\d+\)|a defect of the suite \(https://\S+\)"
)


@dataclass(frozen=True)
class LeftOut:
    """What a marker says.

    Attributes:
        reason: one of three, see `_REASON`.
        why: a sentence about this case.
        storage: `table`, `cube`, or empty for both.
    """

    reason: str
    why: str
    storage: str = ""


def parse_marker(mark: pytest.Mark, where: str) -> LeftOut:
    """Read a marker `left_out`.

    Raises:
        pytest.UsageError: it has not one of the three reasons, or says nothing about the case.
    """
    try:
        found = LeftOut(*mark.args, **mark.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"{where}: left_out(reason, why, storage=''): {error}") from error
    if not _REASON.fullmatch(found.reason) or not found.why.strip():
        raise pytest.UsageError(
            f"{where}: left_out needs a reason and a sentence. The reasons are {NOT_SPARK!r}, "
            "'refused by a decision (number)' and 'a defect of the suite (link)'."
        )
    if found.storage not in ("", "table", "cube"):
        raise pytest.UsageError(f"{where}: left_out knows no storage {found.storage!r}.")
    return found


# Class of the suite -> (reason, why).
NOT_INHERITED = {
    "BaseConstraintsColumnsEqual": (ABSTRACT, "BaseTableConstraintsColumnsEqual and others"),
    "BaseContractSqlHeader": (ABSTRACT, "BaseTableContractSqlHeader and others"),
    "BaseCachingTest": (ABSTRACT, "BaseCachingLowercaseModel and others"),
    "BaseArrayUtils": (ABSTRACT, "BaseArrayAppend and others"),
    "BaseUtils": (ABSTRACT, "BaseAnyValue and others"),
    "BaseDataTypeMacro": (ABSTRACT, "BaseTypeInt and others"),
    "BaseCurrentTimestamp": (ABSTRACT, "BaseCurrentTimestampNaive"),
    "BaseCurrentTimestampAware": (ALTERNATIVE, "BaseCurrentTimestampNaive: Spark keeps no zone"),
    "BaseEscapeSingleQuotesQuote": (ALTERNATIVE, "BaseEscapeSingleQuotesBackslash: Spark's way"),
    "BaseClonePossible": (ALTERNATIVE, "BaseCloneNotPossible: a clone is a view"),
    "BasePostgresColumnTypes": (ALTERNATIVE, "BaseColumnTypes with Spark's types"),
    "BaseSameAliasDifferentDatabases": (NOT_SPARK, "relations have two-part names"),
    "BaseIncrementalForeignKeyConstraint": (NOT_SPARK, "Spark has no foreign keys"),
}
