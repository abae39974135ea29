"""The engine on executors: this package is sent there, and reports what it lacks there.

Executors of a cluster have Spark, pyarrow and numpy, but not this package.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.session.local_workers import workers_find_engine
from ktk_engine.spark.session.scratch import make_scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Batches: TypeAlias = Iterator["pa.RecordBatch"]

# Rooms that only this process uses: they read statements, decide and commit.
_NOT_SHIPPED = frozenset(
    {"api", "catalog", "change", "cli", "describe", "gate", "maintain"}
    | {"publish", "report", "sql", "warehouse", "write", "duckdb.py", "polars.py"}
)
_PACKAGE = Path(__file__).parents[2]  # the folder of ktk_engine, wherever it is installed
_lock = threading.Lock()
PARTS = "in parts: "  # before the parts of a message, as JSON, in a traceback
_EPOCH = (1980, 1, 1, 0, 0, 0)


def map_in_workers(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str
) -> DataFrame:
    """Map a function of this package over the Arrow batches of a frame in Spark's Python workers.

    The frame's session may come from the host program.
    """
    ship_engine(frame.sparkSession)
    names = frame.columns
    if any("." in name or "`" in name for name in names):  # PySpark would read them as expressions
        frame = frame.toDF(*(f"_{number}" for number in range(len(names))))
    return frame.mapInArrow(_checked(_with_names(function, names)), schema)


def _with_names(function: Callable[[Batches], Batches], names: list[str]) -> Callable[..., Batches]:
    """Name the columns of batches by position: Spark drops a projection that only renames them."""

    def run(batches: Batches) -> Batches:
        yield from function(batch.rename_columns(names) for batch in batches)

    return run


def ship_engine(session: SparkSession) -> None:
    """Send this package to executors, unless this process has done so already.

    There it takes precedence over an installed version. Workers on this machine need none if a new
    interpreter finds the same package.
    """
    client = client_of(session)
    if client.runs_this_python and workers_find_engine():
        return
    files = _files()
    name = f"ktk_engine-{_digest(files)}.zip"
    with _lock:  # Spark refuses a second file of this name
        if client.has_archive(name):
            return
        archive = make_scratch_folder() / name
        _write_archive(archive, files)
        client.send_archive(archive)


def _checked(function: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Unpickle a function only where the packages that it needs are installed."""
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]

    def run(batches: Batches) -> Batches:
        from pyspark import cloudpickle

        from ktk_engine.errors import KtkError
        from ktk_engine.spark.session.worker_modules import check_packages, freeze_imports

        check_packages()
        try:
            yield from cloudpickle.loads(packed)(batches)
        except KtkError as error:  # Spark passes on only its traceback
            error.add_note(f"{PARTS}{error.message.to_json()}")
            raise
        freeze_imports()

    return run


def _files() -> dict[str, bytes]:
    """The modules of the package by their path in it."""
    found = {file.relative_to(_PACKAGE): file for file in sorted(_PACKAGE.rglob("*.py"))}
    return {
        f"ktk_engine/{place.as_posix()}": file.read_bytes()
        for place, file in found.items()
        if place.parts[0] not in _NOT_SHIPPED
    }


def _digest(files: dict[str, bytes]) -> str:
    """The digest of the package's contents: Spark keeps each file forever."""
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()[:16]


def _write_archive(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
