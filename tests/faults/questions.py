"""Everything that one may ask a store, and what it answers: rows, or an error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from ktk_engine import Store
from tests.faults.answer import Answer, answered
from tests.faults.read import rows_of
from tests.faults.victim import CUBE, KEYS, PLAIN_CUBE, VIEW
from tests.support.committed import (
    Snapshot,
    check,
    list_contents,
    read_history,
    scope_of,
    snapshot_of,
)
from tests.support.queries import MetadataCache, comparison, prune
from tests.support.spark import new_session, statements
from tests.support.stores import LocalStore

_DEEP = {"deep": True} if "deep" in inspect.signature(check).parameters else {}


class Questions:
    """Asks a store through one warm session."""

    def __init__(self, store: LocalStore, spark: SparkSession) -> None:
        self._store = store
        self._spark = new_session(spark)
        self._sql = statements(self._spark, store)

    def ask(self, key: str, number: int, by_spark: bool) -> dict[str, Answer]:
        """Ask everything that may read a file.

        Args:
            key: the file.
            number: which index value to ask Spark for.
            by_spark: let Spark read rows as well; else only what Spark would be told to read is
                compared, which takes a hundredth of the time.
        """
        questions = self._about(key, number)
        return {
            name: answered(ask)
            for name, ask in questions.items()
            if by_spark or not name.endswith("by Spark")
        }

    def checked(self, key: str) -> Answer:
        """What `ktk check --deep` finds where a file lies; views belong to no cube or table."""
        if subject(key) == VIEW:
            return Answer([])
        return answered(lambda: [str(item) for item in self._problems(key)])

    def _problems(self, key: str) -> tuple[Any, ...]:
        return check(self._store, subject(key), **_DEEP).problems

    def _about(self, key: str, number: int) -> Mapping[str, Callable[[], Any]]:
        name = subject(key)
        if name == VIEW:
            return {"view, by Spark": lambda: self._rows("select * from an.w")}
        common = {
            "history": lambda: [entry.as_dict() for entry in read_history(self._store, name)],
            "info": lambda: list_contents(self._store),
        }
        if name in (CUBE, PLAIN_CUBE):
            return {**common, **self._about_cube(name, number)}
        column = f"k = {number % KEYS}"
        return {
            **common,
            "all rows by Spark": lambda: self._rows(f"select P, k, v from an.{name}"),
            "one key by Spark": lambda: self._rows(f"select P, k, v from an.{name} where {column}"),
            "all rows by Arrow": lambda: self._by_arrow(name),
            "files of each key": lambda: self._files(name, "k", range(KEYS)),
            "what Spark would read": lambda: _told([self._snapshot(name)]),
        }

    def _about_cube(self, name: str, number: int) -> Mapping[str, Callable[[], Any]]:
        column, values = ("v", self._payloads()) if name == CUBE else ("hour", [1, 2])
        seed = f"{name}++{'s' if name == CUBE else 'flights'}"
        where = f"{column} = {values[number % len(values)]}"
        cube = Store(self._store.root).cube
        return {
            "all rows by Spark": lambda: cube(name).query().to_arrow(self._spark).to_pylist(),
            "one key by Spark": lambda: (
                cube(name).query(where=where).to_arrow(self._spark).to_pylist()
            ),
            "files of each key": lambda: self._files(seed, column, values),
            "what Spark would read": lambda: _told(
                [replace(i.snapshot, file_table=i.files) for i in cube(name).query().plan.datasets]
            ),
        }

    def _payloads(self) -> list[int]:
        if not hasattr(self, "_known_payloads"):
            snapshot = snapshot_of(self._store, "c++s")
            self._known_payloads = sorted({row[2] for row in rows_of(self._store, snapshot)})
        return self._known_payloads

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self._sql.sql(sql).collect())

    def _by_arrow(self, uuid: str) -> Any:
        return rows_of(self._store, self._snapshot(uuid))

    def _snapshot(self, uuid: str) -> Snapshot:
        return snapshot_of(self._store, uuid)

    def _files(self, uuid: str, column: str, values: Any) -> list[list[str]]:
        """The files that pruning leaves for each value of an index."""
        snapshot = self._snapshot(uuid)
        t = snapshot.schema.field(column).type
        known = MetadataCache()
        return [
            prune(self._store, snapshot, [comparison(column, t, "=", value)], None, known)
            .files["key"]
            .to_pylist()
            for value in values
        ]


def _told(snapshots: Sequence[Snapshot]) -> list[Any]:
    """All that Spark learns of datasets before it opens their files."""
    return [
        (
            item.uuid,
            item.files.to_pylist(),
            item.schema.to_string(show_field_metadata=False),
            item.partition_keys,
            [schema.to_string() for schema in item.physical_schemas],
            item.dimension_columns,
        )
        for item in snapshots
    ]


def subject(key: str) -> str:
    """The cube, table or view that a file belongs to."""
    if key.startswith(".ktk/view/"):
        return VIEW
    if key.startswith(".ktk/"):
        return key.split("/")[2]
    uuid = key.split("/")[0].removesuffix(".by-dataset-metadata.json")
    return scope_of(uuid).name
