"""dbt-tests-adapter: incremental."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import (
    BaseMergeExcludeColumns,
)
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestMicrobatch(BaseMicrobatch):
    pass


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


# The predicate leaves a second row of id 2, so that id alone addresses no row.
@pytest.mark.cells("id", "msg")
class TestIncrementalPredicates(BaseIncrementalPredicates):
    pass


# A city may be null, and an appended row repeats a place.
@pytest.mark.cells("state", "county", "last_visit_date")
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    pass
