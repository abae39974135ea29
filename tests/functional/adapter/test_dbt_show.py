"""dbt-tests-adapter: dbt_show."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    """With Spark's message, and read whole: pytest shortens an ExceptionInfo."""

    def test_double_limit_throws_syntax_error(self, project):
        with pytest.raises(DbtRuntimeError) as error:
            run_dbt(["show", "--limit", "1", "--inline", "select 1 limit 1"])
        assert "[PARSE_SYNTAX_ERROR] Syntax error at or near 'limit'" in str(error.value)
