"""`_common_metadata`: the published schema of a dataset.

See docs/design/kartothek-format.md, Schema file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import FormatError, TypeClassError
from ktk_engine.format.parse_json import parse_json
from ktk_engine.format.storage_types import open_with_storage_types
from ktk_engine.types.type_class import normalize

_PANDAS_KEY = b"pandas"
# Kartothek compares schemas under its own pandas version and never uses this one.
_PANDAS_VERSION = "1.3.5"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def is_pandas_index(column: str) -> bool:
    """Whether a column of a file is the index of a pandas frame, which no schema file names."""
    return _PANDAS_INDEX.fullmatch(column) is not None


def read_common_metadata(data: bytes) -> pa.Schema:
    """Read a dataset's schema.

    Args:
        data: the content of `_common_metadata`.

    Returns:
        All columns, partition columns included, in the stored order. Each type is the container
        of its class, timestamps are in microseconds, all fields are nullable, and there is no
        metadata. Unnamed index columns of pandas are left out, as Kartothek does.

    Raises:
        FormatError: the file is damaged, or has a column whose type has no class.
    """
    try:
        with open_with_storage_types(pa.BufferReader(data)) as file:
            schema = file.schema_arrow
        hidden = _unnamed_index_columns(schema)
        fields = [
            pa.field(field.name, normalize(field.type))
            for field in schema
            if field.name not in hidden
        ]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"the schema file is damaged: {error}") from error
    except TypeClassError as error:
        raise FormatError(f"the schema file has an unusable column: {error}") from error
    return pa.schema(fields)


def render_common_metadata(schema: pa.Schema, partition_keys: Sequence[str]) -> bytes:
    """Render a dataset's schema so that Kartothek can read it and append to the dataset.

    Args:
        schema: all columns, in any order.
        partition_keys: names of the partition columns, in the order of the folders.

    Returns:
        A parquet file without row groups. The partition columns come first, then the others in
        code-point order. The types are the containers of the classes. The pandas metadata is
        what Kartothek needs to compare schemas.

    Raises:
        FormatError: a partition column is missing, or a name occurs twice.
        TypeClassError: a column's type has no class.
    """
    names = schema.names
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    missing = [name for name in partition_keys if name not in names]
    if twice or missing:
        raise FormatError(
            f"the schema names columns twice ({twice}) or lacks partition columns ({missing})"
        )
    order = [*partition_keys, *sorted(set(names) - set(partition_keys))]
    fields = [pa.field(name, normalize(schema.field(name).type)) for name in order]
    metadata = {_PANDAS_KEY: json.dumps(_pandas_metadata(fields), sort_keys=True).encode()}
    sink = pa.BufferOutputStream()
    # Lists' values are called "item", as in files of old versions of Arrow.
    pq.write_metadata(
        pa.schema(fields, metadata),
        sink,
        version="2.6",
        coerce_timestamps="us",
        use_compliant_nested_type=False,
    )
    rendered: bytes = sink.getvalue().to_pybytes()
    return rendered


def _unnamed_index_columns(schema: pa.Schema) -> set[str]:
    """Names of the fields that pandas made of an index without a name."""
    metadata = (schema.metadata or {}).get(_PANDAS_KEY)
    content = parse_json(metadata, "the pandas metadata") if metadata is not None else {}
    columns = content.get("columns", []) if isinstance(content, dict) else []
    return {
        column["field_name"]
        for column in columns
        if isinstance(column, dict) and column.get("name") is None and column.get("field_name")
    }


def _pandas_metadata(fields: Sequence[pa.Field]) -> dict[str, Any]:
    return {
        "column_indexes": [
            {
                "field_name": None,
                "metadata": {"encoding": "UTF-8"},
                "name": None,
                "numpy_type": "object",
                "pandas_type": "unicode",
            }
        ],
        "columns": [_pandas_column(field) for field in fields],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "index_columns": [{"kind": "range", "name": None, "start": 0, "step": 1, "stop": 0}],
        "pandas_version": _PANDAS_VERSION,
    }


def _pandas_column(field: pa.Field) -> dict[str, Any]:
    t = field.type
    metadata: dict[str, Any] | None = None
    if pat.is_decimal128(t):
        metadata = {"precision": t.precision, "scale": t.scale}
    elif pat.is_timestamp(t) and t.tz is not None:
        metadata = {"timezone": t.tz}
    return {
        "field_name": field.name,
        "metadata": metadata,
        "name": field.name,
        "numpy_type": _numpy_type(t),
        "pandas_type": _pandas_type(t),
    }


def _numpy_type(t: pa.DataType) -> str:
    """What the column's dtype would be in pandas 1.3."""
    if pat.is_timestamp(t):
        return "datetime64[ns]"
    if pat.is_boolean(t):
        return "bool"
    return _pandas_type(t) if pat.is_integer(t) or pat.is_floating(t) else "object"


def _pandas_type(t: pa.DataType) -> str:
    """Arrow's name of a normalised type for pandas (`get_logical_type` in its sources)."""
    if pat.is_list(t):
        return f"list[{_pandas_type(t.value_type)}]"
    if pat.is_timestamp(t):
        return "datetime" if t.tz is None else "datetimetz"
    if pat.is_decimal128(t):
        return "decimal"
    if pat.is_time(t):
        return "time"
    return _PANDAS_TYPES.get(t, "object")


_PANDAS_TYPES = {
    pa.null(): "empty",
    pa.bool_(): "bool",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.float64(): "float64",
    pa.string(): "unicode",
    pa.binary(): "bytes",
    pa.date32(): "date",
}
