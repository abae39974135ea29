"""dbt-tests-adapter: concurrency."""

from __future__ import annotations

from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency


class TestConcurrency(BaseConcurrency):
    pass
