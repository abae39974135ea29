"""Another program that writes to our datasets, as Kartothek does."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pyarrow as pa

from ktk_engine.format.dataset_key import document_key
from ktk_engine.format.document import render_document
from ktk_engine.format.load_document import load_document
from tests.support.dataset_builder import Builder, commit_change


def append_as_kartothek(store, uuid, table=None):
    """Add a file without our log: the top-level stamp is lost, `ktk_base` stays."""
    changed = foreign_document(store, uuid, table)
    store.put(document_key(uuid), render_document(changed))
    return changed


def foreign_document(store, uuid, table=None):
    """What another program would write now."""
    document = load_document(store, uuid)
    table = table if table is not None else pa.table({"a": [7]})
    files, _, _ = Builder(store, uuid).files(table, uuid4().hex)
    added = dict(zip(files["label"].to_pylist(), files["key"].to_pylist(), strict=True))
    return replace(document, partitions={**document.partitions, **added}, stamp=None)


def append_ours(store, value=1):
    table = pa.table({"a": [value]})
    return commit_change(store, lambda c: Builder(store, "plain").append(table, c))
