"""dbt-tests-adapter: aliases."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases.fixtures import MACROS__CAST_SQL, MACROS__EXPECT_VALUE_SQL
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentSchemas,
)


class SparkText:
    @pytest.fixture(scope="class")
    def macros(self):
        cast = MACROS__CAST_SQL.replace("'{{ s }}'::text", "cast('{{ s }}' as string)")
        assert cast != MACROS__CAST_SQL
        return {"cast.sql": cast, "expect_value.sql": MACROS__EXPECT_VALUE_SQL}


class TestAliases(SparkText, BaseAliases):
    pass


class TestAliasErrors(SparkText, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkText, BaseSameAliasDifferentSchemas):
    pass
