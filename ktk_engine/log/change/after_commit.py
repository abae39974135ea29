"""What is said where a change stands, but something after it failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger(__name__)


@contextmanager
def after_commit(name: str) -> Iterator[None]:
    """Let whatever a block raises say that the change before it stands.

    Without this, a store that gives no answer to the first question after a commit looks like one
    that refused the commit: who then appends again has the rows twice.

    Args:
        name: what was changed.
    """
    try:
        yield
    except BaseException as error:
        note = (
            f"{name}: what was to change is committed and stays so; only what came after it "
            "failed. Do not repeat it."
        )
        error.add_note(note)
        _LOGGER.warning(note)
        raise
