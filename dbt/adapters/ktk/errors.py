"""Turns errors of the engine and of Spark into dbt's, in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.ktk.session.spark_message import java_stack, spark_ended, spark_message
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import KtkError, TypeClassError
from ktk_engine.types.finding import Finding

_LOGGER = AdapterLogger("ktk")
# What Spark says about a row's value that is SQL: dbt puts it into quotes and casts it.
_OF_ROWS = re.compile(r"\[(?:PARSE_SYNTAX_ERROR|CAST_INVALID_INPUT|DATATYPE_MISMATCH)")
_NOT_SQL = (
    "\nIf a value in the unit test's rows is SQL, give these rows as a query: `format: sql` and "
    "`rows: select ... as ...`. In other formats, dbt puts values into quotes and casts them."
)


class RefusedColumnsError(CompilationError):
    """Columns break a rule; dbt has this kind for contracts and `on_schema_change: fail`."""

    def process_stack(self) -> list[str]:
        """Leave out the macros between, which are not at fault."""
        return []


@contextmanager
def translated(hint: str = "", declared_in: str = "", is_unit_test: bool = False) -> Iterator[None]:
    """Turn errors of a block into dbt's with the message only; the log file has the rest.

    `hint` says what to do about a missing relation (`missing_hint`), and `declared_in` is the file
    that declares columns. `is_unit_test` says that rows of a unit test may be at fault. Columns
    that break a rule raise a `RefusedColumnsError`, other errors of the engine a `DbtRuntimeError`,
    and those of Spark a `DbtDatabaseError`.
    """
    try:
        yield
    except DbtRuntimeError:
        raise
    except TypeClassError as error:
        said = error.said(DBT)
        if declared_in and any(map(_is_declared, error.findings)):
            said += f"\nThe columns are declared in {declared_in}."
        raise RefusedColumnsError(said) from error
    except KtkError as error:
        raise DbtRuntimeError(error.said(DBT)) from error
    except Exception as error:
        message = spark_ended() or spark_message(error, hint)
        if message is None:
            raise
        _LOGGER.debug(java_stack(error))
        if is_unit_test and _OF_ROWS.match(message):
            message += _NOT_SQL
        raise DbtDatabaseError(message) from error


def _is_declared(finding: object) -> bool:
    return isinstance(finding, Finding) and finding.is_declared
