"""Random verbs go over segments, too: few files cross the bounds of snapshots and indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tiny_bounds import tiny_bounds


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with tiny_bounds(INDEX_FILE_BYTES=1_300):
        yield
