"""Names that a program gives as an argument."""

from __future__ import annotations

from collections.abc import Iterable

from ktk_engine.errors import ConfigurationError


def names_of(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    """Give names as a tuple; a text is one name, and not its letters.

    Args:
        argument: what they were given as, for messages.
        given: one name, or several.

    Raises:
        ConfigurationError: one of them is no text.
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"{argument} must be column names, but is {given!r}. Nothing was written."
        )
    return names
