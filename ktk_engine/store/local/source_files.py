"""Files of this machine that are a source: others write them, at any path."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import ObjectNotFoundError, StoreError
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.key import validate_key
from ktk_engine.store.local.local_store import LocalStore

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class SourceFiles(LocalStore):
    """Reads files anywhere on this machine, also through links; read-only.

    A key is an absolute path without its first slash. Its file may change at any time.
    """

    def __init__(self, name: str, location: str) -> None:
        """Open nothing; name and location, as users write them, are for messages."""
        super().__init__("/")
        self._name, self._location = name, location

    @property
    def url(self) -> str:
        """Its name in messages, which is not an address."""
        return f"source {self._name} ({self._location})"

    @property
    def is_source(self) -> bool:
        """See `ObjectStore.is_source`."""
        return True

    def shown(self, key: str) -> str:
        """See `ObjectStore.shown`."""
        return "/" + key

    def uri(self, key: str) -> str:
        """See `ObjectStore.uri`."""
        return "file:///" + urllib.parse.quote(validate_key(key))

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        path = "/" + validate_key(key)
        try:
            descriptor = os.open(path, _FLAGS)
        except FileNotFoundError as error:
            raise ObjectNotFoundError(f"{path} no longer exists") from error
        except OSError as error:
            raise StoreError(
                Message(
                    f"The file {path} of {self.url} cannot be opened: {error.strerror}. Let this "
                    "user read it, or leave it out of ",
                    Remedy("location"),
                    ".",
                )
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)
