"""The reference cases in `cubes/`: every query of every stored cube, by each engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.api import Cube, Engine, Store
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import KtkError
from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.corpus.cube_frames import Frame, difference, frame_of, group_value, plain
from tests.corpus.cube_literals import our_condition
from tests.corpus.naive_cube import NaiveCube
from tests.corpus.outcome import Outcome
from tests.support.spark import new_session, start_session
from tests.support.stores import ObjectStore, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {**SPARK_SETTINGS, **FEW_ROWS}  # the cubes are tiny
_THREADS = 4

# The oddities of Kartothek by name, and our decision about each (docs/design/decisions.md).
_QUIRKS = {
    "ne_null": "1",
    "late_dedup": "2",
    "partition_by_wrong_dataset": "3",
    "date_partition_by": "3",
    "bool_partition": "4",
    "binary_partition": "4",
    "slash_in_partition_value": "4",
    "int_precision": "5",
    "float32_comparison": "21",
    "uint64_in_list": "21",
    "binary_in_list": "21",
    "literal_type_not_normalized_for_index": "21",
    "partition_by_drops_null": "22",
    "projected_away_dimension": "23",
}


def run_cubes(path: Path, engine: str = "spark", copied_to: str = "") -> Iterator[Outcome]:
    """Judge every query of every case in a folder.

    Args:
        path: a folder of the format of `cubes/`.
        engine: "spark", or "local" for this process.
        copied_to: address of a store where each case's store is copied to, and then read.

    Yields:
        One outcome per query.
    """
    spark = _session() if engine == "spark" else None
    for folder in sorted(path.iterdir()):
        if (folder / "case.json").is_file():
            copied = open_store(f"{copied_to}/{folder.name}") if copied_to else None
            yield from run_case(folder, spark, copied)


def _session() -> SparkSession:
    spark = new_session(start_session(_SETTINGS))
    for key, value in _SETTINGS.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def run_case(
    folder: Path, spark: SparkSession | None, copied: ObjectStore | None = None
) -> Iterator[Outcome]:
    """Judge every query of one case.

    Args:
        folder: the case.
        spark: where the queries run; None means in this process.
        copied: an empty store that the case's store is copied to, and then read from.

    Yields:
        One outcome per query.
    """
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    given = dict(case["cube"])
    specification = CubeSpecification(given.pop("uuid_prefix"), **given)
    store = Store(folder / "store") if copied is None else _copied(folder / "store", copied)
    naive = NaiveCube(folder, case)
    try:
        cube = store.cube(specification.prefix, specification)
    except KtkError as error:
        yield Outcome(folder.name, "failed", f"cannot be opened: {error}")
        return
    # Most of the time goes by in Spark's driver, one query after the other: ask several at once.
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(lambda q: _judge(folder, q, cube, naive, spark), case["queries"])


def _copied(folder: Path, store: ObjectStore) -> Store:
    """Copy a case's store, key by key, as Kartothek would have written it there."""
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(folder)), path.read_bytes())
    return Store.of(store)


def _judge(
    folder: Path, query: dict[str, Any], cube: Cube, naive: NaiveCube, spark: SparkSession | None
) -> Outcome:
    name = f"{folder.name} query {query['id']}"
    types = {c: t for item in naive.datasets.values() for c, t in item.types.items()}
    got: list[Frame] | None
    try:
        got, reason = _ask(cube, query, types, spark), ""
    except KtkError as error:
        got, reason = None, f"refused: {error}"
    except Exception as error:  # noqa: BLE001 (whatever breaks is a failure of the query)
        return Outcome(name, "failed", f"{type(error).__name__}: {str(error)[:500]}")
    expected = _expected(folder, query, types)
    found = _compare(expected, got, reason, query)
    if not found:
        return Outcome(name, "passed")
    predicted = naive.answer(query)
    decisions = predicted.decisions | {
        _QUIRKS.get(quirk, "24") for quirk in query.get("quirks") or ()
    }
    if not (query.get("expected_error") or {}).get("deliberate", True):
        decisions.add("24")
    miss = _compare(predicted.frames, got, reason, query)
    if decisions and not miss:
        return Outcome(name, "by decision", ", ".join(sorted(decisions)))
    also = f"; the documented semantics: {miss}" if miss else ""
    return Outcome(name, "failed", f"{_shown(query)}: {found}{also}")


def _ask(
    cube: Cube, query: dict[str, Any], types: dict[str, pa.DataType], spark: SparkSession | None
) -> list[Frame]:
    payload = query["payload_columns"]
    asked = cube.query(
        where=our_condition(query["conditions"], cube.schema),
        dimension_columns=query["dimension_columns"],
        partition_by=query["partition_by"],
        payload_columns="*" if payload is None else payload,
        datasets=query["datasets"],
    )
    engine: Engine = "local" if spark is None else "spark"
    if not query["partition_by"]:
        table = asked.to_arrow(spark, engine=engine)
        return [frame_of(table, types)] if table.num_rows else []
    found = []
    for values, rows in asked.iter_groups(spark, engine=engine):
        keys = pa.table({c: pa.array([v], cube.schema.field(c).type) for c, v in values.items()})
        found.append(frame_of(rows, types, frame_of(keys, types).rows[0]))
    return found


def _expected(
    folder: Path, query: dict[str, Any], types: dict[str, pa.DataType]
) -> list[Frame] | None:
    """The recorded answer; None where it is an error."""
    if "expected_error" in query:
        return None
    frames = []
    for item in query["expected"]:
        with pq.ParquetFile(folder / item["file"]) as file:
            table = file.read()
        group = item["partition_by_values"]
        values = tuple(group_value(group[c], types[c]) for c in query["partition_by"] or ())
        frames.append(frame_of(table, types, values))
    return frames


def _compare(
    expected: list[Frame] | None, got: list[Frame] | None, reason: str, query: dict[str, Any]
) -> str:
    """The first difference; empty if there is none."""
    if expected is None or got is None:
        if expected is got:
            return ""
        message = (query.get("expected_error") or {}).get("message", "refused")
        return reason or f"expected the error {message!r}, got {len(got or [])} frames"
    return difference(expected, got)


def _shown(query: dict[str, Any]) -> str:
    """A query in one line."""
    parts = [f"{c['column']} {c['op']} {plain_text(c['value'])}" for c in query["conditions"]]
    for key in ("dimension_columns", "partition_by", "payload_columns", "datasets"):
        if query[key] is not None:
            parts.append(f"{key} {query[key]}")
    return "; ".join(parts) or "everything"


def plain_text(value: Any) -> str:
    """A value, cut short."""
    text = str(plain(value, pa.null()))
    return text if len(text) <= 60 else f"{text[:60]}..."
