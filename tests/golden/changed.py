"""States in a store, made and changed by the library's public face alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ktk_engine import Store
from ktk_engine.errors import KtkError
from tests.golden.canonical import Files, change_lines, message_lines, row_lines, table
from tests.golden.changes import Draws, State, conditions, new_rows, state

MakeFrame = Callable[[pa.Table], Any]
Change = Callable[[], Any]
# Ids of datasets: the one that changes, and the cube's other one.
CHANGED, OTHER = "rows", "other"


def as_it_is(rows: pa.Table) -> Any:
    return rows


class Changed:
    """A relation whose rows change.

    Attributes:
        before: what it held at first.
        name: the table's name, or the cube's.
        dataset: id of the dataset that changes; the table's name.
    """

    def __init__(self, store: Store, before: State, name: str, dataset: str = CHANGED) -> None:
        self._store = store
        self._lines: list[str] = []
        self._counts: list[str] = []
        self.before = before
        self.name = name
        self.dataset = dataset if before.in_cube else name

    @property
    def commits(self) -> int:
        """How many wrote the state."""
        return len(self.before.parts)

    @property
    def uuid(self) -> str:
        """What messages call the dataset."""
        return f"{self.name}++{self.dataset}" if self.before.in_cube else self.name

    @property
    def relation(self) -> Any:
        """The table or cube at its newest version."""
        return self._store.relation(self.name)

    def build(self) -> Changed:
        """Write the state, a commit for each part."""
        first, *others = (table(rows) for rows in self.before.parts)
        partition_by = self.before.partition_by
        if not self.before.in_cube:
            self._store.write_table(self.name, first, partition_by=partition_by, indexes=["i"])
            for part in others:
                self._store.write_table(self.name, part)
            return self
        is_seed = self.before.storage == "seed"
        cells = [
            {name: row[name] for name in self.before.cell} | {"x": number}
            for number, row in enumerate(self.before.rows)
            if not is_seed or number % 3  # some cells have nothing of it
        ]
        cube = self._store.build(
            self.name,
            {self.dataset: first, OTHER: table(cells)},
            seed=self.dataset if is_seed else OTHER,
            dimension_columns=["k"],
            partition_by=partition_by,
            indexes=["i"],
        )
        for part in others:
            cube = cube.append({self.dataset: part})
        return self

    def rows(self) -> list[str]:
        return row_lines(self.relation.query().to_arrow(engine="local").to_pylist())

    def start(self) -> list[str]:
        """The rows at first; `step` says what changes in them."""
        self._files = Files(Path(self._store.url.removeprefix("file://")))
        self._lines = self.rows()
        self._counts = self._files.new_types()
        return self._lines

    def layout(self) -> list[str]:
        """How many files each commit left, and the types that columns had in files."""
        return [*self._counts, *self._files.new_types()]

    def step(self, change: Change) -> list[str]:
        """Make a change; gives what it says, counts, and the rows that go and come."""
        version = self.relation.version
        lines = []
        try:
            change()
        except KtkError as error:
            lines = [type(error).__name__, *message_lines(str(error), {self._store.url: "<store>"})]
        return [*lines, *self.after(version)]

    def after(self, version: int) -> list[str]:
        """What the commits since a version have changed, since the last call of this or `start`."""
        relation = self.relation
        commits = [entry for entry in relation.history(3) if entry["version"] > version]
        changes = [
            (change, f"{change['operation']} {change['dataset']}")
            for entry in reversed(commits)
            for change in entry["changes"]
        ]
        lines = [f"{what}, rows {c['rows_delta']:+} = {c['rows']}" for c, what in changes]
        self._counts += [
            f"{what}, files {c['files_delta']:+} = {c['files']}" for c, what in changes
        ]
        before, self._lines = self._lines, self.rows()
        return [
            *(lines or ["nothing is committed"]),
            *change_lines(before, self._lines),
        ]


def table_changes(store: Store, changed: Changed, frame: MakeFrame) -> Iterator[tuple[str, Change]]:
    """Every way to change a table, in an order that its seed draws, with a text of each."""
    before, name = changed.before, changed.name

    def write(step: int, mode: Any, key: tuple[str, ...] = ()) -> Change:
        rows = new_rows(before, step)
        if mode == "append":  # what keys that come twice do is recorded for itself
            rows = [row for row in rows if row["k"] is None or row["k"] >= 20]
        return lambda: store.write_table(name, frame(table(rows)), mode, key=key)

    def delete(where: str) -> Change:
        return lambda: store.table(name).delete(where)

    place = Draws("place", before.seed).one(sorted({row["p"] for row in before.rows}))
    some = [
        ("append", write(1, "append")),
        ("merge by k", write(2, "merge", ("k",))),
        ("merge by p, k", write(3, "merge", ("p", "k"))),
        ("merge by s", write(4, "merge", ("s",))),
        *((f"delete where {where}", delete(where)) for where in conditions(before, 3)),
        (f"delete where p = '{place}'", delete(f"p = '{place}'")),
        ("compact", lambda: store.table(name).compact()),
    ]
    yield from Draws("order", before.seed).some(some, len(some))
    yield "repartition by b", lambda: store.table(name).repartition("b")
    yield "repartition by i", lambda: store.table(name).repartition("i")
    yield "overwrite", write(5, "overwrite")


def cube_changes(store: Store, changed: Changed, frame: MakeFrame) -> Iterator[tuple[str, Change]]:
    """Every way to change a dataset of a cube, likewise."""
    before, name, dataset = changed.before, changed.name, changed.dataset

    def cube() -> Any:
        return store.cube(name)

    def rows(step: int) -> dict[str, Any]:
        return {dataset: frame(table(new_rows(before, step)))}

    def transaction(where: str) -> None:
        with cube().transaction() as changes:
            changes.append(rows(5))
            changes.delete(where, [dataset])
            changes.append(rows(6))

    def delete(where: str, datasets: list[str] | None = None) -> Change:
        return lambda: cube().delete(where, datasets)

    first, second, third, fourth, fifth = conditions(before, 5)
    alone = None if before.storage == "seed" else [dataset]
    cell = "k between 2 and 9"
    place = Draws("place", before.seed).one(sorted({row["p"] for row in before.rows}))
    some: list[tuple[str, Change]] = [
        ("append", lambda: cube().append(rows(1))),
        ("append again", lambda: cube().append(rows(2))),
        (f"delete where {first}", delete(first)),
        (f"delete from {dataset} where {second}", delete(second, [dataset])),
        (f"delete from both where {cell}", delete(cell)),
        (f"update where {third}", lambda: cube().update(rows(3), third)),
        (f"append, delete where {fourth}, append", lambda: transaction(fourth)),
        ("compact", lambda: cube().compact(dataset=dataset)),
        (f"remove partitions p = '{place}'", lambda: cube().remove_partitions(f"p = '{place}'")),
        (f"delete where {fifth} again", delete(fifth, alone)),
    ]
    yield from Draws("order", before.seed).some(some, len(some))
    yield "update all", lambda: cube().update(rows(4))
    if before.storage == "enrichment":
        yield "overwrite", lambda: cube().extend(rows(7), overwrite=True)


def changes_of(store: Store, changed: Changed, frame: MakeFrame) -> Iterator[tuple[str, Change]]:
    if changed.before.in_cube:
        return cube_changes(store, changed, frame)
    return table_changes(store, changed, frame)


def built(store: Store, storage: Any, seed: int, name: str = "t") -> Changed:
    return Changed(store, state(storage, seed), name).build()


def merges_of_keys_that_come_twice(
    store: Store, changed: Changed, frame: MakeFrame
) -> Iterator[tuple[str, Change]]:
    """Merges into a table in which rows share a key."""
    for key in (["k"], ["k", "p"], ["d"]):
        rows = {tuple(row[name] for name in key): row for row in new_rows(changed.before, len(key))}
        new = table(list(rows.values()))
        yield (
            f"merge by {', '.join(key)}",
            lambda new=new, key=key: store.write_table(changed.name, frame(new), "merge", key=key),
        )


def refused_changes(
    store: Store, changed: Changed, frame: MakeFrame
) -> Iterator[tuple[str, Change]]:
    """Changes with a fault each; none may be committed."""
    before, name, dataset = changed.before, changed.name, changed.dataset
    good = new_rows(before, 8)[:3]
    good = [{**row, "k": 50 + number, "i": number} for number, row in enumerate(good)]

    def append(rows: pa.Table) -> Change:
        if before.in_cube:
            return lambda: store.cube(name).append({dataset: frame(rows)})
        return lambda: store.write_table(name, frame(rows))

    def with_column(column: str, type_: pa.DataType, value: Any = None) -> pa.Table:
        values = pa.array([value] * len(good), type_)
        rows = table(good)
        if column not in rows.column_names:
            return rows.append_column(column, values)
        return rows.set_column(rows.column_names.index(column), column, values)

    def rows_with(**values: Any) -> pa.Table:
        """Good rows but for the last one."""
        return table([*good[:-1], {**good[-1], **values}])

    for column, type_, value in (
        ("i", pa.float64(), 1.0),
        ("k", pa.string(), "1"),
        ("s", pa.binary(), b"x"),
        ("m", pa.decimal128(10, 3), None),
        ("m", pa.float64(), None),
        ("d", pa.timestamp("us"), None),
        ("t", pa.timestamp("us", "UTC"), None),
        ("b", pa.int64(), 1),
        ("n", pa.string(), None),
        ("new", pa.int64(), 1),
    ):
        yield f"column {column} of type {type_}", append(with_column(column, type_, value))
    yield "a column is missing", append(table(good).drop_columns(["m"]))
    yield (
        "two columns are missing, one is wrong",
        append(with_column("f", pa.int64(), 1).drop_columns(["s", "d"])),
    )
    yield "no index value", append(rows_with(i=None))
    yield "no partition value", append(rows_with(p=None))
    yield "no dimension value", append(rows_with(k=None))
    yield "a cell comes twice", append(table([*good, {**good[0], "i": 7}]))
    if not before.in_cube:
        yield from _refused_by_tables(store, name, good, frame)
    else:
        yield from _refused_by_cubes(store, changed, good, frame)
    where_delete = [
        "i = k",
        "unknown = 1",
        "s > 3",
        "upper(s) = 'A'",
        "",
        "d = '2024-02-30'",
    ]
    for where in where_delete:
        yield f"delete where {where!r}", _deleted(store, changed, where)


def _deleted(store: Store, changed: Changed, where: str) -> Change:
    if changed.before.in_cube:
        return lambda: store.cube(changed.name).delete(where, [changed.dataset])
    return lambda: store.table(changed.name).delete(where)


def _refused_by_tables(
    store: Store, name: str, good: list[Any], frame: MakeFrame
) -> Iterator[tuple[str, Change]]:
    def write(rows: pa.Table, mode: Any = "append", **options: Any) -> Change:
        return lambda: store.write_table(name, frame(rows), mode, **options)

    rows = table(good)
    yield "merge without a key", write(rows, "merge")
    yield "merge by an unknown key", write(rows, "merge", key=["unknown"])
    yield "merge by a key that the rows lack", write(rows.drop_columns(["k"]), "merge", key=["k"])
    yield (
        "merge of a key that comes twice",
        write(table([*good, {**good[0], "i": 7}]), "merge", key=["k"]),
    )
    yield (
        "merge of a key of floats that comes twice",
        write(
            table([{**row, "f": value} for row, value in zip(good, (0.0, -0.0, 1.5), strict=True)]),
            "merge",
            key=["f"],
        ),
    )
    yield "merge of another class", write(table(good, k=pa.float64()), "merge", key=["k"])
    yield "merge by a nested key", write(rows, "merge", key=["n"])
    yield "another layout", write(rows, "merge", key=["k"], partition_by=["b"])
    yield "append in another layout", write(rows, partition_by=["d"])
    yield "an index of nested values", write(rows, indexes=["n"])
    yield "an index of an unknown column", write(rows, indexes=["unknown"])
    yield "an unknown mode", write(rows, "replace")


def _refused_by_cubes(
    store: Store, changed: Changed, good: list[Any], frame: MakeFrame
) -> Iterator[tuple[str, Change]]:
    name, dataset = changed.name, changed.dataset
    rows = table(good)

    def cube() -> Any:
        return store.cube(name)

    yield "append to an unknown dataset", lambda: cube().append({"unknown": frame(rows)})
    yield "extend by what is there", lambda: cube().extend({dataset: frame(rows)})
    yield "extend by columns of another dataset", lambda: cube().extend({"more": frame(rows)})
    yield (
        "extend without a dimension",
        lambda: cube().extend({"more": frame(rows.select(["s"]).rename_columns(["more"]))}),
    )
    yield (
        "update where a column is unknown",
        lambda: cube().update({dataset: frame(rows)}, "unknown = 1"),
    )
    yield (
        "update of another class",
        lambda: cube().update({dataset: frame(table(good, i=pa.float64()))}, "k > 3"),
    )
    yield (
        "update by rows that repeat cells that stay",
        lambda: cube().update(
            {dataset: frame(table([{**good[0], "k": 12}, {**good[0], "k": 12}]))}, "k = 99"
        ),
    )
    yield "remove partitions by payload", lambda: cube().remove_partitions("s = ''")
    yield (
        "delete where the seed dataset lacks a column",
        lambda: cube().delete("x = 1 and s = ''", [OTHER, dataset]),
    )
    yield "drop the seed dataset", lambda: cube().drop(cube().datasets[0])
    yield "drop an unknown dataset", lambda: cube().drop("unknown")
    yield (
        "build what is there",
        lambda: store.build(name, {"seed": frame(rows)}, dimension_columns=["k"]),
    )
