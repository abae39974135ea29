"""A source of Spark 4.1 and later, written in Python: `spark.read.format("ktk")`.

It is for plain SQL on a server whose Python has this package. Spark hands it simple filters, and no
columns; see docs/spark.md, A source for plain SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from ktk_engine.conditions import literal
from ktk_engine.conditions.condition import (
    Condition,
    IsNull,
    Not,
    Operator,
    StartsWith,
    TrueCondition,
    conjunction,
)
from ktk_engine.errors import ConditionError, ConfigurationError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.local.tasks import tasks
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.open_relation import open_relation
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.read.task_frame import run_group
from ktk_engine.store.open_store import open_store

# Nobody says here how many tasks run at a time.
_TASKS = 16
_COMPARISONS: dict[str, Operator] = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


class KtkDataSource(datasource.DataSource):
    """Reads a cube or a table as Spark's source `ktk`.

    Options: `store`, its address; `cube` or `table`, a name; `version` or `timestamp`, where it is
    not the newest version; other ones are settings of an object store, such as `endpoint`.

    Examples:
        spark.dataSource.register(KtkDataSource)
        spark.read.format("ktk").options(store="s3://b/w", cube="nyc").load()
    """

    @classmethod
    def name(cls) -> str:
        """How Spark calls it."""
        return "ktk"

    def schema(self) -> StructType:
        """Give the columns, in Spark's types of their classes."""
        return spark_schema(self._loaded.schema)

    def reader(self, schema: StructType) -> KtkReader:
        """Give what plans and reads."""
        return KtkReader(self._loaded, schema)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write."""
        raise ConfigurationError(
            "The source ktk only reads: cubes and tables are written by dbt, by Store.build and by "
            "Store.write_table, which check what is written. Nothing was written."
        )

    @cached_property
    def _loaded(self) -> LoadedCube | LoadedTable:
        given = dict(self.options)
        own = {key: given.pop(key, None) for key in ("store", "cube", "table")}
        named = {kind: name for kind, name in own.items() if name and kind != "store"}
        if not own["store"] or len(named) != 1 or "path" in given:
            raise ConfigurationError(
                "The source ktk needs the options store, an address, and cube or table, a name: "
                'spark.read.format("ktk").options(store="s3://bucket/dbt", cube="nyc").load().'
            )
        ((kind, name),) = named.items()
        version, timestamp = given.pop("version", None), given.pop("timestamp", None)
        store = open_store(own["store"], given)
        number = int(version) if version and version.isdigit() else version
        return open_relation(store, name, number, timestamp, kind=kind)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Part(datasource.InputPartition):
    """A task of the plan."""

    value: Any


class KtkReader(datasource.DataSourceReader):
    """Plans and reads one use of a relation; goes to the workers that read."""

    def __init__(self, loaded: LoadedCube | LoadedTable, schema: StructType) -> None:
        self._loaded: LoadedCube | LoadedTable | None = loaded
        self._store = loaded.state.store
        self._condition: Condition = TrueCondition()
        self._target = arrow_schema(schema)

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take note of filters; Spark looks at each row again."""
        assert self._loaded is not None, "filters come before tasks"
        self._condition = conjunction(_condition(item, self._loaded.schema) for item in filters)
        return filters

    def partitions(self) -> Sequence[datasource.InputPartition]:
        """Plan, and give the tasks."""
        assert self._loaded is not None, "tasks are made once"
        with self._loaded.state.reading():
            plan = self._loaded.answer(CubeQuery(self._target.names, self._condition))
            found = tasks(self._store, MetadataCache().footers, plan, workers=_TASKS)
        self._loaded = None  # workers need it not
        return [_Part(task) for task in found] or [_Part(None)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the rows of a task."""
        if partition.value is not None:
            yield from run_group(self._store, [partition.value], self._target)


def _condition(pushed: Any, schema: pa.Schema) -> Condition:
    """What a row fulfils that passes a filter; true where it is not understood."""
    known = _exactly(pushed, schema)
    return TrueCondition() if known is None else known


def _exactly(pushed: Any, schema: pa.Schema) -> Condition | None:
    kind = type(pushed).__name__
    if kind == "Not":
        inner = _exactly(pushed.child, schema)
        return None if inner is None else Not(inner)
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return None
    column, t = path[0], schema.field(path[0]).type
    try:
        match kind:
            case "IsNull":
                return IsNull(column)
            case "IsNotNull":
                return Not(IsNull(column))
            case "EqualNullSafe":
                if pushed.value is None:
                    return IsNull(column)
                return literal.null_safe_equal(column, t, pushed.value)
            case "In":
                return literal.is_in(column, t, [v for v in pushed.value if v is not None])
            case "StringStartsWith":
                return StartsWith(column, pushed.value)
            case _ if kind in _COMPARISONS:
                return literal.comparison(column, t, _COMPARISONS[kind], pushed.value)
    except (ConditionError, ValueError, OverflowError):
        return None
    return None
