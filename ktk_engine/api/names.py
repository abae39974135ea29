"""Names that a program gives as an argument."""

from __future__ import annotations

from collections.abc import Iterable

from ktk_engine.errors import ConfigurationError


def names_of(argument: str, given: Iterable[str] | None) -> tuple[str, ...]:
    """Return names as a tuple; a string is one name, not its letters.

    Args:
        argument: what they were given as, for messages.
        given: one name, or several; None means none.

    Raises:
        ConfigurationError: one of them is not text.
    """
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"{argument} must be column names, but is {given!r}. Nothing was written."
        )
    return names
