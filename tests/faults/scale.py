"""How much is tried: little in every run of the tests, all of it by `make test-faults`.

KTK_FAULTS=large asks for the long run. Each failure names its case; KTK_FAULTS_CASE=<case> runs
that one alone, and KTK_FAULTS_SEED=<number> makes other cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

LARGE = os.environ.get("KTK_FAULTS") == "large"
SEED = os.environ.get("KTK_FAULTS_SEED", "1")
ONLY = os.environ.get("KTK_FAULTS_CASE", "")


def cases(what: str, small: int, large: int) -> Iterator[tuple[str, Random]]:
    """Names of cases, each with a source of chance that is the same in each run."""
    for number in range(large if LARGE else small):
        name = f"{what}-{SEED}-{number}"
        if ONLY in ("", name):
            yield name, Random(name)
