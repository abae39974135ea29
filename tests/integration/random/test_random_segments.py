"""The random verbs over indexes in segments, with bounds so small that tiers and merges happen."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from tests.support.cube_verbs import CubeVerbs
from tests.support.table_verbs import EXAMPLES, TableVerbs
from tests.support.tiny_bounds import tiny_indices


class _Segmented:
    """What goes before a state machine: every index is in segments."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds = tiny_indices()
        self.bounds.__enter__()

    def teardown(self) -> None:
        self.bounds.__exit__(None, None, None)
        super().teardown()


class _SegmentedTableVerbs(_Segmented, TableVerbs):
    pass


class _SegmentedCubeVerbs(_Segmented, CubeVerbs):
    pass


_SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.generate, Phase.reuse],
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class TestTablesInSegments(_SegmentedTableVerbs.TestCase):
    settings = _SETTINGS


class TestCubesInSegments(_SegmentedCubeVerbs.TestCase):
    settings = _SETTINGS
