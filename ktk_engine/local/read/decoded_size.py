"""Estimates the bytes that rows take in memory, from footers and a few first rows.

A dictionary stores a repeated text once: a million texts of a thousand characters may be six
megabytes on disk and a gigabyte in memory.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.files.data_file import iter_row_groups
from ktk_engine.files.read_rows import in_containers
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.read.stored_rows import RowGroups
from ktk_engine.local.task import TaskDataset, TaskFile, is_fixed, row_width

# For fewer rows any estimate is good enough.
_LEAST_ROWS = 65_536
_MUCH = 1 << 30
_SAMPLE_ROWS, _SAMPLE_BYTES = 1_024, 32 << 20
_OFFSET_BYTES = 4


def decoded_width(run: JoinRun, item: TaskDataset) -> int:
    """Approximate bytes per row of a dataset in memory, estimated from its largest file."""
    variable = pa.schema([field for field in item.schema if not is_fixed(field.type)])
    few = sum(file.rows for file in item.files) < _LEAST_ROWS
    if not variable.names or (few and not _has_long_values(run, item)):
        return row_width(item.schema)
    file = max(item.files, key=lambda file: file.rows)
    names = RowGroups(run).stored_names(file, variable)
    there = set(names)
    fixed = pa.schema([field for field in item.schema if field.name not in there])
    width = row_width(fixed)
    for name, (stored, dictionary) in _stored_widths(run.footer(file)[0], names).items():
        field = variable.field(name)
        if pat.is_nested(field.type):
            width += max(stored, row_width(pa.schema([field])))
        elif dictionary > stored:  # a value is at most as long as its dictionary
            width += max(stored, _sampled_width(run, item, file, field, dictionary))
        else:
            width += stored
    return width


def _has_long_values(run: JoinRun, item: TaskDataset) -> bool:
    """Whether a few rows may take much: any value may be as long as its file."""
    for file in item.files:
        metadata, _ = run.footer(file)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        if file.rows * sum(group.total_byte_size for group in groups) > _MUCH:
            return True
    return False


def _stored_widths(metadata: pq.FileMetaData, names: list[str]) -> dict[str, tuple[int, int]]:
    """Bytes per row in uncompressed pages, and bytes of the first dictionary."""
    sizes, dictionaries = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for position in range(metadata.num_columns):
        path = metadata.schema.column(position).path
        name = path if path in sizes else _column_of(path, sizes)
        if name is not None:
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            chunks = [group.column(position) for group in groups]
            sizes[name] += sum(chunk.total_uncompressed_size for chunk in chunks)
            if chunks and chunks[0].has_dictionary_page:
                start, end = chunks[0].dictionary_page_offset, chunks[0].data_page_offset
                dictionaries[name] = max(end - start, 1)
    rows = max(metadata.num_rows, 1)
    return {name: (sizes[name] // rows + _OFFSET_BYTES, dictionaries[name]) for name in names}


def _column_of(path: str, names: Collection[str]) -> str | None:
    """The top-level column of a leaf; names of columns may contain dots."""
    parts = path.split(".")
    prefixes = (".".join(parts[:end]) for end in range(1, len(parts)))
    return next((prefix for prefix in prefixes if prefix in names), None)


def _sampled_width(
    run: JoinRun, item: TaskDataset, file: TaskFile, field: pa.Field, dictionary: int
) -> int:
    """Bytes per row in the first rows of a column; sampled once for dictionaries of like size."""
    name = f"width of {item.dataset}.{field.name}, {dictionary.bit_length()} bits of bytes"
    # A single value may fill the whole dictionary.
    count = max(min(_SAMPLE_ROWS, _SAMPLE_BYTES // dictionary), 1)
    return run.shared(name, lambda: _width_of_first_rows(run, file, field, count))


def _width_of_first_rows(run: JoinRun, file: TaskFile, field: pa.Field, count: int) -> int:
    metadata, _ = run.footer(file)
    rows = iter_row_groups(
        run.store, file.key, metadata, [field.name], [0], count,
        digest=file.digest,
    )  # fmt: skip
    first = next(rows, None)
    rows.close()
    if first is None:
        return 0
    table = pa.Table.from_batches([first])
    decoded = in_containers(table, len(table), pa.schema([field]), {})
    return int(decoded.nbytes) // max(len(table), 1)
