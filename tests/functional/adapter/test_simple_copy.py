"""dbt-tests-adapter: simple_copy."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase

from tests.functional.adapter.left_out import NOT_SPARK
from tests.functional.conftest import profile_target


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self):
        return profile_target()


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass


class TestSimpleCopy(SimpleCopyBase):
    @pytest.mark.left_out(NOT_SPARK, "there are no materialized views")
    def test_simple_copy_with_materialized_views(self, project):
        super().test_simple_copy_with_materialized_views(project)
