"""Makes a warehouse with every feature of the format, and several versions of each relation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine import Store
from ktk_engine.log.change.reads import Read, Reads  # deep: of a note
from ktk_engine.log.computed import versions_read  # deep: of a note
from ktk_engine.log.intent import write_intent  # deep: of a writer that died
from ktk_engine.log.pending_commit import CommitStatus  # deep: of a writer that died
from ktk_engine.warehouse.actor import Actor  # deep: who stored a view
from tests.support.changes import (
    ChangeSet,
    Constraint,
    DatasetChange,
    PendingCommit,
    Relations,
    WriteRequest,
    build,
    comment_on,
    commit,
    plan_adoption,
    run_adoption,
    undrop,
)
from tests.support.committed import Computed, DbtNode, Owner, resolve, scope_of, write_computed
from tests.support.dataset_builder import append_as_kartothek, write_plain
from tests.support.documents import (
    Comments,
    CubeSpecification,
    ViewDocument,
    add_view,
    common_metadata_key,
    load_document,
)
from tests.support.stores import LocalStore, Warehouse
from tests.support.tiny_bounds import tiny_bounds

SCHEMA, SISTER = "main", "sister"
VIEWS = ("v", "whole", "both")
_DAY = date(2024, 2, 29)
_OLD = CubeSpecification("old", ("x",), ("p",), "seed")
# Every type that a column may have, narrow and wide, with values at its ends.
_TYPES: dict[str, tuple[pa.DataType, list[object]]] = {
    "i8": (pa.int8(), [-128, 127]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "u16": (pa.uint16(), [0, 65_535]),
    "u64": (pa.uint64(), [0, 2**64 - 1]),
    "f16": (pa.float16(), [0.5, -2.0]),
    "f32": (pa.float32(), [0.5, float("inf")]),
    "f64": (pa.float64(), [float("nan"), -0.0]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "é/日本%"]),
    "long_text": (pa.large_string(), ["x" * 100, "\n"]),
    "word": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    "bytes": (pa.binary(), [b"", b"\x00\xff"]),
    "four_bytes": (pa.binary(4), [b"abcd", b"\x00\x00\x00\x00"]),
    "money": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("9999999.99")]),
    "wide": (pa.decimal128(38, 10), [Decimal("0E-10"), Decimal(10**27)]),
    "day": (pa.date32(), [_DAY, date(1, 1, 1)]),
    "day64": (pa.date64(), [_DAY, date(9999, 12, 31)]),
    "clock": (pa.time64("us"), [time(0), time(23, 59, 59, 999_999)]),
    "clock32": (pa.time32("s"), [time(0), time(12, 30)]),
    "at": (pa.timestamp("us"), [datetime(2024, 2, 29, 12), datetime(1969, 12, 31, 23, 59, 59)]),
    "at_ms": (pa.timestamp("ms"), [datetime(2024, 2, 29), datetime(1900, 1, 1)]),
    "instant": (pa.timestamp("us", "UTC"), [datetime(2024, 2, 29, tzinfo=UTC)] * 2),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), [datetime(2024, 7, 1, tzinfo=UTC)] * 2),
    "nothing": (pa.null(), [None, None]),
    "list": (pa.list_(pa.int32()), [[], [1, None]]),
    "fixed_list": (pa.list_(pa.float32(), 2), [[0.5, 1.5], [None, 2.0]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("k", 1), ("l", None)]]),
    "struct": (
        pa.struct({"b": pa.int16(), "a": pa.list_(pa.struct({"z": pa.string()}))}),
        [{"b": 1, "a": [{"z": "é"}, None]}, {"b": None, "a": None}],
    ),
    "id": (pa.uuid(), [UUID(int=0).bytes, UUID(int=1).bytes]),
}


def make_store(root: Path) -> None:
    """Make the warehouse; its schemas are `SCHEMA` and `SISTER`."""
    warehouse = Warehouse(root)
    store, sister = (warehouse.create_schema(name) for name in (SCHEMA, SISTER))
    assert isinstance(store, LocalStore)
    face = Store.of(store)
    _cube(face, "c")
    with tiny_bounds():  # what large datasets have: segments, and entries that list no files
        _cube(face, "tiny")
        _table(face, "many")
    _unusual_cells(face)
    _table(face, "t")
    _types(face)
    _constraints(store, face)
    _published(face)
    _of_kartothek(store, face)
    _names(store, face, Store.of(sister))
    _views(warehouse, store)
    _notes(store)
    _cleaned(face)


def _cells(*cells: tuple[str, int, int], value: float = 0.5) -> pa.Table:
    """Rows of a seed dataset: partition, dimension `x`, and the day of February."""
    return pa.table(
        {
            "p": [p for p, _, _ in cells],
            "x": [x for _, x, _ in cells],
            "day": [date(2024, 2, day) for _, _, day in cells],
            "v": [value + x for _, x, _ in cells],
            "i": [f"i{x % 2}" for _, x, _ in cells],
        }
    )


def _cube(face: Store, name: str) -> None:
    """A cube with enrichments of fewer dimensions, changed by every verb, one version each."""
    cells = _cells(("a b", 1, 1), ("a b", 2, 1), ("é=%/", 1, 2), ("é=%/", 3, 2), ("z", 5, 1))
    more = cells.select(["p", "x", "day"]).append_column("w", pa.array([1, 2, 3, 4, 5]))
    flat = pa.table({"x": [1, 2, 9], "flat": [Decimal("1.10"), None, Decimal("9.90")]})
    days = pa.table({"day": [date(2024, 2, 1)], "kind": ["k"], "text": [["a", None]]})
    datasets = {"seed": cells, "more": more, "flat": flat}
    cube = face.build(name, datasets, dimension_columns=["x", "day"], partition_by=["p"],
                      indexes=["i"], suppress_index_on=["day"],
                      metadata={"seed": {"note": {"é": [1, None]}}})  # fmt: skip
    cube = cube.extend({"days": days}, partition_on={"days": ["kind"]})
    cube.tag("first")
    again = _cells(("a b", 1, 1), ("a b", 7, 3), ("z", 6, 1), value=100.5)
    cube = face.cube(name).append({"seed": again})  # overlays the cell (a b, 1, 1)
    cube = cube.append({"more": again.select(["p", "x", "day"]).append_column("w", again["x"])})
    cube = cube.delete("x = 3")
    cube = cube.update({"flat": pa.table({"x": [2], "flat": [Decimal("2.20")]})}, "x = 2")
    cube = cube.delete("v > 105 and i = 'i0'")
    cube = cube.remove_partitions("p = 'é=%/'")
    cube = cube.alter("more", add={"later": "decimal(10, 2)"}, rename={"w": "weight"})
    new = {"p": ["new"], "x": [8], "day": [_DAY], "weight": [8], "later": [Decimal("8.00")]}
    cube = cube.append({"more": pa.table(new)})
    cube = cube.append({"seed": _cells(("new", 8, 29))})
    cube = cube.alter("days", drop=["text"])
    with cube.transaction() as changes:
        changes.append({"seed": _cells(("a b", 9, 9))})
        changes.drop("days")
    cube = face.cube(name).index("weight", dataset="more")
    cube = cube.compact()
    cube = cube.restore(3)
    cube.drop("days")
    undrop(face._store, name, "days")
    face.cube(name).append({"seed": _cells(("z", 5, 1), value=50.5)})


def _unusual_cells(face: Store) -> None:
    """Cells of floats, bytes, bools and moments; no index on dimensions; no partition columns."""
    zone = pa.timestamp("us", "UTC")
    dimensions = {
        "f": pa.array([0.0, float("nan"), float("inf"), -1.5]),
        "b": pa.array([b"", b"\xff", b"/", b"a"]),
        "on": pa.array([True, False, True, False]),
        "at": pa.array([0, 1, 2**40, -1], zone),
    }
    rows = pa.table({**dimensions, "v": [1, 2, 3, 4]})
    more = rows.select(["f", "v"]).rename_columns(["f", "m"])
    cube = face.build("unusual", {"seed": rows, "more": more}, dimension_columns=[*dimensions],
                      index_dimensions="never")  # fmt: skip
    zero = pa.table({"f": [-0.0, float("nan")], "m": [10, 20]})
    cube.append({"more": zero})


def _table(face: Store, name: str) -> None:
    """A table that is changed by every verb of tables."""
    rows = pa.table({"p": ["a", "b", "c", "d"], "k": [1, 2, 3, 4], "v": [0.5, None, 2.5, 3.5]})
    table = face.write_table(name, rows, partition_by=["p"], indexes=["k"], clustered_by=["v"],
                             metadata={"note": "é"})  # fmt: skip
    table = face.write_table(name, rows.slice(0, 1))  # rows may come twice
    table = face.write_table(name, rows.slice(1, 1).set_column(2, "v", pa.array([20.5])), "merge",
                             key=["k"])  # fmt: skip
    table = table.delete("k = 3 or v is null")
    table = table.alter(add={"n": "struct<b: int, a: array<string>>"}, rename={"v": "value"})
    face.write_table(
        name, pa.table({"p": ["e"], "k": [5], "value": [5.5], "n": [{"a": ["x"], "b": 1}]})
    )
    face.table(name).tag("five")
    table = face.table(name).repartition()
    table = table.alter(drop=["n"], properties={"noted": [1], "note": None})
    table = table.restore("five")
    table = table.drop_index("k")
    table.compact()


def _types(face: Store) -> None:
    """All types, and types of the same classes in later files."""
    rows = pa.table({name: _array(values, t) for name, (t, values) in _TYPES.items()})
    face.write_table("types", rows)
    nulls = pa.table({name: pa.nulls(1, t) for name, (t, _) in _TYPES.items()})
    face.write_table("types", nulls)
    wider = {"i8": pa.int64(), "f32": pa.float64(), "money": pa.decimal128(20, 2)}
    wide = rows.cast(pa.schema([pa.field(f.name, wider.get(f.name, f.type)) for f in rows.schema]))
    face.write_table("types", wide.slice(0, 1))


def _array(values: list[object], t: pa.DataType) -> pa.Array:
    if isinstance(t, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(t, pa.array(values, t.storage_type))
    if pa.types.is_dictionary(t):
        return pa.array(values, t.value_type).dictionary_encode().cast(t)
    return pa.array(values, t)


def _constraints(store: LocalStore, face: Store) -> None:
    """Keys and checks, as Spark leaves them once it has verified them."""
    face.write_table("keyed", pa.table({"k": [1, 2], "name": ["a", "bb"]}))
    found = [
        Constraint("primary_key", ("k",), name="pk"),
        Constraint("not_null", ("name",)),
        Constraint("check", expression="length(name) <= 2", name="short"),
    ]

    def change(base, attempt):
        said = {"constraints": [item.as_dict() for item in found]}
        return replace(base, properties={**base.properties, **said})

    changes = (DatasetChange("keyed", "properties", change, frozenset()),)
    commit(resolve(store, scope_of("keyed")), ChangeSet(PendingCommit(), changes))


def _published(face: Store) -> None:
    """For Delta and Iceberg, and without documents for Kartothek."""
    rows = pa.table({"p": ["a", "b"], "x": [1, 2], "s": ["é", None]})
    face.write_table("shared", rows, partition_by=["p"])
    face.table("shared").publish(["delta", "iceberg"])
    face.write_table("shared", pa.table({"p": ["c"], "x": [3], "s": ["z"]}))
    face.table("shared").delete("x = 1")
    face.write_table("quiet", rows)
    face.table("quiet").publish(kartothek=False)
    face.write_table("quiet", rows.slice(0, 1))


def _of_kartothek(store: LocalStore, face: Store) -> None:
    """Datasets of other programs: plain, adopted, changed by both, and written over one of ours."""
    rows = pa.table({"p": ["a", "b"], "x": pa.array([1, 2], pa.int32()), "v": [1.5, 2.5]})
    write_plain(store, "plain", rows, ("p",), indexes=("x",))
    metadata = [_OLD.metadata(name) for name in ("seed", "more")]
    write_plain(store, "old++seed", rows, ("p",), metadata[0], ("x",))
    words = pa.table({"p": ["a"], "x": [1], "w": pa.array(["é"], pa.large_string()), "__h": [1]})
    write_plain(store, "old++more", words, ("p",), metadata[1])
    write_plain(store, "durations", words)
    _add_durations(store, "durations")
    for name in ("old", "durations"):
        run_adoption(plan_adoption(store, name))
    face.cube("old").append({"seed": rows.slice(0, 1).set_column(2, "v", pa.array([10.5]))})
    face.write_table("joint", pa.table({"a": [1, 2]}))
    append_as_kartothek(store, "joint", pa.table({"a": [3]}))
    face.write_table("joint", pa.table({"a": [4]}))
    append_as_kartothek(store, "joint", pa.table({"a": [5]}))


def _add_durations(store: LocalStore, uuid: str) -> None:
    """A column of a type without a class, which is left out."""
    schema = pq.read_schema(store.root / common_metadata_key(uuid))
    both = schema.append(pa.field("took", pa.duration("us")))
    pq.write_metadata(both.remove_metadata(), store.root / common_metadata_key(uuid))
    for key in load_document(store, uuid).partitions.values():
        rows = pq.ParquetFile(store.root / key).read()
        took = pa.array([1] * rows.num_rows, both.field("took").type)
        pq.write_table(rows.append_column("took", took), store.root / key)


def _names(store: LocalStore, face: Store, sister: Store) -> None:
    """Copied, renamed, removed and brought back."""
    face.cube("c", version=1).copy_to(sister)
    sister.cube("c").append({"flat": pa.table({"x": [9], "flat": [Decimal("0.10")]})})
    face.cube("c", version=3).copy_to(face, "before", rename={"flat": "Flat"})
    face.cube("before").rename("after")
    owner = Owner(DbtNode("model.p.flights", "p"))
    build(store, _cells(("a", 1, 1)), WriteRequest("seed", "seed", "built", ("x",), ("p",),
                                                   relation="flights", owner=owner))  # fmt: skip
    for name in ("gone", "back"):
        face.write_table(name, pa.table({"x": [1]}))
        face.drop(name)
    undrop(store, "back")


def _views(warehouse: Warehouse, store: LocalStore) -> None:
    relations, actor = Relations(warehouse), Actor({"user": "someone", "command": "frozen"})
    said = Comments("All é.", {"x": "a number"})
    text = f"select x, p from {SCHEMA}.shared where x > 1"
    relations.create_view(SCHEMA, "v", text, {"x": "bigint", "p": "string"}, actor, said, "cd" * 32)
    comment_on(store, "t", Comments("A table.", {"k": "its key"}))
    add_view(store, ViewDocument("whole", "cube", cube="c"))
    add_view(store, ViewDocument("both", "cube", cube="c", datasets=("seed", "flat"),
                                 external={"flat": SISTER}, comments=said, node="model.p.both",
                                 project="p"))  # fmt: skip


def _notes(store: LocalStore) -> None:
    """What `t` was computed from, and a writer that died."""
    state = resolve(store, scope_of("t"))
    entry = state.dataset("t").entry
    assert entry is not None
    read = versions_read(store, [Reads((Read(resolve(store, scope_of("c++seed")), "c++seed"),))])
    work, unknown = {"sql": "ab" * 32}, {"date 'today'": "line 7"}
    time_ = datetime(2024, 2, 29, tzinfo=UTC)
    note = Computed(entry.version, entry.commit, time_, work, read, unknown)
    write_computed(store, state.scope, "t", note)
    died = PendingCommit("d" * 32)
    with write_intent(store, state.scope, died, "append to t"):
        died.status = CommitStatus.UNKNOWN


def _cleaned(face: Store) -> None:
    """A table whose first versions a clean-up has deleted, apart from a tagged one."""
    for number in range(5):
        mode = "append" if number % 2 else "overwrite"
        face.write_table("cleaned", pa.table({"x": [number]}), mode)
        if number == 1:
            face.table("cleaned").tag("kept")
    face.cleanup("cleaned", timedelta(0), keep_versions=2, delete=True)
