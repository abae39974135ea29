"""Requests through obstore, retried unless refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ktk_engine.errors import ObjectNotFoundError
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.cloud.cloud import Cloud
from ktk_engine.store.cloud.request_failure import (
    client_errors,
    not_found,
    read_failure,
    store_error,
)

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore as Client

_T = TypeVar("_T")


class Requests:
    """Makes requests through obstore, and retries them unless refused."""

    def __init__(self, cloud: Cloud, backoff: Backoff) -> None:
        self.cloud, self.backoff = cloud, backoff

    @cached_property
    def client(self) -> Client:
        """The client, which does not retry by itself."""
        return self.cloud.client()

    def ask(self, action: str, key: str, request: Callable[[Client], _T]) -> _T:
        """Make a request that may be repeated; `action` names it in errors, `key` may be empty.

        Raises an `ObjectNotFoundError` or another `StoreError`.
        """
        for failures in range(1, self.backoff.tries + 1):
            try:
                return request(self.client)
            except client_errors() as error:
                failure = read_failure(error, self.cloud)
            if failure.missing and key and not failure.no_container:
                raise not_found(self.cloud, key) from None
            if not failure.transient or failures == self.backoff.tries:
                # Without the client's error as cause, which may contain secrets.
                raise store_error(failure, self.cloud, action, key) from None
            self.backoff.pause(failures)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def write_if(self, key: str, data: bytes, mode: PutMode, refusal: type[Exception]) -> bool:
        """Write an object on a condition, and tell whether it held.

        If the response is lost, the object's content decides: names are reused only for the same
        content. `refusal` is the client's exception for a failed condition. After a `StoreError`
        the outcome is unknown, unless it says `nothing_written`.
        """
        path = self.cloud.address.path(key)
        unanswered = False
        for failures in range(1, self.backoff.tries + 1):
            try:
                self.client.put(path, data, mode=mode, use_multipart=False)
                return True
            except client_errors() as error:
                failure = read_failure(error, self.cloud)
                met = isinstance(error, refusal)
            if met and not failure.transient and not failure.no_container:
                return unanswered and self._holds(key, data)
            unanswered = unanswered or not failure.refused
            if not failure.transient or failures == self.backoff.tries:
                raise store_error(
                    failure, self.cloud, "write", key, nothing_written=not unanswered
                ) from None
            self.backoff.pause(failures)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def read(self, key: str) -> bytes:
        """Read an object; see `ask`."""
        path = self.cloud.address.path(key)
        return self.ask("read", key, lambda client: bytes(client.get(path).bytes()))

    def _holds(self, key: str, data: bytes) -> bool:
        """Whether an object has this content, so that a put with a lost response was done."""
        try:
            return self.read(key) == data
        except ObjectNotFoundError:
            return False
