"""Views and cubes as relations: small documents of ours in the store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from ktk_engine.errors import FormatError
from ktk_engine.store.key import join_key, validate_uuid

FOLDER = ".ktk/view"
_FORMAT = 1
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
    """

    name: str
    kind: Literal["view", "cube"]
    sql: str = ""
    cube: str = ""
    datasets: tuple[str, ...] = ()


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
    return json.dumps({"format": _FORMAT, **view.__dict__}, indent=1).encode()


def parse_view(data: bytes, key: str) -> ViewDocument:
    """Read a view's document.

    Args:
        data: the document.
        key: where it came from, for messages.

    Raises:
        FormatError: it is damaged or of a newer format.
    """
    try:
        document = json.loads(data)
        if document["format"] != _FORMAT or document["kind"] not in ("view", "cube"):
            raise FormatError(f"View {key} has an unknown format. Upgrade dbt-ktk.")
        return ViewDocument(
            name=str(document["name"]),
            kind=document["kind"],
            sql=str(document["sql"]),
            cube=str(document["cube"]),
            datasets=tuple(document["datasets"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"View {key} is damaged: {error!r}") from error
