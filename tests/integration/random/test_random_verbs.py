"""Random verbs on a cube: the store and a model in Python stay in step."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from tests.support.cube_verbs import EXAMPLES, CubeVerbs


class TestCubeVerbs(CubeVerbs.TestCase):
    settings = settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate, Phase.reuse],
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
