"""What differs between the clouds: settings, credentials, clients, and conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.cloud.address import CloudAddress
from ktk_engine.types.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore as Client
    from pyarrow.fs import FileSystem

CONNECT_SECONDS = 10
REQUEST_SECONDS = 60
_Client = TypeVar("_Client")


@dataclass(frozen=True)
class Cloud(ABC):
    """One kind of object store with its settings."""

    address: CloudAddress
    options: Mapping[str, str]  # checked settings, which may hold secrets: never shown

    # The settings that `options` may have, and which are secret.
    known = frozenset[str]()
    secret = frozenset[str]()

    def __repr__(self) -> str:
        """Show only the address."""
        return f"{type(self).__name__}({str(self.address)!r})"

    def __hash__(self) -> int:
        """Agree with equality, which includes the options."""
        return hash((type(self), self.address))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only what it was made of."""
        return type(self), (self.address, dict(self.options))

    @abstractmethod
    def client(self, retry: bool = False) -> Client:
        """Make a client for conditional requests, which retries by itself only if told.

        Conditional requests are retried by the caller, who has to know of each one.
        """

    @abstractmethod
    def file_system(self) -> FileSystem:
        """Make a client for data files that needs only pyarrow."""

    @abstractmethod
    def for_tasks(self) -> Cloud:
        """Give what tasks in other processes need, with resolved credentials."""

    @property
    @abstractmethod
    def advice(self) -> str:
        """Where credentials come from, as a sentence for users whose request was refused."""

    def token(self, meta: ObjectMeta) -> str:
        """A token for an object's content; empty if the store gives none."""
        return str(meta["e_tag"] or "")

    def condition(self, token: str) -> Mapping[str, str]:
        """The condition of a replacement; never None, which would be unconditional."""
        return {"e_tag": token}

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may contain."""
        return tuple(value for key, value in self.options.items() if key in self.secret and value)

    @property
    def endpoint(self) -> str:
        """Another address of the service; empty for the default."""
        return self.options.get("endpoint", "").rstrip("/")

    def has(self, name: str) -> bool:
        """Whether a flag is set."""
        return self.options.get(name, "") == "true"

    def make_client(
        self, kind: Callable[..., _Client], settings: Mapping[str, Any], endpoint: str, retry: bool
    ) -> _Client:
        """Make a client with timeouts; plain HTTP only for an endpoint with `http://`."""
        options = {
            "connect_timeout": f"{CONNECT_SECONDS}s",
            "timeout": f"{REQUEST_SECONDS}s",
            "allow_http": endpoint.startswith("http://"),
        }
        retries = {"max_retries": 8 if retry else 0, "retry_timeout": timedelta(minutes=3)}
        container = self.address.container
        return kind(container, client_options=options, retry_config=retries, **settings)


def checked_options(name: str, given: Mapping[str, Any], known: frozenset[str]) -> dict[str, str]:
    """Check the names of settings, and give non-empty values as text.

    Raises a `ConfigurationError` for unknown settings and for values that are not text.
    """
    for key, value in given.items():
        if key not in known:
            raise ConfigurationError(
                f"storage_options has the key `{key}`, which {name} does not know."
                f"{did_you_mean(str(key), known)} Known keys: {', '.join(sorted(known))}."
            )
        if value is not None and not isinstance(value, (str, int)):
            raise ConfigurationError(f"storage_options: the value of `{key}` has to be text.")
    texts = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in given.items()
        if value not in (None, "")
    }
    check_endpoint(texts.get("endpoint", ""), "storage_options: `endpoint`")
    return texts


def check_endpoint(endpoint: str, name: str) -> None:
    """Refuse an endpoint that is not a plain address of a server, without repeating it."""
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{name} has to begin with https:// (or http://, for a server of your own)."
        )
    if any(letter in endpoint for letter in "@?#"):
        raise ConfigurationError(
            f"{name} holds '@', '?' or '#': it is a server's address alone, https://host:port. "
            "Keys are settings of their own (docs/stores.md)."
        )


def authority(endpoint: str) -> tuple[str, str]:
    """Split an endpoint into its scheme and the rest."""
    scheme, _, rest = endpoint.partition("://")
    return scheme, rest
