"""Turns chosen files of a snapshot into a Spark relation that reads exactly them.

See docs/design/reading.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql import types as st

from ktk_engine.errors import FormatError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.read_rows import POSITION
from ktk_engine.format.label import label_texts
from ktk_engine.log.snapshot import (
    PARTITION_PREFIX,
    Snapshot,
    check_partition_values,
    digests_of,
)
from ktk_engine.spark.arrow_types import spark_schema, spark_type
from ktk_engine.spark.frames import column, empty_frame, frame_of_table, with_types
from ktk_engine.spark.jvm import select_names
from ktk_engine.spark.read.cohorts import Cohort, cohorts
from ktk_engine.spark.read.manifest import write_manifest
from ktk_engine.spark.read.restored_by_spark import name_restored_by_spark, restored_by_spark
from ktk_engine.spark.read.scan_by_arrow import scan_by_arrow
from ktk_engine.spark.session.scratch import local_path
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PATH = "__ktk_path"
# An option of the relation holds in every session, also one that a host program has made.
READING = {
    "parquet.page.verify-checksum.enabled": "true",
    # Arrow's calendar is the proleptic Gregorian one; Spark 3.5 would refuse dates before 1582.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
# What other programs say of row groups and pages decides nothing: they leave NaN out of bounds, put
# -0.0 into dictionaries, cut texts, and some write bounds the wrong way round.
UNBOUNDED = {
    f"parquet.filter.{kind}.enabled": "false"
    for kind in ("stats", "dictionary", "columnindex", "bloom")
}


@dataclass(frozen=True)
class Scanner:
    """Makes relations in one Spark session.

    Attributes:
        session: where the relations live.
        store: where the files live.
        scratch: folder for manifests.
        footers: what is known of data files of other writers.
    """

    session: SparkSession
    store: ObjectStore
    scratch: Path
    footers: FooterCache = field(default_factory=FooterCache)

    def scan(
        self,
        snapshot: Snapshot,
        files: pa.Table,
        columns: Sequence[str],
        with_position: bool = False,
    ) -> DataFrame:
        """Give the rows of some files of a dataset.

        Args:
            snapshot: the dataset.
            files: rows of `snapshot.files`.
            columns: the columns to give, partition columns among them where wanted.
            with_position: add the file's position as `POSITION`, to resolve overlays.

        Returns:
            A frame with the columns in the given order, in the Spark types of their classes.
        """
        if files.num_rows == 0:
            return self._empty(snapshot, columns, with_position)
        unread = _files_with_unreadable_values(snapshot, files, columns)
        if unread.num_rows:
            return self._scan_with_unreadable(snapshot, files, unread, columns, with_position)
        data = [name for name in columns if name not in snapshot.partition_keys]
        alike = cohorts(self.store, self.footers, snapshot, files, data)
        frames = [self._scan_cohort(snapshot, cohort, columns, with_position) for cohort in alike]
        return functools.reduce(lambda left, right: left.union(right), frames)

    def _scan_with_unreadable(
        self,
        snapshot: Snapshot,
        files: pa.Table,
        unread: pa.Table,
        columns: Sequence[str],
        with_position: bool,
    ) -> DataFrame:
        """Put files apart whose partition values nobody can read: only who needs one fails."""
        rest = files.filter(pc.invert(pc.is_in(files["key"], unread["key"].combine_chunks())))
        described = replace(snapshot, files=unread)
        unknown = {}
        for name in columns:
            try:
                check_partition_values(described, {name} & set(snapshot.partition_keys))
            except FormatError as error:
                unknown[name] = F.raise_error(F.lit(str(error)))
        known = [name for name in columns if name not in unknown]
        frame = self.scan(snapshot, unread, known, with_position)
        chosen = [
            unknown[name].cast(spark_type(snapshot.schema.field(name).type)).alias(name)
            if name in unknown
            else column(name)
            for name in columns
        ]
        frame = frame.select(*chosen, *([F.col(POSITION)] if with_position else []))
        if not rest.num_rows:
            return frame
        return self.scan(snapshot, rest, columns, with_position).union(frame)

    def _scan_cohort(
        self,
        snapshot: Snapshot,
        cohort: Cohort,
        columns: Sequence[str],
        with_position: bool,
    ) -> DataFrame:
        """Give the rows of files that are read alike; columns and types are those of `scan`."""
        if cohort.by_arrow or not self.store.read_by_spark:
            return scan_by_arrow(self.session, self.store, snapshot, cohort, columns, with_position)
        files = cohort.files
        # Spark verifies pages as it reads them, but what a footer says it takes as it is.
        keys = files["key"].to_pylist()
        self.footers.verified.verify(self.store, keys, digests_of(files))
        if snapshot.partition_keys and restorable(snapshot, files):
            frame = self._relation(snapshot, cohort, columns)
            facts = None
        else:
            frame = self._relation(snapshot, cohort, columns, partitioned=False)
            wanted = [key for key in snapshot.partition_keys if key in columns]
            facts = files.select([PARTITION_PREFIX + key for key in wanted])
            facts = facts.rename_columns(wanted) if wanted else None
        if with_position or facts is not None:
            frame = self._with_file_facts(frame, snapshot, files, facts, with_position)
        found = {name: _as_class(snapshot, cohort, name) for name in columns}
        changed = {name: values for name, values in found.items() if values is not None}
        frame = frame.withColumns(changed) if changed else frame
        return select_names(frame, [*columns, *([POSITION] if with_position else [])])

    def _empty(self, snapshot: Snapshot, columns: Sequence[str], with_position: bool) -> DataFrame:
        schema = spark_schema(snapshot.schema.field(name) for name in columns)
        if with_position:
            schema = schema.add(POSITION, st.LongType())
        return empty_frame(self.session, schema)

    def _relation(
        self,
        snapshot: Snapshot,
        cohort: Cohort,
        columns: Sequence[str],
        partitioned: bool = True,
    ) -> DataFrame:
        """A relation over a manifest; partition values come from the paths if it is partitioned."""
        files = cohort.files
        uris = [self.store.uri(key) for key in files["key"].to_pylist()]
        manifest = write_manifest(self.scratch / "manifests", uris, self._sizes(files))
        keys = snapshot.partition_keys if partitioned else ()
        data = st.StructType(
            [
                st.StructField(f.name, cohort.read_as.get(f.name) or spark_type(f.type))
                for f in snapshot.schema
                if f.name in columns
                and f.name not in snapshot.partition_keys
                and f.name not in cohort.absent
            ]
        )
        partitions = spark_schema(snapshot.schema.field(name) for name in keys)
        options = READING if cohort.own else {**READING, **UNBOUNDED}
        # Without partition columns Spark keeps only files lying directly in the folder.
        options = options if keys else {**options, "recursiveFileLookup": "true"}
        schema = st.StructType([*data.fields, *partitions.fields])
        return self.session.read.options(**options).schema(schema).parquet(local_path(manifest))

    def _sizes(self, files: pa.Table) -> list[int]:
        """Sizes of files in bytes; those of other writers are asked for, once per folder."""
        sizes: list[int | None] = files["bytes"].to_pylist()
        if None not in sizes:
            return [size for size in sizes if size is not None]
        keys = files["key"].to_pylist()
        folder = keys[0].partition("/")[0] + "/"
        found = {info.key: info.size for info in self.store.list(folder)}
        return [found[key] if size is None else size for key, size in zip(keys, sizes, strict=True)]

    def _with_file_facts(
        self,
        frame: DataFrame,
        snapshot: Snapshot,
        files: pa.Table,
        partitions: pa.Table | None,
        with_position: bool,
    ) -> DataFrame:
        """Add what only the snapshot knows of a row's file, by the file's path.

        The facts are broadcast, so that no row moves.
        """
        paths = pa.array([_path(self.store.uri(key)) for key in files["key"].to_pylist()])
        facts = pa.table({_PATH: paths})
        fields = [pa.field(_PATH, pa.string())]
        if with_position:
            facts = facts.append_column(POSITION, files["position"])
            fields.append(pa.field(POSITION, pa.int64()))
        for name in partitions.column_names if partitions is not None else ():
            assert partitions is not None
            values = partitions[name]
            if pat.is_unsigned_integer(values.type):  # Spark takes none of them
                values = values.cast(pa.decimal128(20, 0))
            facts = facts.append_column(name, values)
            fields.append(snapshot.schema.field(name))
        known = frame_of_table(self.session, facts)
        known = with_types(known, {field.name: spark_type(field.type) for field in fields})
        # Spark encodes paths in its own way: both sides are compared decoded.
        path = f"url_decode(replace(_metadata.file_path, '+', '%2B')) as {_PATH}"
        return frame.selectExpr("*", path).join(F.broadcast(known), _PATH).drop(_PATH)


def _files_with_unreadable_values(
    snapshot: Snapshot, files: pa.Table, columns: Sequence[str]
) -> pa.Table:
    names = [PARTITION_PREFIX + name for name in columns if name in snapshot.partition_keys]
    masks = [pc.is_null(files[name]) for name in names]
    return files.filter(functools.reduce(pc.or_, masks)) if masks else files.slice(0, 0)


def restorable(snapshot: Snapshot, files: pa.Table) -> bool:
    """Whether Spark restores the partition values of all files exactly from their paths."""
    if not snapshot.partition_keys:
        return True
    if not all(map(name_restored_by_spark, snapshot.partition_keys)):
        return False
    texts = label_texts(files["label"], snapshot.partition_keys)
    return all(
        pc.all(restored_by_spark(texts[key], snapshot.schema.field(key).type)).as_py()
        for key in snapshot.partition_keys
    )


def _as_class(snapshot: Snapshot, cohort: Cohort, name: str) -> Column | None:
    """A column of a cohort in the Spark type of its class; None if it is read so."""
    t = snapshot.schema.field(name).type
    if name in cohort.absent:
        return F.lit(None).cast(spark_type(t))
    return column(name).cast(spark_type(t)) if name in cohort.read_as else None


def _path(uri: str) -> str:
    """A URI as Spark's `file_path` gives it once decoded: one slash after `file:`."""
    return unquote(uri).replace("file:///", "file:/", 1)
