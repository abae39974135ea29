"""Checks the committed files of one dataset: their footers, or all that they hold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import KtkError, ObjectNotFoundError
from ktk_engine.files.build_index import distinct_values
from ktk_engine.files.data_file import read_footer
from ktk_engine.files.stored_index import get_index
from ktk_engine.format.common_metadata import is_pandas_index
from ktk_engine.format.file_digest import DAMAGE, FileDigest, shorten
from ktk_engine.format.index_file import VALUE, build_index, flatten_index
from ktk_engine.formatting import counted
from ktk_engine.maintain.check_segments import SegmentCheck, unreadable
from ktk_engine.maintain.problem import DatasetCheck, Problem
from ktk_engine.progress import Progress, no_progress
from ktk_engine.snapshot.snapshot import Snapshot, digests_of
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name, normalize

_THREADS = 16
_PIECE = 1024 * 1024


def check_files(
    store: ObjectStore,
    dataset: str,
    snapshot: Snapshot,
    deep: bool = False,
    known: Collection[str] = (),
    progress: Progress = no_progress,
) -> list[Problem]:
    """Check every data file and index file of a dataset, except for `known` keys.

    `deep` reads all that data files hold. A thread then has at most one column of a row group in
    memory, or a megabyte of a file whose digest is known.
    """
    check = _FileCheck(store, dataset, snapshot, deep)
    names = ("key", "bytes", "rows")
    columns = [snapshot.files[name].to_pylist() for name in names]
    data = [
        check.data_file(*values)
        for values in zip(*columns, digests_of(snapshot.files), strict=True)
        if values[0] not in known
    ]
    indices = [
        check.index(column, key) for column, key in snapshot.indices.items() if key not in known
    ]
    segments = SegmentCheck(store, dataset, snapshot, deep)
    indices += [
        segments.index(column)
        for column, items in snapshot.index_segments.items()
        if not known or not {item.key for item in items} <= set(known)
    ]
    threads = (os.cpu_count() or 1) if deep else _THREADS
    return _all(data, threads, progress) + _all(indices, 2)


def _all(
    checks: Sequence[Iterator[Problem]], threads: int, progress: Progress = no_progress
) -> list[Problem]:
    found: list[Problem] = []
    with ThreadPoolExecutor(threads) as pool:
        for done, problems in enumerate(pool.map(_run, checks), 1):
            found += problems
            progress(done, len(checks))
    return found


def _run(check: Iterator[Problem]) -> list[Problem]:
    return list(check)


class _FileCheck(DatasetCheck):
    """Checks data files and index files; each method checks one file."""

    def data_file(
        self, key: str, size: int | None, rows: int | None, digest: FileDigest | None
    ) -> Iterator[Problem]:
        """Check a data file."""
        try:
            metadata, schema, actual = read_footer(self.store, key, digest)
            if self.deep:
                _read_all(self.store, key, digest)
        except ObjectNotFoundError:
            yield self.problem(key, "a file", "none", "the file is missing")
            return
        except (KtkError, *DAMAGE) as error:
            yield self.problem(key, "a parquet file", "", unreadable(error))
            return
        if size is not None and size != actual:
            reason = "the size differs from the committed one"
            yield self.problem(key, counted(size, "byte"), counted(actual, "byte"), reason)
        if rows is not None and rows != metadata.num_rows:
            reason = "the number of rows differs from the committed one"
            there = counted(metadata.num_rows, "row")
            yield self.problem(key, counted(rows, "row"), there, reason)
        for name, expected, found, reason in _column_problems(self.snapshot, schema, metadata):
            yield Problem(self.dataset, key, name, expected, found, reason)

    def index(self, column: str, key: str) -> Iterator[Problem]:
        """Check an index file: its class, that its labels exist, and its values if need be."""
        digest = self.snapshot.index_digests.get(key)
        try:
            index = get_index(self.store, key, digest)
        except ObjectNotFoundError:
            yield self.problem(key, "an index file", "none", "the file is missing", column)
            return
        except KtkError as error:
            yield self.problem(key, "an index file", "", unreadable(error), column)
            return
        if column not in self.snapshot.schema.names:
            yield self.problem(key, "no index", "", "the schema lacks the column", column)
            return
        committed, found = self.snapshot.schema.field(column).type, index.schema.field(VALUE).type
        differs = mismatch(committed, found)
        if differs is not None:
            yield self.problem(key, str(committed), str(found), differs.reason, column)
            return
        unknown = set(flatten_index(index)["label"].to_pylist()) - set(self.snapshot.labels)
        if unknown:
            names = counted(len(unknown), "file that is", "files that are")
            reason = f"the index names {names} not committed: {min(unknown)}"
            yield self.problem(key, "committed labels", "others", reason, column)
        elif self.deep and digest is None:
            yield from self._compared(column, key, index)

    def _compared(self, column: str, key: str, index: pa.Table) -> Iterator[Problem]:
        """Compare an index without a recorded digest with the rows themselves."""
        field = self.snapshot.schema.field(column)
        try:
            found = distinct_values(self.store, self.snapshot.files, field)
        except KtkError as error:
            reason = f"the index cannot be compared with the rows: {error}"
            yield self.problem(key, "values of the rows", "", reason, column)
            return
        pairs = flatten_index(index)
        listed = build_index(_plain(pairs[VALUE]), pairs["label"])
        stored = build_index(_plain(found.values), found.labels)
        listed, stored = _without_nan(listed), _without_nan(stored)
        if not listed.equals(stored):
            reason = "the index does not list the values of the files, so queries miss rows"
            wanted, named = (counted(flatten_index(t).num_rows, "pair") for t in (stored, listed))
            yield self.problem(key, wanted, named, reason, column)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in the container of their class, as both sides of a comparison have them."""
    return values.cast(normalize(values.type))


def _without_nan(index: pa.Table) -> pa.Table:
    """Kartothek's indexes do not list NaN."""
    if not pat.is_floating(index.schema.field(VALUE).type):
        return index
    return index.filter(pc.invert(pc.is_nan(index[VALUE])))


def _read_all(store: ObjectStore, key: str, digest: FileDigest | None) -> None:
    """Read a file to its end, in pieces; raises an error of `DAMAGE` if it is damaged."""
    with store.open_read(key) as source:
        if digest is None:
            _read_pages(source)
            return
        sha256 = hashlib.sha256()
        while piece := source.read(_PIECE):
            sha256.update(piece)
        if shorten(sha256) != digest.digest:
            raise ValueError("its content is not what was written")


def _read_pages(source: pa.NativeFile) -> None:
    """Decode every page: checksums are verified where they exist, counts everywhere."""
    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        for group in range(file.num_row_groups):
            expected = file.metadata.row_group(group).num_rows
            for name in names:
                rows = file.read_row_group(group, columns=[name]).num_rows
                if rows != expected:
                    raise ValueError(f"column {name} has {rows} rows of {expected}")


def _column_problems(
    snapshot: Snapshot, schema: pa.Schema, metadata: pq.FileMetaData
) -> Iterator[tuple[str, str, str, str]]:
    """Compare a file's columns with the committed ones: column, expected, found, reason."""
    empty, named = _columns_without_values(metadata), _pandas_index(schema)
    for field in schema:
        if snapshot.schema.get_field_index(field.name) < 0:
            if field.name in snapshot.left_out or field.name in named:
                continue
            found = f"{class_name(field.type)} ({field.type})"
            yield field.name, "no such column", found, "the committed schema lacks the column"
            continue
        committed = snapshot.schema.field(field.name).type
        differs = mismatch(committed, field.type, field.name)
        if differs is not None and field.name not in empty:
            where = f"{differs.path}: " if differs.path != field.name else ""
            yield (
                field.name,
                f"{class_name(committed)} ({committed})",
                f"{class_name(field.type)} ({field.type})",
                where + differs.reason,
            )
    required = {*snapshot.dimension_columns, *snapshot.with_index} - set(snapshot.partition_keys)
    for name in sorted(required - set(schema.names)):
        if name in snapshot.schema.names:
            expected = class_name(snapshot.schema.field(name).type)
            yield name, expected, "missing", "a dimension or index column must not be null"


def _pandas_index(schema: pa.Schema) -> frozenset[str]:
    """The columns of a file that hold the index of a pandas frame, which no schema file names."""
    named = (schema.pandas_metadata or {}).get("index_columns", ())
    unnamed = (name for name in schema.names if is_pandas_index(name))
    return frozenset(name for name in (*named, *unnamed) if isinstance(name, str))


def _columns_without_values(metadata: pq.FileMetaData) -> frozenset[str]:
    """Flat columns that are null in every row, by the file's statistics."""
    nulls: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            statistics = column.statistics
            if statistics is not None and statistics.has_null_count:
                path = column.path_in_schema
                nulls[path] = nulls.get(path, 0) + statistics.null_count
    return frozenset(name for name, count in nulls.items() if count == metadata.num_rows)
