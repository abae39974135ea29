"""Whom a reader trusts: the addresses that documents of a store may lead to.

Views and cubes name relations and files elsewhere, and others may have written them. This is the
one place that decides which of these addresses are opened. See SECURITY.md.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ktk_engine.errors import ConfigurationError, KtkError, QueryError, without_secrets
from ktk_engine.messages import Remedy
from ktk_engine.store.cloud.address import parse_cloud_address
from ktk_engine.store.open_store import cloud_of, is_url, path_of_url

_SCHEMA_OF_CLOUD = 5  # kind, container, account, domain, and a folder in the container
_SCHEMA_ON_DISK = 3  # kind, and a folder in another than the root
_PATTERN = frozenset("*?[]{}\\")
# Options for Spark's reader that describe how files are written. Any other could choose which files
# are read, or becomes a setting of Hadoop.
_OPTIONS = frozenset(
    {
        "charset",
        "comment",
        "dateformat",
        "delimiter",
        "emptyvalue",
        "encoding",
        "enforceschema",
        "escape",
        "header",
        "ignoreleadingwhitespace",
        "ignoretrailingwhitespace",
        "inferschema",
        "linesep",
        "mode",
        "multiline",
        "nanvalue",
        "negativeinf",
        "nullvalue",
        "pathglobfilter",
        "positiveinf",
        "quote",
        "recursivefilelookup",
        "sep",
        "timestampformat",
        "timestampntzformat",
    }
)

Place = tuple[str, ...]
Files = tuple[str, tuple[tuple[str, str], ...]]  # a location, and options for Spark's reader


def is_store_address(schema: str) -> bool:
    """Whether this is the address of a store; names of schemas have no slash."""
    return "/" in schema


def resolve_place(schema: str, place: str) -> str:
    """Resolve a schema or an address that a view names against the view's own schema or address."""
    if not is_store_address(schema) or is_store_address(place):
        return place
    return f"{schema.rstrip('/').rpartition('/')[0]}/{place}"


@dataclass(frozen=True)
class Trust:
    """The addresses that the profile and the project name.

    `files` and `sources` are called when a document leads out of the other roots.
    """

    own: Collection[str] = ()  # warehouses of the project, whose views call its functions
    stores: Collection[str] = ()  # more warehouses and stores that the profile names
    sources: Callable[[], Iterable[str]] = tuple  # stores that the project names
    files: Callable[[], Iterable[Files]] = tuple  # plain files that the project names

    def is_own(self, schema: str) -> bool:
        """Whether a schema, or the store at an address, belongs to the project's warehouses."""
        return not is_store_address(schema) or _is_below(_place(schema), self.own)

    def follow(self, schema: str, name: str, place: str) -> str:
        """Resolve the schema or address to which a view or cube `name` of `schema` leads.

        Open what it gives, without links of this machine, and not `place`. Raises a `QueryError`
        that says how to allow it, unless it is below a trusted root or next to the document's own
        store.
        """
        where = resolve_place(schema, place)
        if not is_store_address(where):
            return where
        found = _place_in_document(where)
        if found is None or not (
            _is_below(found, (*self.own, *self.stores))
            or _are_beside(found, _place(schema) if is_store_address(schema) else None)
            or _is_below(found, self.sources())
        ):
            _refuse(schema, name, "the store", where)
        return _address(found, where)

    def follow_files(self, schema: str, name: str, files: Files) -> str:
        """Resolve the location of plain files that a view reads.

        Raises a `QueryError` unless the profile or the project names them; see `follow`. Options
        are those of a source, or say how files are written.
        """
        location, options = files
        if files in (named := tuple(self.files())):
            return location
        roots = [root for root, _ in named]
        if location not in roots:
            found = _place_in_document(location)
            resolved = location if found is None else _address(found, location)
            if _PATTERN & {*location, *resolved} or not _is_below(found, (*roots, *self.stores)):
                _refuse(schema, name, "the files", location)
            location = resolved
        if unknown := [key for key, _ in options if key.lower() not in _OPTIONS]:
            raise QueryError(
                f"{schema}.{name} reads the files at {files[0]} with the option `{unknown[0]}`, "
                "which no source of this project has for them. Nothing was read there. Read them "
                "by a source with this option."
            )
        return location


def options_for(url: str, root: str, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The settings of the store `root` for the store at another address; None for another cloud.

    Raises a `ConfigurationError` for an address of Azure in another domain, to which neither these
    settings nor credentials of the environment may go.
    """
    kind = cloud_of(url)
    if not kind or cloud_of(root) not in ("", kind):
        return None
    is_bound = bool(cloud_of(root) or options) and not options.get("endpoint")
    if kind == "az" and is_bound and _domain(url) != _domain(root):
        raise ConfigurationError(
            f"{url} is in another domain than the store whose credentials are known, and they are "
            "not sent there. Nothing was read. Name it as a store with settings of its own."
        )
    return options


def _domain(url: str) -> str:
    return (parse_cloud_address(url).domain if cloud_of(url) else "") or "core.windows.net"


def _refuse(schema: str, name: str, what: str, address: str) -> NoReturn:
    raise QueryError(
        f"{schema}.{name} reads {what} at {address}, which neither this project nor its "
        "profile names. Nothing was read there. ",
        Remedy("trust", address=without_secrets(address)),
    )


def _place(address: str) -> Place | None:
    """The one form of an address, part by part; None if it cannot be opened."""
    try:
        if kind := cloud_of(address):
            found = parse_cloud_address(address)
            host = (kind, found.container, found.account, found.domain)
            return (*host, *filter(None, found.prefix.split("/")))
        if is_url(address) and not address.lower().startswith("file:"):
            return None
        return ("file", *filter(None, os.path.realpath(path_of_url(address)).split("/")))
    except (KtkError, OSError, ValueError):
        return None


def _place_in_document(address: str) -> Place | None:
    """The place of an address that others wrote: no part of it leads up, not even encoded."""
    try:
        path = address if cloud_of(address) else path_of_url(address)
    except ConfigurationError:
        return None
    return None if {".", ".."} & set(path.split("/")) else _place(address)


def _address(place: Place, given: str) -> str:
    """The address to open for a place; a cloud has no links, so the given one is the same."""
    return "/" + "/".join(place[1:]) if place[0] == "file" else given


def _is_below(place: Place | None, roots: Iterable[str]) -> bool:
    """Whether a place is one of some roots, or below one."""
    found = (_place(root) for root in roots) if place else ()
    return any(root and place and place[: len(root)] == root for root in found)


def _are_beside(place: Place | None, own: Place | None) -> bool:
    """Whether two places are in one folder, or the same."""
    if place is None or own is None:
        return False
    has_parent = len(place) >= (_SCHEMA_ON_DISK if place[0] == "file" else _SCHEMA_OF_CLOUD)
    return place == own or (has_parent and place[:-1] == own[:-1])
