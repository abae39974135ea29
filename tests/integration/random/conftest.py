"""Random verbs go over segments of snapshots, too: their bounds are crossed by few files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tiny_bounds import set_tiny_bounds


@pytest.fixture(scope="module", autouse=True)
def tiny_bounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_tiny_bounds(patch)
        yield
