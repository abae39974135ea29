"""Labels of partitions: `country=DE/<base label>`, the path of a file inside its table."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import FormatError
from ktk_engine.format.partition_text import (
    Texts,
    partition_text,
    partition_values,
    readable_partition_values,
)
from ktk_engine.format.percent_encoding import quote, unquote
from ktk_engine.store.key import MAX_KEY_BYTES, MAX_SEGMENT_BYTES, MAX_UUID_LETTERS
from ktk_engine.types.type_class import normalize

# Room in a key for the dataset, its table, and the name of the file.
_MAX_PATH_BYTES = MAX_KEY_BYTES - MAX_UUID_LETTERS - 130


def partition_path(
    columns: Sequence[str], values: Sequence[object], types: Sequence[pa.DataType]
) -> str:
    """Build the folders of a partition, such as `country=DE/day=2018-01-01`.

    There is one Python value or Arrow scalar per column. Raises a `DataError` if one is null, NaN,
    or not of its type.
    """
    pairs = zip(columns, values, types, strict=True)
    return "/".join(f"{quote(name)}={partition_text(value, t)}" for name, value, t in pairs)


def path_problem(columns: Sequence[str], path: str) -> tuple[str, str] | None:
    """Say why folders of a partition are too long: the columns at fault, and the reason."""
    for name, folder in zip(columns, path.split("/"), strict=bool(columns)):
        if len(folder) > MAX_SEGMENT_BYTES:
            found = f"`{folder[:60]}...` has {len(folder)} bytes"
            return (
                name,
                f"the folder {found}, and names of folders have at most {MAX_SEGMENT_BYTES}",
            )
    if len(path) > _MAX_PATH_BYTES:
        found = f"the folders `{path[:60]}...` have {len(path)} bytes"
        return ", ".join(columns), f"{found}, and keys have room for {_MAX_PATH_BYTES}"
    return None


def split_label(label: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Split a label without knowing the partition columns: pairs of column and text, base label.

    Names are decoded, texts are still encoded. A segment without `=` belongs to the value before
    it, since Kartothek leaves `/` in values (docs/design/kartothek-format.md, Percent encoding).
    Raises a `FormatError` if the label starts with a folder that is not `column=value`.
    """
    *folders, base = label.split("/")
    pairs: list[tuple[str, str]] = []
    for folder in folders:
        name, sign, text = folder.partition("=")
        if sign:
            pairs.append((unquote(name), text))
        elif pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}/{folder}")
        else:
            raise FormatError(f"the label {label!r} does not start with a folder 'column=value'")
    return tuple(pairs), base


def parse_label(label: str, partition_keys: Sequence[str]) -> tuple[dict[str, str], str]:
    """Split a label, knowing the partition columns: encoded text by column, and base label.

    A value ends at the next `column=`, which keeps the unescaped `/` that Kartothek writes
    (decision 4). Without partition columns the base label is the whole label. Raises a
    `FormatError` if the label does not have these columns in this order.
    """
    match = re.fullmatch(_label_pattern(partition_keys), label)
    if match is None:
        raise FormatError(_wrong_label(label, partition_keys))
    texts = {name: match[f"p{i}"] for i, name in enumerate(partition_keys)}
    return texts, match["base"]


def partition_table(
    labels: Texts, partition_keys: Sequence[str], schema: pa.Schema, *, lenient: bool = False
) -> pa.Table:
    """Restore the partition values of many labels: a row per label, a column per partition column.

    Values are in the container types of their classes. If `lenient`, a value that its class does
    not hold becomes null, and `unreadable_value` says why. Otherwise it raises a `FormatError`.
    """
    if not partition_keys:
        empty_rows = pa.array([{}], pa.struct([])).take(pa.array([0] * len(labels), pa.int64()))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty_rows)])
    texts = label_texts(labels, partition_keys)
    restore = readable_partition_values if lenient else partition_values
    columns = {
        name: _column(name, texts[name].combine_chunks(), schema, restore)
        for name in partition_keys
    }
    return pa.table(columns)


def unreadable_value(
    label: str, partition_keys: Sequence[str], name: str, schema: pa.Schema
) -> str:
    """Say why a label's value of a partition column is unknown; empty if it is known."""
    try:
        partition_table(
            [label],
            [*partition_keys],
            pa.schema(
                [schema.field(name)]
                + [pa.field(key, pa.string()) for key in partition_keys if key != name]
            ),
        )
    except FormatError as error:
        return f"file {label}: {error}"
    return ""


def folders_of(labels: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The folder of each label, which identifies its partition; empty without one."""
    return pc.replace_substring_regex(labels, r"(?s)(^|/)[^/]*$", "")


def label_texts(labels: Texts, partition_keys: Sequence[str]) -> pa.Table:
    """Cut the encoded partition values out of labels: one column per partition column.

    There is at least one partition column. Raises a `FormatError` if a label does not have these
    columns in this order.
    """
    if isinstance(labels, pa.ChunkedArray):
        labels = labels.combine_chunks()
    array = labels if isinstance(labels, pa.Array) else pa.array(labels, pa.string())
    parts = pc.extract_regex(array, f"^(?:{_label_pattern(partition_keys)})$")
    if parts.null_count:
        unread = array.filter(pc.is_null(parts))[0].as_py()
        raise FormatError(_wrong_label(unread, partition_keys))
    return pa.table({name: pc.struct_field(parts, i) for i, name in enumerate(partition_keys)})


def _column(
    name: str,
    texts: pa.Array,
    schema: pa.Schema,
    restore: Callable[[pa.Array, pa.DataType], pa.Array],
) -> pa.Array:
    if schema.get_field_index(name) < 0:
        raise FormatError(f"the schema has no field for the partition column {name!r}")
    if not len(texts):  # without files the class may be unknown
        return pa.nulls(0, normalize(schema.field(name).type))
    try:
        return restore(texts, schema.field(name).type)
    except FormatError as error:
        raise FormatError(f"partition column {name!r}: {error}") from error


def _label_pattern(partition_keys: Sequence[str]) -> str:
    """A regular expression for Python and Arrow, with the groups p0, p1, ... and base."""
    if not partition_keys:
        return "(?s:(?P<base>.*))"
    folders = (f"(?:{_name(key)})=(?P<p{i}>.*?)/" for i, key in enumerate(partition_keys))
    return f"(?s:{''.join(folders)}(?P<base>[^/]*))"


def _name(key: str) -> str:
    """A pattern for a column name: as we write it, as Kartothek does (with `/`), or unencoded."""
    forms = dict.fromkeys((quote(key), urllib.parse.quote(key, safe="/"), key))
    return "|".join(re.escape(form) for form in forms)


def _wrong_label(label: str, partition_keys: Sequence[str]) -> str:
    return f"the label {label!r} does not name the partition columns {list(partition_keys)}"
