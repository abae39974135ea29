"""Writes rows as a table, CSV, JSON lines or parquet."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.cli.console import make_console, make_table, print_table, say
from ktk_engine.errors import ConfigurationError
from ktk_engine.formatting import json_value
from ktk_engine.messages import printable


def print_rows(rows: pa.Table) -> None:
    """Print rows as a table; null is empty."""
    table = make_table([])
    for field in rows.schema:
        if _is_number(field.type):
            table.add_column(field.name, justify="right", no_wrap=True)
        else:
            table.add_column(field.name, overflow="fold")
    for row in rows.to_pylist():
        table.add_row(*(_cell(value) for value in row.values()))
    print_table(make_console(), table, with_empty=True)


def write_rows(rows: pa.Table | pa.RecordBatchReader, format_: str, output: Path | None) -> None:
    """Write rows, as they come.

    Args:
        rows: any rows.
        format_: "csv", "json" (one object a line) or "parquet".
        output: the file to write; None means standard output.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    if output is None and sys.stdout.isatty():
        shown = BytesIO()
        _write(rows, format_, shown)
        say(shown.getvalue().decode().removesuffix("\n"))
        return
    if output is None:
        _write(rows, format_, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with output.open("wb") as file:
            _write(rows, format_, file)
    except OSError as error:
        raise ConfigurationError(f"{output} cannot be written: {error.strerror}.") from error


def _write(rows: pa.Table | pa.RecordBatchReader, format_: str, file: IO[bytes]) -> None:
    parts = rows.to_reader() if isinstance(rows, pa.Table) else rows
    if format_ == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, parts.schema) as written:
            for batch in parts:
                written.write_batch(batch)
    elif format_ == "csv":
        import pyarrow.csv as pv

        with pv.CSVWriter(file, _flat(parts.schema.empty_table()).schema) as written:
            for batch in parts:
                written.write_table(_flat(pa.Table.from_batches([batch])))
    else:
        for batch in parts:
            lines = (json.dumps(json_value(row), ensure_ascii=False) for row in batch.to_pylist())
            file.write("".join(f"{printable(line)}\n" for line in lines).encode())


def _flat(rows: pa.Table) -> pa.Table:
    """Rows with nested values as JSON, which CSV cannot hold."""
    for position, field in enumerate(rows.schema):
        if pat.is_nested(field.type) or pat.is_binary(field.type) or pat.is_null(field.type):
            values = (json_value(value) for value in rows[field.name].to_pylist())
            texts = [
                v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False)
                for v in values
            ]
            rows = rows.set_column(position, field.name, pa.array(texts, pa.string()))
    return rows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    plain = json_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _is_number(t: pa.DataType) -> bool:
    return bool(pat.is_integer(t) or pat.is_floating(t) or pat.is_decimal(t))
