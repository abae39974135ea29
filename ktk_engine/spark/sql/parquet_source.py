"""Parquet files as a source: Spark reads them if it reads all of them correctly, else tasks do.

See docs/sources.md, Parquet files of any writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyspark  # noqa: F401
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import types as st

from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.errors import ConfigurationError, TypeClassError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.others.plain_files import (
    PlainFile,
    PlainFiles,
    find_files,
    read_plain_files,
    refuse_tables,
)
from ktk_engine.format.partition_text import HIVE_NULL
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_dataset import plan_rows
from ktk_engine.plan.statement.named_relations import KnownStores, Plannable
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.frames import with_types
from ktk_engine.spark.read.read_types import read_type
from ktk_engine.spark.read.scan import READING, UNBOUNDED
from ktk_engine.spark.read.spark_parses_partition_values import spark_parses_partition_values
from ktk_engine.spark.sql.read_files import given_options, literal_location, readable_paths
from ktk_engine.store.local.source_files import SourceFiles
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONLY, _RECURSIVE = "pathglobfilter", "recursivefilelookup"
# Options that select files; the others say how Spark reads them.
_OF_FILES = frozenset({_ONLY, _RECURSIVE, "mergeschema"})


def open_parquet_source(
    session: SparkSession, stores: KnownStores, address: FileAddress, name: str
) -> ParquetSource | None:
    """Open parquet files of this machine; None if there are none, since they may be elsewhere.

    Raises a `ConfigurationError` if their columns or folders do not fit together, or if they are of
    a table of another format, and a `FormatError` if a file is unreadable or no parquet file.
    """
    options = given_options(address)
    recursive = options.get(_RECURSIVE, "").lower() == "true"
    found = find_files(address.location, options.get(_ONLY, ""), recursive)
    if not found:
        return None
    refuse_tables(name, [file.path for file in found])
    store = SourceFiles(name, address.location)
    metadata = stores.renewed(store)
    return ParquetSource(
        session, address, read_plain_files(store, metadata.footers, found), metadata
    )


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files of this machine."""

    session: SparkSession = field(compare=False, repr=False)
    address: FileAddress
    files: PlainFiles
    metadata: MetadataCache = field(compare=False, repr=False)  # footers of the files

    @cached_property
    def obstacle(self) -> str:
        """Why Spark's own reader is not used; empty if it is."""
        folders = self.files.snapshot.partition_keys
        if self.files.refused:
            return next(iter(self.files.refused.values()))
        if not all(_is_plain(file) for file in self.files.files):
            return "folders have letters beyond ASCII, or are not all named `name=value`"
        for file, footer in zip(self.files.files, self.files.footers, strict=True):
            if footer.unusual:
                return f"in {file.path} {footer.unusual}"
        for name in self.files.schema.names:
            if name not in folders and len(self._read_types(name)) != 1:
                return f"column `{name}` has different types"
            if name not in folders and None in self._read_types(name):
                return f"column `{name}` has a type that Spark cannot read"
        return "" if self._lists_all() else "Spark's reader skips files, or finds others"

    def _lists_all(self) -> bool:
        """Whether Spark would read exactly these files: it hides names that begin with `_`."""
        try:
            listed = readable_paths(self.frame.inputFiles())
        except (AnalysisException, IllegalArgumentException):  # a pattern meets a colon
            return False
        return listed == {file.path for file in self.files.files}

    def _read_types(self, name: str) -> frozenset[st.DataType | None]:
        """The types with which Spark reads a column of each file that has it."""
        t, key = self.files.schema.field(name).type, Identifier(name)
        schemas = {footer.schema.remove_metadata() for footer in self.files.footers}
        types = {column.type for s in schemas for column in s if Identifier(column.name) == key}
        return frozenset(read_type(t, physical) for physical in types)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as Spark reads them; only without an `obstacle`."""
        folders, fields = self.files.snapshot.partition_keys, []
        types = {column.name: spark_type(column.type) for column in self.files.schema}
        for name, own in types.items():
            (read_as,) = {own} if name in folders else self._read_types(name)
            fields.append(st.StructField(name, read_as or own))
        options = {**READING, **UNBOUNDED, **given_options(self.address)}
        if not folders:  # else Spark skips nested folders
            options[_RECURSIVE] = "true"
        reader = self.session.read.options(**options).schema(st.StructType(fields))
        frame = reader.parquet(literal_location(self.address.location))
        return with_types(frame.select(*map(quote_identifier, types)), types)

    def plannable(self) -> Plannable:
        """Give them as a relation that tasks read.

        Raises a `ConfigurationError` if reader options need Spark, or if names of columns differ
        only in letter case.
        """
        files = self.files
        for option in given_options(self.address):
            if option not in _OF_FILES:
                said = next(k for k, _ in self.address.options if k.lower() == option)
                raise ConfigurationError(
                    f"The options of {files.store.url} have {said}, which belongs to Spark's own "
                    f"reader. That reader cannot read these files: {self.obstacle}. Leave the "
                    "option out, or have the files rewritten."
                )
        if files.spelled_otherwise:
            raise ConfigurationError(
                f"Files of {files.store.url} spell `{files.spelled_otherwise}` in different "
                f"letters, and Spark's own reader, which treats them as one, cannot read these "
                f"files: {self.obstacle}. Spell the column in one way."
            )
        refused = {**files.refused, **_without_type(files)}
        readable = [n for n in files.snapshot.schema.names if n not in refused]
        if not readable:
            raise ConfigurationError(next(iter(refused.values())))

        def plan(names: Sequence[str], condition: Condition) -> Plan:
            parts = [c for c in conjuncts(condition) if not c.columns & refused.keys()]
            return plan_rows(files.store, files.snapshot, 0, names, parts, self.metadata)

        schema = files.schema
        for name in refused:
            at = schema.get_field_index(name)
            schema = schema.set(at, schema.field(at).with_type(pa.string()))
        return Plannable(files.store, schema, readable[0], plan, refused)


def _without_type(files: PlainFiles) -> dict[str, str]:
    """Columns for which this Spark has no type."""
    found = {}
    for column in files.snapshot.schema:
        try:
            spark_type(column.type)
        except TypeClassError as error:
            found[column.name] = f"Column `{column.name}` of {files.store.url}: {error}"
    return found


def _is_plain(file: PlainFile) -> bool:
    """Whether Spark names and reads the columns of a file's folders correctly."""
    texts = list(file.folders.values())
    if not texts:
        return True
    names = "".join(file.folders)
    known = pa.array([text for text in texts if text not in ("", HIVE_NULL)], pa.string())
    restored = pc.all(spark_parses_partition_values(known, pa.string())).as_py() is not False
    return not file.between and restored and "".join([names, *texts]).isascii() and "%" not in names


@dataclass
class StatementFiles:
    """Plain files of this machine that one statement reads, each opened once: they may change."""

    session: SparkSession
    stores: KnownStores
    _sources: dict[str, ParquetSource | None] = field(default_factory=dict)

    def source(self, address: FileAddress, name: str) -> ParquetSource | None:
        """Open parquet files that people call `name`; None for files of other formats."""
        key = str(address)
        if key not in self._sources:
            is_parquet = address.format == "parquet"
            self._sources[key] = (
                open_parquet_source(self.session, self.stores, address, name)
                if is_parquet
                else None
            )
        return self._sources[key]
