"""Views and cubes as relations: small documents of ours in the store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ktk_engine.catalog.source_address import StoreAddress, parse_address
from ktk_engine.errors import ConfigurationError, FormatError, UnsupportedFormatError
from ktk_engine.format.checksummed_json import read_checksummed, render_checksummed
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.messages import Message, Remedy
from ktk_engine.sql.statement import read_statement
from ktk_engine.store.key import join_key, validate_uuid

FOLDER = ".ktk/view"
# Since format 2 the document carries its own digest. Format 3 is a cube that stands on datasets of
# other stores, which earlier versions would not look for; all else is written as format 2.
_FORMATS = (1, 2, 3)
_SUFFIX = ".json"
_CUBE_COMMENT = re.compile(r"/\* ktk cube: (\[.*?\]) \*/", re.DOTALL)


@dataclass(frozen=True)
class ViewDocument:
    """A relation that holds no rows.

    Attributes:
        name: the relation's name in its schema.
        kind: `view` for stored SQL, `cube` for a cube's virtual table.
        sql: the view's query; empty for a cube.
        cube: the cube's name; empty for a view.
        datasets: ids of the datasets that the cube's table joins; empty means all of them.
        elsewhere: id of a dataset that lies elsewhere -> the schema or the address of its store,
            from which it is only read.
        columns: column -> SQL name of its type, as the view's query had them when it was stored;
            empty for a cube, and where nobody asked.
        comments: what people say of it.
        owner: who stored it; empty if unknown.
        node: dbt's unique id of what stored it; empty if no node of dbt did.
        project: the dbt project that `node` was run in.
    """

    name: str
    kind: Literal["view", "cube"]
    sql: str = ""
    cube: str = ""
    datasets: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = field(default_factory=Comments)
    owner: str = ""
    node: str = ""
    project: str = ""


def view_key(name: str) -> str:
    """Key of a view's document.

    Raises:
        InvalidKeyError: the name holds characters that no relation may have.
    """
    return join_key(FOLDER, validate_uuid(name) + _SUFFIX)


def view_name(file_name: str) -> str:
    """Name of the view whose document has this file name."""
    return file_name.removesuffix(_SUFFIX)


def render_view(view: ViewDocument) -> bytes:
    """Give a view's document."""
    document = {**view.__dict__, "comments": view.comments.as_metadata()}
    if not view.elsewhere:
        del document["elsewhere"]
    return render_checksummed({"format": 3 if view.elsewhere else 2, **document})


def parse_view(data: bytes, key: str) -> ViewDocument:
    """Read a view's document.

    Args:
        data: the document.
        key: where it came from, for messages.

    Raises:
        FormatError: it is damaged.
        UnsupportedFormatError: it is of a newer format.
    """
    try:
        document = read_checksummed(data, 2, max(_FORMATS), f"View {key}")
        if document["format"] not in _FORMATS or document["kind"] not in ("view", "cube"):
            said = f"View {key} has an unknown format. "
            raise UnsupportedFormatError(Message(said, Remedy("upgrade")))
        return ViewDocument(
            name=str(document["name"]),
            kind=document["kind"],
            sql=str(document["sql"]),
            cube=str(document["cube"]),
            datasets=tuple(document["datasets"]),
            elsewhere=dict(document.get("elsewhere", {})),
            columns=dict(document.get("columns", {})),
            comments=comments_of(document.get("comments", {})),
            owner=str(document.get("owner", "")),
            node=str(document.get("node", "")),
            project=str(document.get("project", "")),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"View {key} is damaged: {error}. Restore the file, or store the view again."
        ) from error


def shown_by(sql: str) -> tuple[str, str] | None:
    """Give the schema, or the address, and the name of the relation that a view shows as it is.

    Args:
        sql: the view's query.

    Returns:
        None for a view that does more than `select * from` one relation, and for a cube.
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
    """Read the comment that `cube_of` compiles to: schema, or address, and name of each dataset.

    Args:
        name: of the cube's model.
        sql: what the model compiled to.

    Raises:
        ConfigurationError: there is no such comment.
    """
    match = _CUBE_COMMENT.search(sql)
    if match is None:
        raise ConfigurationError(
            Message(f"Cube {name} does not say which datasets it joins. ", Remedy("cube_body"))
        )
    return [(str(schema), str(item)) for schema, item in json.loads(match[1])]
