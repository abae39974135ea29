"""The rows that a user's Python function returns, in a form that the engine writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.errors import DataError
from ktk_engine.messages import Message, Remedy

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


def returned_rows(result: Any) -> DataFrame | pa.Table:
    """Take the rows that a function returned, as a Spark DataFrame or an Arrow table.

    Accepts Spark (also `pyspark.pandas`), pandas and Arrow. What pandas treats as missing (None,
    NaN, NaT, NA) becomes null. Raises a `DataError` for anything else, and for an index whose
    values would be lost.
    """
    if isinstance(result, pa.Table):
        return result
    if is_of("pyspark.sql", result):
        return result
    if type(result).__module__.startswith("pyspark.pandas."):
        refuse_index(result)
        return result.to_spark()
    import pandas as pd

    if isinstance(result, pd.DataFrame):
        return _as_table(result)
    raise DataError(
        Message(
            Remedy("returned"),
            f" returned {type(result).__name__}. It has to return a Spark DataFrame, a pandas "
            "DataFrame or an Arrow table.",
        )
    )


def is_of(package: str, frame: object) -> bool:
    """Whether a frame is one of a package, which is not imported to find out."""
    module = type(frame).__module__
    return type(frame).__name__ == "DataFrame" and f"{module}.".startswith(f"{package}.")


def _as_table(frame: pd.DataFrame) -> pa.Table:
    """Convert a pandas frame as Arrow does, without dropping anything silently."""
    refuse_index(frame)
    unnamed = [repr(name) for name in frame.columns if not isinstance(name, str)]
    if unnamed:
        raise DataError(
            f"Columns of the pandas frame have names that are not text: {', '.join(unnamed)}. "
            "Rename them: df.columns = [...]."
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        details = ": ".join(map(str, reversed(error.args)))
        raise DataError(f"The pandas frame does not fit into columns: {details}") from error
    return table.replace_schema_metadata(None)


def refuse_index(frame: Any, subject: str = "The pandas frame") -> None:
    """Refuse a named index: `groupby` puts columns there, and an index is not stored."""
    names = [str(name) for name in frame.index.names if name is not None]
    if names:
        raise DataError(
            f"{subject} has {', '.join(names)} in its index, which is not stored. Make columns of "
            "it with df.reset_index(), or drop it with df.reset_index(drop=True). Nothing was "
            "written."
        )
