"""Views and cubes as relations: small documents that this library writes into the store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ktk_engine.catalog.source_address import StoreAddress, parse_address
from ktk_engine.errors import ConfigurationError, FormatError, UnsupportedFormatError
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.format.field_types import with_field_types
from ktk_engine.format.own_format import others_of, read_checksummed, render_checksummed
from ktk_engine.format.parse_json import check_size
from ktk_engine.messages import Remedy
from ktk_engine.sql.statement import read_statement
from ktk_engine.store.key import join_key, validate_uuid

FOLDER = ".ktk/view"
_SUFFIX = ".json"
_LARGEST_TEXT = 1 << 20  # characters
_CUBE_COMMENT = re.compile(r"/\* ktk cube: (\[(?:[^/]|/(?!\*))*?\]) \*/")


@dataclass(frozen=True)
class ViewDocument:
    """A relation that holds no rows."""

    name: str
    kind: Literal["view", "cube"]  # `view` for stored SQL, `cube` for a cube's virtual table
    sql: str = ""  # empty for a cube
    cube: str = ""  # empty for a view
    datasets: tuple[str, ...] = ()  # ids of the datasets that the cube's table joins; empty for all
    # id of an external dataset, which is only read -> schema or store address
    external: Mapping[str, str] = field(default_factory=dict)
    # column -> SQL type when the view was stored; empty for a cube, and if unknown
    columns: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = field(default_factory=Comments)
    owner: str = ""
    node: str = ""  # dbt's unique id of the node that stored it; empty without one
    project: str = ""  # the dbt project of `node`
    # digest of what `columns` were found by; empty if unknown
    checked: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)  # what later versions say about it

    def __post_init__(self) -> None:
        check_size(len(self.sql), _LARGEST_TEXT, f"The text of view {self.name}")


_NAMES = frozenset(item.name for item in fields(ViewDocument)) - {"others"}


def view_key(name: str) -> str:
    """Key of a view's document; an `InvalidKeyError` if no relation may have the name."""
    return join_key(FOLDER, validate_uuid(name) + _SUFFIX)


def view_name(file_name: str) -> str:
    """Name of the view whose document has this file name."""
    return file_name.removesuffix(_SUFFIX)


def render_view(view: ViewDocument) -> bytes:
    """Give a view's document."""
    known = {name: value for name, value in vars(view).items() if name != "others"}
    comments = view.comments.as_metadata()
    return render_checksummed({**view.others, **known, "comments": comments})


def parse_view(data: bytes, key: str) -> ViewDocument:
    """Read a view's document; `key` is for messages.

    Raises a `FormatError` if it is damaged, or an `UnsupportedFormatError` for an unknown format.
    """
    try:
        document = read_checksummed(data, f"View {key}")
        if document["kind"] not in ("view", "cube"):
            said = f"View {key} has an unknown kind. "
            raise UnsupportedFormatError(said, Remedy("upgrade"))
        known = {"checked": "", **document}
        view = ViewDocument(
            **{name: known[name] for name in _NAMES - {"datasets", "comments"}},
            datasets=tuple(document["datasets"]),
            comments=comments_of(document["comments"]),
            others=others_of(document, _NAMES),
        )
        return with_field_types(view)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"View {key} is damaged: {error}. Restore the file, or store the view again."
        ) from error


def shown_by(sql: str) -> tuple[str, str] | None:
    """Give the schema or address and the name of the relation of a plain `select * from`.

    None for any other view, and for a cube.
    """
    references = read_statement(sql).references
    if len(references) != 1 or references[0].version is not None or references[0].timestamp:
        return None
    (reference,) = references
    around = (sql[: reference.start] + sql[reference.end :]).split()
    address = parse_address(reference.parts[0]) if len(reference.parts) == 3 else None
    if [word.lower() for word in around] != ["select", "*", "from"]:
        return None
    if isinstance(address, StoreAddress):
        return None if address.version is not None else (address.store, address.relation)
    return (reference.parts[0], reference.parts[1]) if len(reference.parts) == 2 else None


def cube_comment(names: list[tuple[str, str]]) -> str:
    """Give the comment that `cube_of` compiles to."""
    return f"/* ktk cube: {json.dumps(names)} */"


def named_by_cube_comment(name: str, sql: str) -> list[tuple[str, str]]:
    """Read the schema or address and the name of each dataset from a compiled `cube_of`."""
    match = _CUBE_COMMENT.search(sql)
    if match is None:
        raise ConfigurationError(
            f"Cube {name} does not say which datasets it joins. ", Remedy("cube_body")
        )
    return [(str(schema), str(item)) for schema, item in json.loads(match[1])]
