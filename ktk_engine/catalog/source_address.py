"""Addresses of rows outside a warehouse, as text in the place of a catalog in SQL.

A relation with such an address has a name of three parts: the address, and the two parts that users
gave it. So statements and stored views say where their rows are stored, and sources of the same
name do not clash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import parse_qsl, quote, unquote, urlencode

FileFormat = Literal["parquet", "csv", "json"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
_STORE = "ktk"
_SAFE = "/:,~"
NUMBER = re.compile("[0-9]{1,99}")  # of a version; anything else is a tag

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileAddress:
    """Files that Spark reads."""

    location: str  # file, folder or glob: a path or a URL of any file system that Spark has
    format: FileFormat
    options: Pairs = ()  # of Spark's reader
    columns: Pairs = ()  # column -> declared type, as YAML names it

    def __str__(self) -> str:
        pairs = [("option." + key, value) for key, value in self.options]
        pairs += [("column." + name, type_) for name, type_ in self.columns]
        return _render(self.format, self.location, pairs)


@dataclass(frozen=True)
class StoreAddress:
    """A relation of any Kartothek store."""

    store: str  # absolute path or URL
    relation: str  # see `Catalog.find`
    version: int | str | None = None  # number or tag; None for the newest

    def __str__(self) -> str:
        pairs = [("relation", self.relation)]
        if self.version is not None:
            pairs.append(("version", str(self.version)))
        return _render(_STORE, self.store, pairs)


Address = FileAddress | StoreAddress


def parse_address(text: str) -> Address | None:
    """Read an address; None if the text is none."""
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in (_STORE, *FILE_FORMATS):
        return None
    path, _, query = rest.partition("?")
    location, pairs = unquote(path), parse_qsl(query, keep_blank_values=True)
    if scheme == _STORE:
        given = dict(pairs)
        version = given.get("version", "")
        number = int(version) if NUMBER.fullmatch(version) else None
        return StoreAddress(location, given.get("relation", ""), number or version or None)
    return FileAddress(
        location,
        cast(FileFormat, scheme),
        _with_prefix("option.", pairs),
        _with_prefix("column.", pairs),
    )


def _render(scheme: str, location: str, pairs: list[tuple[str, str]]) -> str:
    # SQL and Jinja never see a quote, backtick, brace or star of a path.
    query = urlencode(pairs, safe=_SAFE, quote_via=quote)
    return f"{scheme}:{quote(location, safe=_SAFE)}" + (f"?{query}" if query else "")


def _with_prefix(prefix: str, pairs: list[tuple[str, str]]) -> Pairs:
    return tuple((k.removeprefix(prefix), value) for k, value in pairs if k.startswith(prefix))
