"""What is installed only with an extra of the distribution, and how to get it."""

from __future__ import annotations

from importlib.util import find_spec

from ktk_engine.errors import ConfigurationError, KtkError
from ktk_engine.messages import Message, Remedy


def need(extra: str, who: str, *modules: str, error: type[KtkError] = ConfigurationError) -> None:
    """Refuse what an extra is needed for, unless its modules are installed.

    Args:
        extra: its name.
        who: what needs it, as the beginning of a sentence.
        modules: what is imported.
        error: the kind of error.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        said = f"{who} needs packages that are not installed here ({', '.join(missing)}): "
        raise error(Message(said, Remedy("install", extra=extra), "."))
