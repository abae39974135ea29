"""Views and cubes as relations: small documents of ours in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ktk_engine.errors import FormatError, UnsupportedFormatError
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.format.sealed import seal, unseal
from ktk_engine.store.key import join_key, validate_uuid

FOLDER = ".ktk/view"
# Since format 2 the document carries its own digest.
_FORMAT = 2
_FORMATS = (1, 2)
_SUFFIX = ".json"


@dataclass(frozen=True)
class ViewDocument:
    """A relation that holds no rows.

    Attributes:
        name: the relation's name in its schema.
        kind: `view` for stored SQL, `cube` for a cube's virtual table.
        sql: the view's query; empty for a cube.
        cube: the cube's name; empty for a view.
        datasets: ids of the datasets that the cube's table joins; empty means all of them.
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
    document = {"format": _FORMAT, **view.__dict__, "comments": view.comments.as_metadata()}
    return seal(document)


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
        document = unseal(data, 2, max(_FORMATS), f"View {key}")
        if document["format"] not in _FORMATS or document["kind"] not in ("view", "cube"):
            raise UnsupportedFormatError(f"View {key} has an unknown format. Upgrade dbt-ktk.")
        return ViewDocument(
            name=str(document["name"]),
            kind=document["kind"],
            sql=str(document["sql"]),
            cube=str(document["cube"]),
            datasets=tuple(document["datasets"]),
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
