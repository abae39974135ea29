"""Random verbs on a plain table: the store and a list of rows in Python stay in step."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from tests.support.table_verbs import EXAMPLES, TableVerbs


class TestTableVerbs(TableVerbs.TestCase):
    settings = settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate, Phase.reuse],
        stateful_step_count=10,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
