"""What the start of Spark changes of this process."""

from __future__ import annotations

import warnings

from ktk_engine.spark.session.process_state import silence_what_nobody_needs


def test_the_warning_of_pandas_3_is_not_shown():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        silence_what_nobody_needs()
        warnings.warn("PySpark does not yet fully support pandas >= 3.0.0. Some", FutureWarning, 1)
        warnings.warn("else", FutureWarning, 1)
    assert [str(item.message) for item in shown] == ["else"]
