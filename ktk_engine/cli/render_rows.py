"""Writes rows as a table, CSV, JSON lines or parquet."""

from __future__ import annotations

import base64
import json
import math
import sys
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.cli.console import make_console, make_table, print_table, say
from ktk_engine.errors import ConfigurationError
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


def write_rows(rows: pa.Table, format_: str, output: Path | None) -> None:
    """Write rows.

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


def _write(rows: pa.Table, format_: str, file: IO[bytes]) -> None:
    if format_ == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, file)
    elif format_ == "csv":
        import pyarrow.csv as pv

        pv.write_csv(_flat(rows), file)
    else:
        for batch in rows.to_batches():
            lines = (json.dumps(_plain(row), ensure_ascii=False) for row in batch.to_pylist())
            file.write("".join(f"{printable(line)}\n" for line in lines).encode())


def _flat(rows: pa.Table) -> pa.Table:
    """Rows with nested values as JSON, which CSV cannot hold."""
    for position, field in enumerate(rows.schema):
        if pat.is_nested(field.type) or pat.is_binary(field.type) or pat.is_null(field.type):
            values = (_plain(value) for value in rows[field.name].to_pylist())
            texts = [
                v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False)
                for v in values
            ]
            rows = rows.set_column(position, field.name, pa.array(texts, pa.string()))
    return rows


def _plain(value: Any) -> Any:
    """A value for JSON: dates as ISO texts, decimals as texts, bytes in base64."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _is_number(t: pa.DataType) -> bool:
    return bool(pat.is_integer(t) or pat.is_floating(t) or pat.is_decimal(t))
