"""Packages that need an extra of the distribution, and how to install it."""

from __future__ import annotations

from importlib.util import find_spec

from ktk_engine.errors import ConfigurationError, KtkError
from ktk_engine.messages import Message, Remedy


def need(extra: str, who: str, *modules: str, error: type[KtkError] = ConfigurationError) -> None:
    """Refuse `who`, the beginning of a sentence, unless the modules of an extra are installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        said = f"{who} needs packages that are not installed here ({', '.join(missing)}): "
        raise error(Message(said, Remedy("install", extra=extra), "."))
