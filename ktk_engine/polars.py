"""Lazy frames of Polars over cubes and tables: what it needs of them is all that is read."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.api.cube_or_table import CubeOrTable
from ktk_engine.api.frames_of_rows import check_for_polars
from ktk_engine.api.store import Store
from ktk_engine.conditions.of_polars import polars_condition
from ktk_engine.errors import QueryError
from ktk_engine.extras import need

if TYPE_CHECKING:
    import polars as pl

# Up to this number of rows, files are read in the order of their smallest cells.
_FEW_ROWS = 1_000_000
# In these seconds a thread of Polars that has got a piece either asks for the next one or ends.
_ASKS_AGAIN = 0.05
_CUT_OFF = "The process ends, so the rest of the rows was not read."
_LONGEST_PIECE = 10.0  # seconds that the end of the process waits for one


def scan_cube(
    store: Store | str | Path,
    name: str,
    *,
    version: int | str | None = None,
    timestamp: date | str | None = None,
    memory_limit: int | str | None = None,
) -> pl.LazyFrame:
    """Read a cube lazily: columns, conditions and `head` decide which files are opened.

    Nothing but documents is read until rows are collected. The frame stays at one version.

    Args:
        store: where it is: a `Store`, or its address.
        name: the cube's name.
        version: number of a commit, or a tag; None means the newest.
        timestamp: instead of a version, the moment as of which it is read.
        memory_limit: as for `Query.to_arrow`, of the few pieces that are held at a time.

    Returns:
        A frame whose rows come in no particular order.

    Raises:
        DatasetNotFoundError: there is no such cube; the message says what exists.
        VersionGoneError: there is no such version, or a clean-up removed it.
        QueryError: Polars has no type for a column.

    Examples:
        >>> flights = scan_cube(store, "trips").filter(pl.col("dest") == "SFO")
        >>> flights.select("flight").sort("flight").collect().to_series().to_list()
        [1, 3]
    """
    opened = store if isinstance(store, Store) else Store(store)
    return _scan(opened.cube(name, version=version, timestamp=timestamp), memory_limit)


def scan_table(
    store: Store | str | Path,
    name: str,
    *,
    version: int | str | None = None,
    timestamp: date | str | None = None,
    memory_limit: int | str | None = None,
) -> pl.LazyFrame:
    """Read a plain table lazily; see `scan_cube`.

    Examples:
        >>> scan_table(store, "fares").filter(pl.col("fare") > 100).collect().rows()
        [(2, 150.0)]
    """
    opened = store if isinstance(store, Store) else Store(store)
    return _scan(opened.table(name, version=version, timestamp=timestamp), memory_limit)


def _scan(relation: CubeOrTable, memory_limit: int | str | None) -> pl.LazyFrame:
    need("polars", "A frame of Polars", "polars")
    from polars.io.plugins import register_io_source

    schema = relation.schema
    check_for_polars(schema)

    def pieces(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        where, limit = None, None
        if most is not None:  # a predicate is then on these rows
            limit = most if most <= _FEW_ROWS else None
        elif predicate is not None:
            where = polars_condition(predicate, schema)
        query = relation.query(columns or schema.names, where, limit=limit)
        left = most
        for batch in query.to_batches(engine="local", memory_limit=memory_limit):
            frame = _frame(batch)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    frame: pl.LazyFrame = register_io_source(
        lambda *asked: _Pieces(pieces(*asked)),
        schema=_frame(schema.empty_table()).schema,
        validate_schema=True,
        is_pure=True,
    )
    return frame


class _Pieces:
    """Pieces of a scan, in which no thread of Polars is when the interpreter ends.

    After `head`, Polars reads ahead in a thread that it does not wait for. A thread that comes back
    to Python while the interpreter ends aborts the process.
    """

    def __init__(self, pieces: Iterator[pl.DataFrame]) -> None:
        self._pieces = pieces
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._at_exit = weakref.finalize(self, _end, self._turn, self._ended)

    def __iter__(self) -> _Pieces:
        return self

    def __del__(self) -> None:
        self._at_exit.detach()  # Polars let go of the scan

    def __next__(self) -> pl.DataFrame:
        with self._turn:
            if self._ended.is_set():
                raise QueryError(_CUT_OFF)
            try:
                return next(self._pieces)
            except BaseException as error:
                self._at_exit.detach()
                if isinstance(error, RuntimeError) and not threading.main_thread().is_alive():
                    raise QueryError(_CUT_OFF) from error  # no pool takes work any more
                raise


def _end(turn: threading.Lock, ended: threading.Event) -> None:
    """Wait for the piece that is being read, and let no further one begin."""
    ended.set()
    if turn.acquire(timeout=_LONGEST_PIECE):
        turn.release()
    time.sleep(_ASKS_AGAIN)


def _frame(rows: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(rows, rechunk=False)
    assert isinstance(frame, pl.DataFrame), "of a table Polars makes a frame"
    return frame
