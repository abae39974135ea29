"""States in a store, made and changed by the library's public face alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
        self.before = before
        self.name = name
        self.dataset = dataset if before.in_cube else name

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
        return [*self._lines, *self._files.new_types()]

    def step(self, change: Change, names: Mapping[str, str] | None = None) -> list[str]:
        """Make a change; gives what it says, counts, the rows that go and come, and types."""
        version = self.relation.version
        try:
            said = change()
            lines = said if isinstance(said, list) else []
        except KtkError as error:
            lines = [type(error).__name__, *message_lines(str(error), names)]
        return [*lines, *self.after(version)]

    def after(self, version: int) -> list[str]:
        """What the commits since a version have changed, since the last call of this or `start`."""
        relation = self.relation
        commits = [entry for entry in relation.history(3) if entry["version"] > version]
        lines = [line for entry in reversed(commits) for line in _commit_lines(entry)]
        before, self._lines = self._lines, self.rows()
        return [
            *(lines or ["nothing is committed"]),
            *change_lines(before, self._lines),
            *self._files.new_types(),
        ]


def _commit_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    for change in entry["changes"]:
        yield (
            f"commit: {change['operation']} {change['dataset']}, rows {change['rows_delta']:+} = "
            f"{change['rows']}, files {change['files_delta']:+} = {change['files']}"
        )


def table_changes(
    store: Store, changed: Changed, frame: MakeFrame
) -> Iterator[tuple[str, Change]]:
    """Every way to change a table, in an order that its seed draws, with a text of each."""
    before, name = changed.before, changed.name

    def write(step: int, mode: Any, key: tuple[str, ...] = ()) -> Change:
        return lambda: store.write_table(name, frame(table(new_rows(before, step))), mode, key=key)

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
        (f"delete where {fifth} again", delete(fifth)),
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

