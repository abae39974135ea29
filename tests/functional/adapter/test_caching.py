"""dbt-tests-adapter: caching."""

from __future__ import annotations

from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class TwoPartNames:
    """The base asks for the database's lower case; relations of Spark have none."""

    def run_and_inspect_cache(self, project, run_args=None):
        first = self.cached(project, run_args)
        assert first.schema == project.test_schema == project.test_schema.lower()
        second = self.cached(project, run_args)
        assert first.database is second.database is None
        for key in ("schema", "identifier"):
            assert getattr(first, key).lower() == getattr(second, key).lower()

    def cached(self, project, run_args):
        run_dbt(run_args)
        (relation,) = project.adapter.cache.relations
        return relation


class TestCachingLowercaseModel(TwoPartNames, BaseCachingLowercaseModel):
    pass


class TestCachingSelectedSchemaOnly(TwoPartNames, BaseCachingSelectedSchemaOnly):
    pass


class TestCachingUppercaseModel(TwoPartNames, BaseCachingUppercaseModel):
    pass


class TestNoPopulateCache(TwoPartNames, BaseNoPopulateCache):
    pass
