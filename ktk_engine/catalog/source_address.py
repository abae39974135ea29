"""Addresses of rows outside a warehouse, as text that stands in SQL in the place of a catalog.

A relation with such an address has a name of three parts: the address, and the two parts that
people gave it. So a statement says by itself where its rows lie, a stored view does too, and two
sources of the same name never meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ktk_engine.store.warehouse import is_store_address
from ktk_engine.types.quote import quote_identifier

FileFormat = Literal["parquet", "csv", "json"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
_STORE = "ktk"
_SAFE = "/:,~"

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileAddress:
    """Files that Spark reads.

    Attributes:
        location: a file, a folder or a glob; a path or a URL of any file system of Spark.
        format: of the files.
        options: options of Spark's reader.
        columns: column -> its declared type, as YAML names it.
    """

    location: str
    format: FileFormat
    options: Pairs = ()
    columns: Pairs = ()

    def __str__(self) -> str:
        pairs = [("option." + key, value) for key, value in self.options]
        pairs += [("column." + name, type_) for name, type_ in self.columns]
        return _render(self.format, self.location, pairs)


@dataclass(frozen=True)
class StoreAddress:
    """A relation of any Kartothek store.

    Attributes:
        store: the store's address: an absolute path or a URL.
        relation: its name there, see `find_relation`.
        version: the version that is read, or a tag; None for the newest.
    """

    store: str
    relation: str
    version: int | str | None = None

    def __str__(self) -> str:
        pairs = [("relation", self.relation)]
        if self.version is not None:
            pairs.append(("version", str(self.version)))
        return _render(_STORE, self.store, pairs)


Address = FileAddress | StoreAddress


def parse_address(text: str) -> Address | None:
    """Read an address; None for a text that is none."""
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in (_STORE, *FILE_FORMATS):
        return None
    path, _, query = rest.partition("?")
    location, pairs = unquote(path), parse_qsl(query, keep_blank_values=True)
    if scheme == _STORE:
        given = dict(pairs)
        version = given.get("version", "")
        number = int(version) if version.isdecimal() else None
        return StoreAddress(location, given.get("relation", ""), number or version or None)
    return FileAddress(
        location,
        cast(FileFormat, scheme),
        _with_prefix("option.", pairs),
        _with_prefix("column.", pairs),
    )


def qualified_name(schema: str, name: str) -> str:
    """Write a relation's name in SQL.

    Args:
        schema: a schema of the warehouse, or the address of a store.
        name: its name there.
    """
    if is_store_address(schema):
        return f"{quote_identifier(str(StoreAddress(schema, name)))}.`store`.`relation`"
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def _render(scheme: str, location: str, pairs: list[tuple[str, str]]) -> str:
    # No quote, backtick, brace or star of a path reaches SQL or Jinja.
    query = urlencode(pairs, safe=_SAFE, quote_via=quote)
    return f"{scheme}:{quote(location, safe=_SAFE)}" + (f"?{query}" if query else "")


def _with_prefix(prefix: str, pairs: list[tuple[str, str]]) -> Pairs:
    return tuple((k.removeprefix(prefix), value) for k, value in pairs if k.startswith(prefix))
