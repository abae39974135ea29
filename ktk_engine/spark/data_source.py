"""A Python data source for Spark 4.1 and later: `spark.read.format("ktk")`.

It serves plain SQL on a server whose Python has this package. Spark passes it simple filters but no
columns; see docs/spark.md, A source for plain SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from ktk_engine.conditions.condition import (
    Condition,
    IsNull,
    TrueCondition,
    conjunction,
)
from ktk_engine.conditions.implied import UNKNOWN, Implied, compared, listed, prefixed
from ktk_engine.conditions.literal import null_safe_equal
from ktk_engine.errors import ConditionError, ConfigurationError
from ktk_engine.files.footers import FooterCache
from ktk_engine.local.tasks import tasks
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.open_relation import Kind, open_relation
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.plan.statement.usage import OPERATORS
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.read.task_frame import run_group
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.open_store import open_store

# Spark does not tell a source how many tasks run at a time.
_TASKS = 16


@dataclass(frozen=True)
class _Address:
    """The version of a relation to read, as plain data that goes to workers."""

    store: ObjectStore
    kind: Kind
    name: str
    version: int | str | None
    timestamp: str | None

    def open(self) -> LoadedCube | LoadedTable:
        version, timestamp = self.version, self.timestamp
        return open_relation(self.store, self.name, version, timestamp, kind=self.kind)


class KtkDataSource(datasource.DataSource):
    """Reads a cube or a table as Spark's source `ktk`.

    Options are `store` (an address), `cube` or `table` (a name), and `version` or `timestamp` for
    an earlier version. All others are settings of an object store, such as `endpoint`:

        spark.dataSource.register(KtkDataSource)
        spark.read.format("ktk").options(store="s3://b/w", cube="nyc").load()
    """

    _version: int | None = None
    _columns: pa.Schema | None = None  # of that version
    _loaded: LoadedCube | LoadedTable | None = None  # that version, in the process that opened it

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    @classmethod
    def name(cls) -> str:
        """The format's name in Spark."""
        return "ktk"

    def schema(self) -> StructType:
        """Give the columns in Spark's types; the reader uses the same version."""
        loaded = self._address.open()
        # What another program wrote has no version.
        if loaded.state.version and not loaded.state.changed_by_others:
            self._version, self._columns = loaded.state.version, loaded.schema
            self._loaded = loaded
        return spark_schema(loaded.schema)

    def reader(self, schema: StructType) -> KtkReader:
        """Give the reader, which plans and reads."""
        address = self._address
        if self._version is not None:
            address = replace(address, version=self._version, timestamp=None)
        return KtkReader(address, self._columns, self._loaded)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write."""
        raise ConfigurationError(
            'The format "ktk" only reads. Write with Store.build and Store.write_table, which '
            "check the rows. Nothing was written."
        )

    @property
    def _address(self) -> _Address:
        given = dict(self.options)
        own = {key: given.pop(key, None) for key in ("store", "cube", "table")}
        kinds: tuple[Kind, ...] = ("cube", "table")
        named = [(kind, name) for kind in kinds if (name := own[kind])]
        if not own["store"] or len(named) != 1 or "path" in given:
            raise ConfigurationError(
                'The format "ktk" needs the options store, an address, and cube or table, a name: '
                'spark.read.format("ktk").options(store="s3://bucket/store", cube="nyc").load().'
            )
        ((kind, name),) = named
        version, timestamp = given.pop("version", None), given.pop("timestamp", None)
        number = int(version) if version and version.isdigit() else version
        return _Address(open_store(own["store"], given), kind, name, number, timestamp)


class KtkReader(datasource.DataSourceReader):
    """Plans and reads one use of a relation; workers get a copy, without what is known about it."""

    def __init__(
        self,
        address: _Address,
        columns: pa.Schema | None = None,
        loaded: LoadedCube | LoadedTable | None = None,
    ) -> None:
        if columns is None:
            loaded = address.open()
            columns = loaded.schema
        self._address = address
        self._condition: Condition = TrueCondition()
        self._loaded, self._schema = loaded, columns
        self._target = arrow_schema(spark_schema(self._schema))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Note filters; Spark checks each row again."""
        self._condition = conjunction(_condition(item, self._schema) for item in filters)
        return filters

    def partitions(self) -> Sequence[datasource.InputPartition]:
        """Plan, and give the tasks."""
        loaded = self._loaded or self._address.open()
        with loaded.state.reading():
            plan = loaded.answer(CubeQuery(self._schema.names, self._condition))
            found = tasks(self._address.store, FooterCache(), plan, workers=_TASKS)
        return [*map(datasource.InputPartition, found)] or [datasource.InputPartition(None)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the rows of a task."""
        if partition.value is not None:
            yield from run_group(self._address.store, [partition.value], self._target)


def _condition(pushed: Any, schema: pa.Schema) -> Condition:
    """What a row that passes a filter fulfills; true if the filter is not understood."""
    return _implied(pushed, schema).true


def _implied(pushed: Any, schema: pa.Schema) -> Implied:
    kind = type(pushed).__name__
    if kind == "Not":
        return _implied(pushed.child, schema).negated()
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return UNKNOWN
    column, t = path[0], schema.field(path[0]).type
    try:
        match kind:
            case "IsNull":
                return Implied.exactly(IsNull(column))
            case "IsNotNull":
                return Implied.exactly(IsNull(column)).negated()
            case "EqualNullSafe" if pushed.value is None:
                return Implied.exactly(IsNull(column))
            case "EqualNullSafe":
                return Implied.exactly(null_safe_equal(column, t, pushed.value))
            case "In":
                return listed(column, t, pa.array(pushed.value), nulls_match=False)
            case "StringStartsWith":
                return prefixed(column, t, pa.scalar(pushed.value))
            case _ if kind in OPERATORS:
                return compared(column, t, OPERATORS[kind], pa.scalar(pushed.value))
    except (ConditionError, ValueError, TypeError, OverflowError, pa.ArrowInvalid):
        return UNKNOWN
    return UNKNOWN
