"""Why a case or a class of dbt-tests-adapter is left out; `docs/dbt-tests.md` shows the same.

A case that is inherited and skipped carries the marker `left_out(reason, why)`, with
`storage="cube"` where it is only skipped with cube storage. A class that is not inherited stands
in `NOT_INHERITED`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version

import pytest
from packaging.version import Version

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
        until: the version of dbt-core that it is run with again; empty for none.
    """

    reason: str
    why: str
    storage: str = ""
    until: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is left out with the dbt-core that runs."""
        return not self.until or Version(version("dbt-core")) < Version(self.until)


def parse_marker(mark: pytest.Mark, where: str) -> LeftOut:
    """Read a marker `left_out`.

    Raises:
        pytest.UsageError: it has not one of the three reasons, or says nothing about the case.
    """
    try:
        found = LeftOut(*mark.args, **mark.kwargs)
    except TypeError as error:
        raise pytest.UsageError(
            f"{where}: left_out(reason, why, storage='', until=''): {error}"
        ) from error
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
    "BasicJSAggregateUDF": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "BasicJSUDF": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "BasicPythonUDAF": (NOT_SPARK, "Spark's SQL defines no functions that aggregate"),
    "BasicSQLUDAF": (NOT_SPARK, "Spark's SQL defines no functions that aggregate"),
    "CanFindScalarFunctionRelation": (NOT_SPARK, "a session's functions are in no schema"),
    "JSAggregateUDFBase": (ABSTRACT, "BasicJSAggregateUDF and others"),
    "JSAggregateUDFVolatilityIgnored": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "JSUDFBase": (ABSTRACT, "BasicJSUDF and others"),
    "JSUDFDefaultArgSupport": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "JSUDFDeterministicVolatility": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "JSUDFMultiLineBody": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "JSUDFNonDeterministicVolatility": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "JSUDFStableVolatilityWarns": (NOT_SPARK, "Spark has no functions in JavaScript"),
    "PythonUDAFDefaultArgSupport": (NOT_SPARK, "Spark's SQL defines no functions that aggregate"),
    "PythonUDFNotSupported": (ALTERNATIVE, "PythonUDFSupported"),
    "PythonUDFRuntimeVersionRequired": (ALTERNATIVE, "functions run in dbt's own Python"),
    "UDAFBase": (ABSTRACT, "BasicPythonUDAF and others"),
}
