"""The types that columns of a query have in files."""

from __future__ import annotations

import pyarrow as pa

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.plan.plan import Plan
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import plain_type


def stored_types(store: ObjectStore, footers: FooterCache, plan: Plan) -> dict[str, pa.DataType]:
    """The type of each column in the files of a plan: the smallest that holds all values."""
    found: dict[str, pa.DataType] = {}
    for item in plan.datasets:
        for field in stored_schema(store, footers, item.snapshot, item.files):
            found.setdefault(field.name, plain_type(field.type))
    return found
