"""How many bytes rows take in memory, as far as footers and a few first rows tell.

A text that repeats is stored once in a dictionary: a million texts of a thousand characters may be
six megabytes on disk, and are a gigabyte in memory.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.files.data_file import iter_row_groups
from ktk_engine.merge.merge_run import MergeRun
from ktk_engine.merge.read.stored_rows import RowGroups, in_containers
from ktk_engine.merge.task import TaskDataset, TaskFile, is_fixed, row_width

# Of fewer rows any guess is good enough.
_LEAST_ROWS = 65_536
_SAMPLE_ROWS = 1_024


def decoded_width(run: MergeRun, item: TaskDataset) -> int:
    """About how many bytes a row of a dataset takes in memory, as its largest file has it.

    Args:
        run: reads the footer, and a few rows where that does not tell.
        item: the dataset.
    """
    variable = pa.schema([field for field in item.schema if not is_fixed(field.type)])
    if not variable.names or sum(file.rows for file in item.files) < _LEAST_ROWS:
        return row_width(item.schema)
    file = max(item.files, key=lambda file: file.rows)
    names = RowGroups(run).stored_names(file, variable)
    fixed = pa.schema([field for field in item.schema if field.name not in names])
    return row_width(fixed) + sum(
        max(width, _sampled_width(run, file, variable.field(name)))
        for name, width in _stored_widths(run.footer(file)[0], names).items()
    )


def _stored_widths(metadata: pq.FileMetaData, names: list[str]) -> dict[str, int]:
    """Bytes of a row in pages before they were compressed, and an offset."""
    found = dict.fromkeys(names, 0)
    for position in range(metadata.num_columns):
        path = metadata.schema.column(position).path
        name = next((n for n in names if path == n or path.startswith(f"{n}.")), None)
        if name is not None:
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            found[name] += sum(group.column(position).total_uncompressed_size for group in groups)
    rows = max(metadata.num_rows, 1)
    return {name: count // rows + 4 for name, count in found.items()}


def _sampled_width(run: MergeRun, file: TaskFile, field: pa.Field) -> int:
    """Bytes of the first rows of a column; of a nested one nothing is read for it."""
    if pat.is_nested(field.type):
        return row_width(pa.schema([field]))
    metadata, _ = run.footer(file)
    rows = iter_row_groups(run.store, file.key, metadata, [field.name], [0], _SAMPLE_ROWS)
    first = next(rows, None)
    rows.close()
    if first is None:
        return 0
    table = pa.Table.from_batches([first])
    decoded = in_containers(table, len(table), pa.schema([field]), {})
    return int(decoded.nbytes) // max(len(table), 1)
