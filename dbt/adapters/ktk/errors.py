"""Turns errors of the engine and of Spark into dbt's, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from ktk_engine.errors import KtkError, TypeClassError

_WAITED = "Exception thrown in awaitResult"


class RefusedColumnsError(CompilationError):
    """Columns break a rule; dbt has its contracts and `on_schema_change: fail` as this kind."""

    def process_stack(self) -> list[str]:
        """Leave the macros out that the model went through: they are not at fault."""
        return []


@contextmanager
def translated() -> Iterator[None]:
    """Run a block; what it raises reaches dbt with the message only.

    Raises:
        RefusedColumnsError: columns break a rule.
        DbtRuntimeError: another error of the engine, whose message says what to do.
        DbtDatabaseError: Spark refused or failed.
    """
    try:
        yield
    except DbtRuntimeError:
        raise
    except TypeClassError as error:
        raise RefusedColumnsError(str(error)) from error
    except KtkError as error:
        raise DbtRuntimeError(str(error)) from error
    except Exception as error:
        message = spark_message(error)
        if message is None:
            raise
        raise DbtDatabaseError(message) from error


def spark_message(error: Exception) -> str | None:
    """Give the message of an error that Spark raised, without Java's stack.

    Args:
        error: any error.

    Returns:
        The message; None for an error that is not Spark's.
    """
    module = type(error).__module__
    if module.startswith("py4j"):
        if "SPARK_JOB_CANCELLED" in str(error):
            return "The statement was cancelled."
        return _java_message(error) or str(error).split("\n\tat ", 1)[0]
    if module.startswith("pyspark.errors"):
        # The JVM's stack helps nobody who writes SQL.
        return str(error).split("\nJVM stacktrace", 1)[0].strip()
    return None


def _java_message(error: Exception) -> str:
    """The first message in a chain of Java exceptions that is more than a wrapper, or nothing."""
    exception: Any = getattr(error, "java_exception", None)
    while exception is not None:
        message = str(exception.getMessage() or "")
        kind = str(exception.getClass().getName())
        if not kind.endswith(".ExecutionException") and not message.startswith(_WAITED):
            return message or kind
        exception = exception.getCause()
    return ""
