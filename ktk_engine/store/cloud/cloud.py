"""What differs between the clouds: settings, credentials, the two clients, conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.cloud.address import CloudAddress
from ktk_engine.types.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig
    from obstore.store import ObjectStore as Client
    from pyarrow.fs import FileSystem

CONNECT_SECONDS = 10
REQUEST_SECONDS = 60


@dataclass(frozen=True)
class Cloud(ABC):
    """One kind of object store with its settings.

    Attributes:
        address: where it is.
        options: settings by name, checked; may hold secrets, so they are shown nowhere.
    """

    address: CloudAddress
    options: Mapping[str, str]

    # What `options` may hold, and what of it is secret.
    known = frozenset[str]()
    secret = frozenset[str]()

    def __repr__(self) -> str:
        """Show the address only."""
        return f"{type(self).__name__}({str(self.address)!r})"

    def __hash__(self) -> int:
        """Agree with equality, which compares the options too."""
        return hash((type(self), self.address))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of, and nothing that it found out."""
        return type(self), (self.address, dict(self.options))

    @abstractmethod
    def client(self, retry: bool = False) -> Client:
        """Make a client for conditional requests.

        Args:
            retry: let it repeat requests by itself. Who asks on a condition must know of every
                request, so it does so itself.
        """

    @abstractmethod
    def file_system(self) -> FileSystem:
        """Make a client for data files, which needs nothing but pyarrow."""

    @abstractmethod
    def for_tasks(self) -> Cloud:
        """Give what tasks need in other processes: resolved, and nothing else."""

    @property
    @abstractmethod
    def advice(self) -> str:
        """Where credentials are looked for, as a sentence for people who were refused."""

    def token(self, meta: ObjectMeta) -> str:
        """What stands for the content of an object; empty if the store gives nothing."""
        return str(meta["e_tag"] or "")

    def condition(self, token: str) -> Mapping[str, str]:
        """What a replacement asks for; never None, which would be no condition."""
        return {"e_tag": token}

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may hold."""
        return tuple(value for key, value in self.options.items() if key in self.secret and value)

    @property
    def endpoint(self) -> str:
        """Another address of the service than the usual one; empty for that."""
        return self.options.get("endpoint", "").rstrip("/")

    def has(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.options.get(name, "") == "true"

    def client_settings(self) -> ClientConfig:
        """Time limits of a client; plain HTTP only for an endpoint that says so."""
        return {
            "connect_timeout": f"{CONNECT_SECONDS}s",
            "timeout": f"{REQUEST_SECONDS}s",
            "allow_http": self.endpoint.startswith("http://"),
        }

    def retries(self, retry: bool) -> RetryConfig:
        """How often a client repeats a request by itself."""
        return {"max_retries": 8 if retry else 0, "retry_timeout": timedelta(minutes=3)}


def checked_options(name: str, given: Mapping[str, Any], known: frozenset[str]) -> dict[str, str]:
    """Check the names of settings, and give the values as text; empty ones are not given.

    Args:
        name: of the kind of store, for people.
        given: the settings.
        known: what there is.

    Raises:
        ConfigurationError: an unknown setting, or one that is no plain value.
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
    """Refuse an endpoint that is no plain address of a server, without repeating it.

    Args:
        endpoint: a URL; empty for none.
        name: of the setting, for people.

    Raises:
        ConfigurationError: it has another scheme, or holds a user, a key or a query.
    """
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
