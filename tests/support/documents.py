"""What lies in a store for other programs: documents, schemas, indexes, views."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

import pyarrow as pa

from ktk_engine.catalog.view import (
    ViewDocument,
    cube_comment,
    parse_view,
    render_view,
    shown_by,
    view_key,
)
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.format.comments import COLUMNS_KEY, RELATION_KEY, Comments
from ktk_engine.format.common_metadata import render_common_metadata
from ktk_engine.format.dataset_key import (
    TABLE,
    common_metadata_key,
    data_key,
    document_key,
    index_key,
    published_index_key,
)
from ktk_engine.format.document import DatasetDocument, parse_document, render_document
from ktk_engine.format.index_file import build_index, flatten_index, read_index, render_index
from ktk_engine.format.label import partition_path
from ktk_engine.format.load_document import list_documents, load_document
from ktk_engine.format.own_format import render_checksummed
from ktk_engine.format.stamp import STAMP_KEY, Stamp, add_stamp, digest, read_stamp
from tests.support.stores import ObjectStore


def add_view(store: ObjectStore, view: ViewDocument) -> None:
    """Write a view, or a cube as a relation."""
    store.put(view_key(view.name), render_view(view))


def stored_index(store: ObjectStore, key: str) -> pa.Table:
    """The pairs of a secondary index: `value` and `label`."""
    return flatten_index(read_index(store.get(key)))
