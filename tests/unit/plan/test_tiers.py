"""What tiers say about datasets in segments, of which a plan does not read all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.support.tiny_bounds import tiny_bounds

DAYS = 40


@pytest.fixture(params=["whole", "segments"])
def cube(request, tmp_path):
    days = list(range(DAYS))
    seed = pa.table({"d": days, "x": [1] * DAYS, "v": [n // 2 for n in days]})
    other = pa.table({"d": days, "x": [1] * DAYS, "w": [n % 7 for n in days]})

    def build():
        return Store(tmp_path).build(
            "c", {"seed": seed, "more": other}, dimension_columns=["x"], partition_by=["d"],
            indexes=["v"],
        )  # fmt: skip

    if request.param == "whole":
        return build()
    with tiny_bounds():
        return build()


@pytest.mark.parametrize(
    ("where", "seed", "more"),
    [
        # What an index or another dataset leaves out unread is theirs.
        ("v = 3", (40, 40, 2, 2, 2), (40, 40, 40, 40, 2)),
        ("w = 3 and v = 3", (40, 40, 2, 2, 0), (40, 40, 40, 5, 0)),
        ("d < 20 and v = 3", (40, 20, 2, 2, 2), (40, 20, 20, 20, 2)),
        ("d = 3", (40, 1, 1, 1, 1), (40, 1, 1, 1, 1)),
    ],
)
def test_each_tier_is_credited_with_what_it_ruled_out(cube, where, seed, more):
    plan = cube.query(["v", "w"], where=where).plan
    found = {item.dataset: [step.files for step in item.steps] for item in plan.datasets}
    assert len(plan.datasets) == 2
    for name, wanted in (("seed", seed), ("more", more)):
        assert len(found[name]) == len(wanted)
        # Of a segment that is not read, nobody knows which files others had ruled out before.
        assert all(has >= is_ for has, is_ in zip(found[name], wanted, strict=True)), found
        assert found[name][-1] == wanted[-1]
        assert found[name][0] == DAYS
        assert sorted(found[name], reverse=True) == found[name]
    rows = [step.rows for step in plan.datasets[0].steps]
    assert rows == found["seed"]
