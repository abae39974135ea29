"""Random verbs go over segments, too: few files cross the bounds of snapshots and indices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tiny_bounds import set_tiny_bounds, tiny_indices


@pytest.fixture(scope="module", autouse=True)
def tiny_bounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, tiny_indices(INDEX_FILE_BYTES=1_300):
        set_tiny_bounds(patch)
        yield
