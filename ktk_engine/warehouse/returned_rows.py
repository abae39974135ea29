"""The rows that a user's Python function returns, in a form that the engine writes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
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
        refuse_repeated(result.schema.names, "The Arrow table")
        return result
    if is_of("pyspark.sql", result):
        return result
    if type(result).__module__.startswith("pyspark.pandas."):
        refuse_index(result)
        return result.to_spark()
    import pandas as pd

    if isinstance(result, pd.DataFrame):
        return table_of_pandas(result, "The pandas frame")
    raise DataError(
        Message(
            Remedy("returned"),
            f" returned {type(result).__name__}. It has to return a Spark DataFrame, a pandas "
            "DataFrame or an Arrow table.",
        )
    )


def is_of(package: str, frame: object) -> bool:
    """Whether a frame is one of a package, which is not imported to find out."""
    return any(
        kind.__name__ == "DataFrame" and f"{kind.__module__}.".startswith(f"{package}.")
        for kind in type(frame).__mro__
    )


def table_of_pandas(frame: pd.DataFrame, subject: str) -> pa.Table:
    """Convert a pandas frame as Arrow does, except where Arrow would change or drop something.

    `subject` names it in messages. Raises a `DataError` for a named index, for names of columns
    that are not text or repeated, and for values that Arrow cannot convert.
    """
    refuse_index(frame, subject)
    names = list(frame.columns)
    if not names:
        raise DataError(f"{subject} has no columns. Nothing was written.")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise DataError(
            f"{subject}: names of columns must be text, but one is {wrong[0]!r}. Rename it, for "
            "instance by df.columns = [...]. Nothing was written."
        )
    refuse_repeated(names, subject)
    for place, name in enumerate(names):
        if not name.isascii() and name != name.encode(errors="replace").decode():
            raise DataError(
                f"{subject}: a column is called {name!r}, with half of a surrogate pair, which is "
                "not a character. Rename it. Nothing was written."
            )
        if mixture := _mixture([_objects(frame.iloc[:, place])]):
            raise DataError(
                f"{subject}: column `{name}` has {mixture}, which Arrow would make the same type "
                "of. Give all of its values one type. Nothing was written."
            )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{subject} cannot be converted: {_reason(frame, error)}. Give the column one type "
            "that Arrow has, for instance by astype. Nothing was written."
        ) from error
    return table.replace_schema_metadata(None)


def _objects(column: pd.Series[Any]) -> Iterable[Any]:
    """The values of a column, or of its categories, that are Python objects; none is missing."""
    values = getattr(column.dtype, "categories", column)
    return values.dropna() if values.dtype == object else ()


def _mixture(parts: Sequence[Iterable[Any]]) -> str:
    """Name different values that Arrow gives one type, also those in lists and dicts."""
    import pandas as pd

    kinds = {*map(type, chain.from_iterable(parts))} - {type(None), type(pd.NaT), type(pd.NA)}

    def has(*wanted: type) -> bool:
        return any(issubclass(kind, wanted) for kind in kinds)

    def given(*wanted: type) -> Iterator[Any]:
        return (value for value in chain.from_iterable(parts) if isinstance(value, wanted))

    if has(str) and has(bytes, bytearray, memoryview):
        return "texts and bytes"
    if has(bool, np.bool_) and has(float, np.floating):
        return "booleans and numbers"
    if has(datetime):
        if not all(issubclass(kind, datetime) for kind in kinds):
            return "datetimes and other values"
        times = [value for value in given(datetime) if value is not pd.NaT]
        if len({value.tzinfo is None for value in times}) > 1:
            return "datetimes with and without a time zone"
        if any(getattr(value, "nanosecond", 0) for value in times):
            return "nanoseconds in a column of type object"
    if has(time) and any(value.tzinfo for value in given(time)):
        return "times with a time zone"
    if has(list, tuple, np.ndarray):
        mixture = _mixture([_elements(value) for value in given(list, tuple, np.ndarray)])
        return mixture and f"{mixture} in lists"
    if has(dict):
        fields = defaultdict(list)
        for key, value in chain.from_iterable(value.items() for value in given(dict)):
            fields[key].append(value)
        found = ((key, _mixture([values])) for key, values in fields.items())
        return next((f"{mixture} in {key!r} of dicts" for key, mixture in found if mixture), "")
    return ""


def _elements(values: Any) -> Any:
    """What tells the types in a list: an array of one type has them all in its first element."""
    if not isinstance(values, np.ndarray):
        return values
    return values.ravel() if values.dtype == object else values.ravel()[:1]


def _reason(frame: pd.DataFrame, error: Exception) -> str:
    """Say which column Arrow cannot convert, and why."""
    if isinstance(error, pa.ArrowException):
        return ": ".join(str(part).rstrip(".") for part in reversed(error.args))
    reason = str(error).rstrip(".")
    if isinstance(error, OverflowError):
        reason = "an integer has more than 64 bits"
    elif isinstance(error, UnicodeEncodeError):
        reason = "a text has half of a surrogate pair, which is not a character"
    for place, name in enumerate(frame.columns):
        try:
            pa.Array.from_pandas(frame.iloc[:, place])
        except (ValueError, TypeError, OverflowError):
            return f"column `{name}`: {reason}"
    return reason


def refuse_repeated(names: Sequence[str], subject: str) -> None:
    """Refuse several columns of one name; a dataset would keep one of them."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        listed = ", ".join(f"`{name}`" for name in repeated)
        raise DataError(f"{subject} has several columns {listed}. Nothing was written.")


def refuse_index(frame: Any, subject: str = "The pandas frame") -> None:
    """Refuse a named index: `groupby` puts columns there, and an index is not stored."""
    names = [str(name) for name in frame.index.names if name is not None]
    if names:
        raise DataError(
            f"{subject} has {', '.join(names)} in its index, which is not stored. Make columns of "
            "it with df.reset_index(), or drop it with df.reset_index(drop=True). Nothing was "
            "written."
        )
