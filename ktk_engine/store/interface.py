"""The interface of all object stores."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from ktk_engine.store.backoff import Backoff


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a listing."""

    key: str
    size: int  # in bytes
    modified: datetime  # when it was last written, by the store's clock; aware, UTC


class ObjectStore(ABC):
    """A flat space of keys and immutable contents, with put-if-absent and compare-and-swap.

    The protocol of commits rests on these promises (docs/design/files-and-commits.md, What
    a store must offer):

    - a reader sees an object completely or not at all;
    - of several `put_if_absent` for one key exactly one succeeds;
    - `ObjectNotFoundError` is raised only if the store says that there is no such object.
      Any other failure is a `StoreError`, after which the outcome is unknown, unless its
      `nothing_written` says that the object was certainly not written.

    Every method validates its keys and raises `InvalidKeyError` for a bad one.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The store's address, for example `file:///data/warehouse`, without secrets."""

    @property
    def is_remote(self) -> bool:
        """Whether every read is a request over a network."""
        return False

    @property
    def is_source(self) -> bool:
        """Whether it is a source: others' files, which are only read and may change at any time."""
        return False

    @property
    def public_options(self) -> Mapping[str, str] | None:
        """Settings with which another process opens it by its address, none of them secret.

        None: it cannot.
        """
        return None

    @property
    def is_staged(self) -> bool:
        """Whether commits are staged: others do not see them yet, and nothing is published."""
        return False

    @property
    def read_by_spark(self) -> bool:
        """Whether Spark's reader reads its files; otherwise tasks do, and choose what to fetch."""
        return not (self.is_remote or self.is_source)

    def shown(self, key: str) -> str:
        """Give a key as users know the object."""
        return key

    @property
    def backoff(self) -> Backoff:
        """How long to wait before a request to this store is retried."""
        return Backoff()

    @abstractmethod
    def get(self, key: str) -> bytes:
        """Read an object.

        Args:
            key: the object's key.

        Returns:
            The whole content.

        Raises:
            ObjectNotFoundError: there is no such object.
            StoreError: it could not be read.
        """

    @abstractmethod
    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Read a part of an object.

        Args:
            key: the object's key.
            start: offset of the first byte, not negative.
            length: number of bytes, not negative.

        Returns:
            The bytes; fewer than `length`, or none, where the object ends before.

        Raises:
            ObjectNotFoundError: there is no such object.
            StoreError: it could not be read.
        """

    @abstractmethod
    def get_with_token(self, key: str) -> tuple[bytes, str]:
        """Read an object together with a token for `replace`.

        Args:
            key: the object's key.

        Returns:
            The content, and a token for exactly this content.

        Raises:
            ObjectNotFoundError: there is no such object.
            StoreError: it could not be read.
        """

    @abstractmethod
    def put(self, key: str, data: bytes) -> None:
        """Create or replace an object; readers see the old content or the new one.

        Args:
            key: the object's key.
            data: the content.

        Raises:
            StoreError: it could not be written; the object may be old or new.
        """

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> None:
        """Create an object, unless there is one.

        Args:
            key: the object's key.
            data: the content.

        Raises:
            ObjectExistsError: an object with this key exists, and stays as it is.
            StoreError: the outcome is unknown, or known: see `StoreError.nothing_written`.
        """

    @abstractmethod
    def replace(self, key: str, data: bytes, token: str) -> None:
        """Replace an object, unless it has changed (compare-and-swap).

        Args:
            key: the object's key.
            data: the new content.
            token: what `get_with_token` returned.

        Raises:
            TokenMismatchError: the object has changed since, or is gone; nothing was written.
            StoreError: the outcome is unknown.
        """

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Tell whether there is an object with this key.

        Args:
            key: the object's key.

        Returns:
            Whether it exists. A folder is not an object.

        Raises:
            StoreError: the store could not be asked.
        """

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """List objects, in all folders.

        Args:
            prefix: the start of the wanted keys, as a plain string: `a/b` finds `a/b/c` and
                `a/bc`. Empty for all objects.

        Returns:
            The objects in code-point order of their keys, lazily. Objects that are created or
            deleted meanwhile may be listed or not.

        Raises:
            StoreError: the store could not be listed.
        """

    @abstractmethod
    def list_names(
        self, folder: str = "", prefix: str = "", since: str = "", at_most: int | None = None
    ) -> builtins.list[str]:
        """List the names directly in a folder: one shallow listing.

        Args:
            folder: key of the folder, without a trailing `/`; empty for the root.
            prefix: the start of the wanted names.
            since: the first wanted name, in code-point order; empty for all of them.
            at_most: how many names are wanted, the first ones; None for all of them.

        Returns:
            The names of objects, and those of sub-folders with a trailing `/`, in code-point
            order. Empty if there is no such folder. A name may also be that of something that is
            neither, such as a symbolic link: reading it is an error, so that it is not mistaken
            for a deleted object.

        Raises:
            StoreError: the folder could not be listed.
        """

    @abstractmethod
    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Missing ones are fine; folders left empty are removed.

        All keys are validated before the first one is deleted.

        Args:
            keys: keys of objects, never of folders.

        Raises:
            StoreError: an object could not be deleted; others may be gone.
        """

    @abstractmethod
    def open_read(
        self, key: str, size: int | None = None, ranges: Sequence[tuple[int, int]] = ()
    ) -> pa.NativeFile:
        """Open an object for random access.

        Args:
            key: the object's key.
            size: its size in bytes if known, which saves a remote store a request.
            ranges: start and length of what will be read, if known; a remote store fetches all of
                it in parallel.

        Returns:
            A readable, seekable file. The caller closes it.

        Raises:
            ObjectNotFoundError: there is no such object.
            StoreError: it could not be opened.
        """

    @abstractmethod
    def open_write(self, key: str) -> AbstractContextManager[pa.NativeFile]:
        """Write an object piece by piece, for large data files.

        The object appears when the block ends without an exception, by put-if-absent. Nothing
        remains when the block raises. A killed process leaves no object, only what
        `list_unfinished` shows.

        Args:
            key: the object's key.

        Returns:
            A context manager that gives a writable file.

        Raises:
            ObjectExistsError: at the end of the block, when the object exists.
            StoreError: it could not be written.
        """

    @abstractmethod
    def now(self) -> datetime:
        """The time by the store's clock; aware, UTC."""

    @abstractmethod
    def uri(self, key: str) -> str:
        """The address of an object for Spark.

        Args:
            key: the object's key.

        Returns:
            A URI, percent-encoded once: `%` in a key becomes `%25`, `ü` becomes `%C3%BC`.
        """

    def list_unfinished(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """List what killed or running writers have not finished.

        Such things are in no other listing. Their keys may be given to `delete`; look at their
        age first, since a writer may be at work.

        Args:
            prefix: the start of the wanted keys.

        Returns:
            The leftovers; none for stores that clean up by themselves.
        """
        return iter(())
