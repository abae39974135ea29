"""`_common_metadata`: the published schema of a dataset.

See docs/design/kartothek-format.md, Schema file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import FormatError
from ktk_engine.format.parquet import open_with_storage_types
from ktk_engine.format.parse_json import parse_json
from ktk_engine.types.type_class import class_problem, foreign_part, normalize

_PANDAS_KEY = b"pandas"
# Kartothek replaces this version with its own when it compares schemas.
_PANDAS_VERSION = "1.3.5"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def is_pandas_index(column: str) -> bool:
    """Whether a column is the index of a pandas frame, which schema files do not name."""
    return _PANDAS_INDEX.fullmatch(column) is not None


def read_common_metadata(data: bytes) -> pa.Schema:
    """Read a dataset's schema from `_common_metadata`: all columns, in their stored order.

    Types are the containers of their classes, timestamps are in microseconds, all fields are
    nullable, and there is no metadata. Unnamed pandas indexes are left out, as in Kartothek, and so
    are the `columns_without_class`. Raises a `FormatError` if the file is damaged.
    """
    return pa.schema(
        [
            pa.field(field.name, normalize(field.type))
            for field in _shown(_read(data))
            if class_problem(field.type) is None
        ]
    )


def columns_without_class(data: bytes) -> dict[str, str]:
    """Columns of a schema file whose types have no class, such as durations, with the reason."""
    problems = {field.name: class_problem(field.type) for field in _shown(_read(data))}
    return {name: problem for name, problem in problems.items() if problem is not None}


def large_columns(data: bytes) -> list[str]:
    """Columns of text or bytes that a schema file has in Arrow's large types."""
    fields = _shown(_read(data))
    return [f.name for f in fields if pat.is_large_string(f.type) or pat.is_large_binary(f.type)]


def render_common_metadata(
    schema: pa.Schema,
    partition_keys: Sequence[str],
    published: bytes = b"",
    left_out: Collection[str] = (),
) -> bytes:
    """Render a dataset's schema so that Kartothek can read it and append to the dataset.

    Kartothek compares types exactly when it appends, including digits of decimals and large text,
    so types in `published` stay where their class does. So do the columns `left_out`, which have no
    class. The result is a parquet file without row groups: partition columns first, then the others
    in code-point order. It is `published` byte for byte if nothing changed. Raises a `FormatError`
    if a partition column is missing or a name occurs twice.
    """
    names = schema.names
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    missing = [name for name in partition_keys if name not in names]
    if twice or missing:
        raise FormatError(
            f"the schema names columns twice ({twice}) or lacks partition columns ({missing})"
        )
    wanted = {name: normalize(schema.field(name).type) for name in names}
    before = _published(published)
    columns = {field.name: field for field in _shown(before)}
    known = {n: normalize(f.type) for n, f in columns.items() if class_problem(f.type) is None}
    kept = {n for n in columns if (known[n] == wanted.get(n) if n in known else n in left_out)}
    if published and kept == columns.keys() >= wanted.keys():
        return published
    wanted |= {name: columns[name].type for name in kept}
    order = [*partition_keys, *sorted(set(wanted) - set(partition_keys))]
    fields = [pa.field(name, wanted[name]) for name in order]
    pandas = _pandas_metadata(fields)
    own = {item["field_name"]: item for item in _pandas_columns(before)}
    pandas["columns"] = [
        own.get(item["name"], item) if item["name"] in kept else item for item in pandas["columns"]
    ]
    metadata = {_PANDAS_KEY: json.dumps(pandas, sort_keys=True).encode()}
    sink = pa.BufferOutputStream()
    # Values of lists are called "item", as in files of old versions of Arrow.
    pq.write_metadata(
        pa.schema(fields, metadata),
        sink,
        version="2.6",
        coerce_timestamps="us",
        use_compliant_nested_type=False,
    )
    rendered: bytes = sink.getvalue().to_pybytes()
    return rendered


def _read(data: bytes) -> pa.Schema:
    """The schema with its stored types."""
    try:
        with open_with_storage_types(pa.BufferReader(data)) as file:
            schema = file.schema_arrow
        _pandas_columns(schema)
        for field in schema:
            if problem := foreign_part(field):
                raise ValueError(f"its column {problem}")
        return schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"the schema file is damaged: {error}") from error


def _published(data: bytes) -> pa.Schema:
    """The published schema; empty if there is none, or none that can be read."""
    try:
        return _read(data) if data else pa.schema([])
    except FormatError:
        return pa.schema([])


def _shown(schema: pa.Schema) -> Iterator[pa.Field]:
    """The fields without unnamed indexes of pandas."""
    hidden = {item["field_name"] for item in _pandas_columns(schema) if item.get("name") is None}
    return (field for field in schema if field.name not in hidden)


def _pandas_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """What the pandas metadata says about each field; raises a ValueError if it is damaged."""
    metadata = (schema.metadata or {}).get(_PANDAS_KEY)
    content = parse_json(metadata, "the pandas metadata") if metadata is not None else {}
    columns = content.get("columns", []) if isinstance(content, dict) else []
    if not isinstance(columns, list):
        raise ValueError("the columns of its pandas metadata are not a list")
    named = (item for item in columns if isinstance(item, dict))
    return [
        item for item in named if item.get("field_name") and isinstance(item["field_name"], str)
    ]


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
    """The column's dtype in pandas 1.3."""
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
