"""dbt-tests-adapter: store_test_failures. The failures themselves are plain tables or views."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
    BaseStoreTestFailuresLimit,
)


@pytest.mark.cells("name")
class TestStoreTestFailuresAsExceptions(StoreTestFailuresAsExceptions):
    pass


@pytest.mark.cells("name")
class TestStoreTestFailuresAsGeneric(StoreTestFailuresAsGeneric):
    pass


@pytest.mark.cells("name")
class TestStoreTestFailuresAsInteractions(StoreTestFailuresAsInteractions):
    pass


@pytest.mark.cells("name")
class TestStoreTestFailuresAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    pass


@pytest.mark.cells("name")
class TestStoreTestFailuresAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    pass


@pytest.mark.cells("name")
class TestStoreTestFailuresAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    pass


@pytest.mark.cells(
    "id",
    expected_accepted_values=["value_field"],
    expected_not_null_problematic_model_id=["first_name"],
    expected_unique_problematic_model_id=["unique_field"],
)
class TestStoreTestFailures(BaseStoreTestFailures):
    pass


class TestStoreTestFailuresLimit(BaseStoreTestFailuresLimit):
    pass
