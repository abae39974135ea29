"""Makes Spark's own reader read exactly the chosen files of a snapshot.

See docs/design/reading.md, Which way is taken.
"""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import physical_schemas
from ktk_engine.format.label import label_texts
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot, digests_of, is_own
from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.client.client import client_of, select_names
from ktk_engine.spark.frames import empty_frame, with_types
from ktk_engine.spark.read.read_types import read_types
from ktk_engine.spark.read.spark_parses_partition_values import (
    name_restored_by_spark,
    spark_parses_partition_values,
)
from ktk_engine.spark.session.scratch import local_path
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import folded
from ktk_engine.temporary_files import temporary_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# An option of the relation applies in every session, also in a host program's.
READING = {
    "parquet.page.verify-checksum.enabled": "true",
    # Arrow's calendar is proleptic Gregorian; Spark 3.5 would refuse dates before 1582.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
# Statistics of row groups and pages by other programs are ignored: they leave NaN out of bounds,
# put -0.0 into dictionaries, truncate texts, and some swap the bounds.
UNBOUNDED = {
    f"parquet.filter.{kind}.enabled": "false"
    for kind in ("stats", "dictionary", "columnindex", "bloom")
}


@dataclass(frozen=True)
class Scanner:
    """Makes relations in one Spark session."""

    session: SparkSession
    store: ObjectStore
    scratch: Path  # folder for manifests
    footers: FooterCache = field(default_factory=FooterCache)  # of data files of other writers

    def scan(self, snapshot: Snapshot, files: pa.Table, columns: Sequence[str]) -> DataFrame | None:
        """Give rows of some of `snapshot.files` as Spark's reader reads them, columns in order.

        None if Spark reads a file wrong.
        """
        kinds = self._kinds(snapshot, files, columns)
        if kinds is None:
            return None
        if not kinds:
            fields = spark_schema(snapshot.schema.field(name) for name in columns)
            return empty_frame(self.session, fields)
        frames = [self._relation(snapshot, *kind, columns) for kind in kinds]
        return functools.reduce(lambda left, right: left.union(right), frames)

    @property
    def reads_folders(self) -> bool:
        """Whether Spark's own reader can read chosen files of the store."""
        return self.store.read_by_spark and client_of(self.session).takes_manifests

    def reads(self, snapshot: Snapshot, files: pa.Table, columns: Sequence[str]) -> bool:
        """Tell whether `scan` gives the rows."""
        return self._kinds(snapshot, files, columns) is not None

    def _kinds(
        self, snapshot: Snapshot, files: pa.Table, columns: Sequence[str]
    ) -> list[tuple[pa.Table, dict[str, st.DataType]]] | None:
        """Group files by writer and the types in which Spark reads them; None if it cannot."""
        keys = snapshot.partition_keys
        if not self.reads_folders:
            return None
        if {*keys} & {*columns} and not _restores(snapshot, files):
            return None
        data = [name for name in columns if name not in keys]
        schemas, at = physical_schemas(self.store, self.footers, snapshot, files)
        alike: dict[tuple[st.DataType, ...], list[int]] = {}
        for number in pc.unique(at).to_pylist():
            types = read_types(snapshot.schema, schemas[number], data)
            if types is None:
                return None
            alike.setdefault(types, []).append(number)
        own, found = is_own(files), []
        for types, numbers in alike.items():
            chosen = pc.is_in(at, value_set=pa.array(numbers, at.type))
            for wrote in (own, pc.invert(own)):
                part = files.filter(pc.and_(chosen, wrote))
                found.append((part, dict(zip(data, types, strict=True))))
        return [(part, types) for part, types in found if part.num_rows]

    def _relation(
        self,
        snapshot: Snapshot,
        files: pa.Table,
        types: Mapping[str, st.DataType],
        columns: Sequence[str],
    ) -> DataFrame:
        """A relation over a manifest; partition values come from the paths if needed."""
        keys = files["key"].to_pylist()
        # Spark verifies pages as it reads them, but trusts the footer.
        self.footers.verify(self.store, keys, digests_of(files))
        uris = [self.store.uri(key) for key in keys]
        manifest = write_manifest(self.scratch / "manifests", uris, self._sizes(files))
        options = READING if is_own(files)[0].as_py() else {**READING, **UNBOUNDED}
        folders = snapshot.partition_keys if set(columns) - types.keys() else ()
        if not folders:  # else Spark skips nested folders
            options = {**options, "recursiveFileLookup": "true"}
        own = spark_schema(snapshot.schema.field(name) for name in (*types, *folders))
        given = [st.StructField(f.name, types.get(f.name, f.dataType)) for f in own]
        reader = self.session.read.options(**options).schema(st.StructType(given))
        frame = reader.parquet(local_path(manifest))
        return select_names(with_types(frame, {f.name: f.dataType for f in own}), columns)

    def _sizes(self, files: pa.Table) -> list[int]:
        """Sizes of files in bytes; those of other writers by one listing per folder."""
        sizes: list[int | None] = files["bytes"].to_pylist()
        if None not in sizes:
            return [size for size in sizes if size is not None]
        keys = files["key"].to_pylist()
        folder = keys[0].partition("/")[0] + "/"
        found = {folded(info.key): info.size for info in self.store.list(folder)}
        return [
            found[folded(key)] if size is None else size
            for key, size in zip(keys, sizes, strict=True)
        ]


def _restores(snapshot: Snapshot, files: pa.Table) -> bool:
    """Whether Spark restores all partition values exactly from the files' paths."""
    keys = snapshot.partition_keys
    if not all(map(name_restored_by_spark, keys)):
        return False
    if any(files[PARTITION_PREFIX + name].null_count for name in keys):
        return False
    texts = label_texts(files["label"], keys)
    exact = (
        spark_parses_partition_values(texts[key], snapshot.schema.field(key).type) for key in keys
    )
    return all(pc.all(each).as_py() is not False for each in exact)


def write_manifest(folder: Path, uris: Sequence[str], sizes: Sequence[int]) -> Path:
    """Write a manifest as a streaming sink's log, and give its folder for Spark's parquet source.

    Spark's file sources read such a log instead of listing the folder. Batch 9 is a compaction
    batch: a complete list of files. URIs are percent-encoded once; a wrong size in bytes breaks
    reading.
    """
    manifest = folder / uuid.uuid4().hex
    lines = ["v1"]
    lines += [
        json.dumps(
            {
                "path": uri,
                "size": size,
                "isDir": False,
                "modificationTime": 0,
                "blockReplication": 1,
                "blockSize": 134217728,
                "action": "add",
            }
        )
        for uri, size in zip(uris, sizes, strict=True)
    ]
    with temporary_files(f"The temporary file {manifest} cannot be written"):
        log = manifest / "_spark_metadata"
        log.mkdir(parents=True)
        (log / "9.compact").write_text("\n".join(lines), encoding="utf-8")
    return manifest
