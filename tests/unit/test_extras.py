"""What an extra installs is asked for by one function, which says what to install."""

from __future__ import annotations

import pytest

from ktk_engine.errors import ConfigurationError, SessionError
from ktk_engine.extras import need
from tests.support.voices import COMMAND, DBT


def test_what_is_installed_is_not_refused():
    need("report", "A report", "json", "pyarrow")


def test_what_is_missing_is_named_in_the_words_of_who_asked():
    with pytest.raises(ConfigurationError) as refused:
        need("report", "A report", "json", "no_such_package", "nor_this")
    error = refused.value
    missing = "A report needs packages that are not installed here (no_such_package, nor_this): "
    for said in (str(error), error.said(COMMAND)):
        assert said == f"{missing}pip install 'ktk-engine[report]'."
    assert error.said(DBT) == f"{missing}pip install 'dbt-ktk[report]'."
    assert [(item.kind, item.arguments) for item in error.remedies] == [
        ("install", {"extra": "report"})
    ]


def test_spark_is_a_matter_of_sessions():
    with pytest.raises(SessionError, match="'ktk-engine\\[spark\\]'"):
        need("spark", "Spark", "no_such_package", error=SessionError)
