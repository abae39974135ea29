"""Which rows differ between two versions, and what is read to find out."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    DatasetNotFoundError,
    LocalEngineError,
    QueryError,
    VersionGoneError,
)
from tests.support.changes import Constraint, Retention, run_cleanup
from tests.support.committed import scope_of
from tests.support.stores import LocalStore

NAN = math.nan
UPDATE = ("update_preimage", "update_postimage")


class CountedStore(LocalStore):
    """A store that notes which data files are opened."""

    def __init__(self, root):
        super().__init__(root)
        self.opened = []

    def note(self, key):
        if key.endswith(".parquet") and "/table/" in key:
            self.opened.append(key)

    def get(self, key):
        self.note(key)
        return super().get(key)

    def get_range(self, key, start, length):
        self.note(key)
        return super().get_range(key, start, length)

    def open_read(self, key, size=None, ranges=()):
        self.note(key)
        return super().open_read(key, size, ranges)


@pytest.fixture
def counted(tmp_path):
    return CountedStore(tmp_path / "counted")


@pytest.fixture
def face(counted):
    return Store.of(counted)


def kinds(changes, *names):
    """Rows as texts, so that NaN equals NaN, with what became of them."""
    rows = changes.to_arrow().select(["_change_type", *names]).to_pylist()
    return [tuple(str(value) for value in row.values()) for row in rows]


def versions(face, *tables, **layout):
    for table in tables:
        face.write_table("t", table, "overwrite", **layout)
    return face.table("t")


@pytest.mark.parametrize(
    ("t", "old", "new", "differ"),
    [
        (pa.float64(), [NAN, 0.0, -0.0, None, 1.0], [NAN, -0.0, -0.0, NAN, 1.0], [1, 3]),
        (pa.float32(), [NAN, 0.0], [-NAN, 0.0], []),
        (pa.string(), ["", None, "ä", "x"], [None, "", "a\u0308", "x"], [0, 1, 2]),
        (pa.binary(), [b"", b"\x00", None], [b"", b"", None], [1]),
        (pa.bool_(), [True, None, False], [True, False, None], [1, 2]),
        (pa.decimal128(5, 2), [Decimal("1.00"), None], [Decimal("1.00"), Decimal("0.00")], [1]),
        (pa.null(), [None, None], [None, None], []),
        (pa.uint64(), [2**64 - 1, 0], [2**64 - 2, 0], [0]),
        (
            pa.list_(pa.float64()),
            [[], None, [0.0], [NAN], [None], [1.0, 2.0], None],
            [None, [], [-0.0], [NAN], [], [2.0, 1.0], None],
            [0, 1, 2, 4, 5],
        ),
        (
            pa.struct({"a": pa.float64(), "b": pa.list_(pa.string())}),
            [None, {"a": None, "b": None}, {"a": 0.0, "b": ["x"]}, {"a": NAN, "b": []}],
            [{"a": None, "b": None}, None, {"a": -0.0, "b": ["x"]}, {"a": NAN, "b": []}],
            [0, 1, 2],
        ),
        (
            pa.map_(pa.string(), pa.float64()),
            [[("a", 1.0), ("b", NAN)], [], None, [("a", 0.0)], [("a", 1.0)]],
            [[("b", NAN), ("a", 1.0)], None, [], [("a", -0.0)], [("b", 1.0)]],
            [1, 2, 3, 4],
        ),
        (
            pa.map_(pa.string(), pa.list_(pa.struct({"x": pa.int64()}))),
            [[("a", [{"x": 1}]), ("b", None)], [("a", [None])]],
            [[("b", None), ("a", [{"x": 1}])], [("a", [{"x": None}])]],
            [1],
        ),
    ],
    ids=str,
)
def test_values_are_equal_if_they_are_stored_alike(face, t, old, new, differ):
    before, after = (
        pa.table({"k": list(range(len(values))), "v": pa.array(values, t)}) for values in (old, new)
    )
    table = versions(face, before, after)
    found = table.changes(1, key=["k"]).to_arrow()
    assert found["k"].to_pylist() == [k for k in differ for _ in range(2)]
    assert found["_change_type"].to_pylist() == ["update_preimage", "update_postimage"] * len(
        differ
    )
    whole = table.changes(1).to_arrow()  # as a multiset of rows
    assert sorted(whole["k"].to_pylist()) == [k for k in differ for _ in range(2)]
    assert set(whole["_change_type"].to_pylist()) <= {"insert", "delete"}


def test_keys_with_null_or_repeated_are_compared_as_whole_rows(face):
    before = pa.table({"k": [1, 2, 2, None, None, 5, None], "v": [1, 2, 3, 4, 5, 6, 9]})
    after = pa.table({"k": [1, 2, 2, None, 4, 5, 5], "v": [0, 2, 8, 4, 5, 6, 7]})
    found = kinds(versions(face, before, after).changes(1, key=["k"]), "k", "v")
    assert sorted(found) == [
        ("delete", "2", "3"), ("delete", "None", "5"), ("delete", "None", "9"),
        ("insert", "2", "8"), ("insert", "4", "5"), ("insert", "5", "7"),
        ("update_postimage", "1", "0"), ("update_preimage", "1", "1"),
    ]  # fmt: skip


def test_a_key_that_an_unchanged_file_has_too_is_repeated(face):
    face.write_table("t", pa.table({"p": ["a", "b"], "k": [1, 1], "v": [1, 2]}), partition_by=["p"])
    face.write_table("t", pa.table({"p": ["c"], "k": [2], "v": [3]}))
    table = face.table("t").delete("p <> 'a'")
    table = face.write_table("t", pa.table({"p": ["b", "c"], "k": [1, 2], "v": [5, 6]}))
    assert sorted(kinds(table.changes(2, key=["k"]), "k", "v")) == [
        ("delete", "1", "2"), ("insert", "1", "5"),
        ("update_postimage", "2", "6"), ("update_preimage", "2", "3"),
    ]  # fmt: skip


def test_a_repeated_row_counts_as_often_as_it_occurs(face):
    before, after = pa.table({"v": [1, 1, 1, 2]}), pa.table({"v": [1, 2, 2, 3]})
    found = sorted(kinds(versions(face, before, after).changes(1), "v"))
    assert found == [("delete", "1"), ("delete", "1"), ("insert", "2"), ("insert", "3")]


def test_a_verified_key_makes_updates(face):
    table = versions(
        face, pa.table({"k": [1, 2], "v": [1, 2]}), pa.table({"k": [1, 2], "v": [1, 3]})
    )
    said = {"constraints": [Constraint("primary_key", ("k",)).as_dict()]}  # as Spark verifies them
    for version in (older := table.at(1), table):
        snapshot = replace(version._loaded.snapshot, properties=said)
        version._loaded = replace(version._loaded, snapshot=snapshot)
    changes = table.changes(older)
    assert kinds(changes, "k", "v") == [(UPDATE[0], "2", "2"), (UPDATE[1], "2", "3")]
    assert changes._found.is_unique


def test_columns_that_are_new_gone_renamed_or_of_another_class(face):
    before = pa.table({"k": [1, 2], "a": [1, 2], "b": ["x", "y"], "c": ["1", "2"]})
    after = pa.table({"k": [1, 2], "a": [1, 2], "c": [1, 2], "d": pa.array([None, "new"])})
    changes = versions(face, before, after).changes(1, key=["k"])
    assert changes._found.notes == (
        "column `b` is gone",
        "column `c` was string and is now signed integer, so its values count as new",
        "column `d` is new",
    )
    assert kinds(changes, "k", "a", "c", "d") == [
        ("update_preimage", "1", "1", "None", "None"),
        ("update_postimage", "1", "1", "1", "None"),
        ("update_preimage", "2", "2", "None", "None"),
        ("update_postimage", "2", "2", "2", "new"),
    ]
    renamed = face.table("t").alter(rename={"a": "e"})
    changes = renamed.changes(2, key=["k"])
    assert changes._found.notes == ("column `a` is gone", "column `e` is new")
    assert len(kinds(changes)) == 4
    assert kinds(renamed.changes(2, columns=["d"], key=["k"])) == []


def test_widened_columns_are_compared_as_the_wider_class(face):
    def rows(values, t):
        return pa.table({"k": [1, 2], "v": pa.array(values, t)})

    table = versions(
        face,
        rows([Decimal("1.00"), Decimal("2.50")], pa.decimal128(5, 2)),
        rows([Decimal("1.0000"), Decimal("2.5001")], pa.decimal128(9, 4)),
        rows([1, 2], pa.int64()),
        rows([Decimal("1.0"), Decimal("3.0")], pa.decimal128(5, 1)),
    )
    of = {pair: table.changes(pair[0], pair[1], key=["k"]) for pair in ((1, 2), (3, 4), (2, 1))}
    assert [len(kinds(item)) for item in of.values()] == [2, 2, 2]
    assert of[1, 2]._found.notes == ("column `v` was decimal(scale 2) and is now decimal(scale 4)",)
    same = versions(face, rows([1, 2], pa.int8()), rows([1, 2], pa.int64()))
    assert kinds(same.changes(same.version - 1, key=["k"])) == []
    empty = versions(face, rows([None, None], pa.null()), rows([None, 2], pa.int64()))
    assert len(kinds(empty.changes(empty.version - 1, key=["k"]))) == 2


def months(count=36, rows=4):
    return pa.table(
        {
            "month": np.repeat(np.arange(count), rows),
            "day": np.tile(np.arange(rows), count),
            "v": np.arange(count * rows),
        }
    )


def test_one_changed_partition_of_36_reads_one(face, counted):
    face.build("c", months(), dimension_columns=["day"], partition_by=["month"], seed="s")
    more = months().rename_columns(["month", "day", "w"])
    cube = face.cube("c").extend({"e": more})
    new = pa.table({"month": [7], "day": [3], "w": [-1]})
    changed = cube.update({"e": pa.concat_tables([more.slice(28, 3), new])}, "month = 7")
    for table in (changed, face.cube("c").delete("month = 7 and day = 1")):
        counted.opened.clear()
        found = table.changes(table.version - 1).difference()
        assert (found.added, found.removed + found.changed) == (0, 1)
        folders = {key.rpartition("/")[0].rpartition("/")[2] for key in counted.opened}
        assert folders == {"month=7"}


def test_what_did_not_change_opens_nothing(face, counted, tmp_path):
    face.build("c", months(), dimension_columns=["day"], partition_by=["month"], seed="s")
    other = CountedStore(tmp_path / "other")
    face.cube("c").copy_to(Store.of(other))
    for opened in (counted.opened, other.opened):
        opened.clear()
    found = face.cube("c").changes(Store.of(other).cube("c"))
    assert found.difference().is_empty
    assert (counted.opened, other.opened) == ([], [])
    assert found.explain().endswith("no file differs")


def test_overlays_that_come_and_go(face):
    seed = pa.table({"d": [1, 2, 3], "v": ["a", "b", "c"]})
    face.build("c", seed, dimension_columns=["d"], seed="s")
    over = face.cube("c").append({"s": pa.table({"d": [2, 3], "v": ["B", "c"]})})
    assert kinds(over.changes(1), "d", "v") == [
        ("update_preimage", "2", "b"), ("update_postimage", "2", "B"),
    ]  # fmt: skip
    assert kinds(over.compact().changes(2)) == []
    back = over.restore(1)
    assert kinds(back.changes(2), "v") == [("update_preimage", "B"), ("update_postimage", "b")]


def test_a_cell_that_comes_brings_what_other_datasets_have_of_it(face):
    seed = pa.table({"d": [1, 2], "v": ["a", "b"]})
    face.build(
        "c",
        {"s": seed, "e": pa.table({"d": [1, 2, 3], "w": [1, 2, 3]})},
        dimension_columns=["d"],
        seed="s",
    )
    more = face.cube("c").append({"s": pa.table({"d": [3], "v": ["c"]})})
    assert kinds(more.changes(1), "d", "v", "w") == [("insert", "3", "c", "3")]
    dropped = more.drop("e")
    assert kinds(dropped.changes(2)) == []
    assert dropped.changes(2)._found.notes == ("column `w` is gone",)
    assert kinds(more.changes(dropped), "w") == [
        (kind, w) for at in (1, 2, 3)
        for kind, w in (("update_preimage", "None"), ("update_postimage", str(at)))
    ]  # fmt: skip


def test_memory_is_bounded(face):
    chance = np.random.default_rng(1)
    rows = pa.table(
        {"d": np.arange(200_000), "v": chance.random(200_000), "t": ["x" * 20] * 200_000}
    )
    face.build("c", rows, dimension_columns=["d"], seed="s")
    other = rows.set_column(1, "v", pa.array(np.where(rows["d"].to_numpy() % 1000, rows["v"], 0.0)))
    cube = face.cube("c").update({"s": other})
    face.write_table("t", rows.take(pa.array(chance.permutation(200_000))))
    table = face.write_table("t", other.take(pa.array(chance.permutation(200_000))), "overwrite")
    for changes in (cube.changes(1), table.changes(1, key=["d"])):
        found = changes.difference(memory_limit="8MB")
        assert (found.added, found.removed, found.changed) == (0, 0, 200)
    found = table.changes(1).difference(memory_limit="8MB")
    assert (found.added, found.removed, found.changed) == (200, 200, 0)
    one = pa.table({"d": ["same"] * 100_000})
    many = versions(face, one, pa.concat_tables([one, one]))
    with pytest.raises(LocalEngineError, match="rows with the same key, or without one"):
        many.changes(many.version - 1).to_arrow(memory_limit="1MB")


def test_versions_that_are_gone_say_which_are_left(store):
    face = Store.of(store)
    for value in range(4):
        face.write_table("t", pa.table({"v": [value]}), "overwrite")
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 2))
    with pytest.raises(VersionGoneError, match=r"Versions 3 to \d+ are left"):
        face.table("t").changes(1)


def test_what_cannot_be_compared_is_said_in_one_sentence(face):
    face.write_table("t", pa.table({"k": [1], "n": [[1]]}))
    table = face.table("t")
    with pytest.raises(QueryError, match="did you mean `k`"):
        table.changes(1, key=["kk"])
    with pytest.raises(QueryError, match="a key has no nested columns: n"):
        table.changes(1, key=["n"])
    with pytest.raises(QueryError, match="has no column `w`"):
        table.changes(1, columns=["w"])
    face.build("c", pa.table({"d": [1], "p": [1]}), dimension_columns=["d"], seed="s")
    with pytest.raises(QueryError, match="one is a cube, the other a table"):
        face.cube("c").changes(table)
    face.build(
        "c",
        pa.table({"d": [1], "e": [2]}),
        dimension_columns=["d", "e"],
        seed="s",
        overwrite=True,
    )
    with pytest.raises(QueryError, match=r"addressed by d, and now by d, e.*can be compared"):
        face.cube("c").changes(1)
    with pytest.raises(QueryError, match="has a key already: d, e"):
        face.cube("c").changes(2, key=["d"])
    face.drop("c")
    with pytest.raises(DatasetNotFoundError, match="it was removed"):
        face.cube("c").changes(1)


def test_a_difference_for_people_and_programs(face):
    table = versions(
        face,
        pa.table({"k": [1, 2, 3], "v": ["a", "b|`x`", "c"], "w": [1.5, 2.5, 3.5]}),
        pa.table({"k": [2, 3, 4], "v": ["B\n@all", "c", "d"], "w": [2.5, NAN, 4.5]}),
    )
    found = table.changes(1, key=["k"]).difference()
    assert list(found.lines())[1:] == [
        "  1 row added, 1 row removed, 2 rows changed",
        "  stored rows: 3",
        "  files: 1",
        *[line for line in found.lines() if line.startswith("  bytes")],
        "  `v` differs in 1 row",
        "    k=2: b|`x` -> B\n@all",
        "  `w` differs in 1 row",
        "    k=3: 3.5 -> nan",
        "  added: k=4, v=d, w=4.5",
        "  removed: k=1, v=a, w=1.5",
    ]
    told = json.loads(json.dumps(found.as_dict()))
    assert told["before"]["stored_rows"] == told["after"]["stored_rows"] == 3
    assert told["columns"]["v"] == {
        "values": 1,
        "examples": [{"k": 2, "before": "b|`x`", "after": "B\n@all"}],
    }
    shown = "\n".join(found.markdown())
    assert "**1 row added, 1 row removed, 2 rows changed**" in shown
    assert "`` b\\|`x` → B @all (k=2) ``" in shown


def test_a_share_of_the_files_is_said_first(face):
    table = versions(face, pa.table({"k": [1, 2]}), pa.table({"k": [1, 3]}))
    assert "more than half of all rows" in table.changes(1).explain()
    shutil.rmtree(face._store.root / "t" / "table")
    assert "2 files of" in table.changes(1).explain()


def test_other_libraries_take_changes_as_they_are(face):
    table = versions(face, pa.table({"k": [1, 2]}), pa.table({"k": [1, 3]}))
    changes = table.changes(1)
    expected = changes.to_arrow()
    assert pa.table(changes).equals(expected)
    assert changes.to_pandas()["k"].tolist() == expected["k"].to_pylist()
    assert changes.to_polars()["k"].to_list() == expected["k"].to_pylist()
    assert changes.to_duckdb().fetchall() == [tuple(r.values()) for r in expected.to_pylist()]


@pytest.mark.parametrize("columns", [None, ["v"], ["t", "v"], []])
@pytest.mark.parametrize("also", [False, True])
def test_rows_that_begin_or_cease_to_fulfil_a_condition_on_another_dataset(tmp_path, columns, also):
    rows = {"x": [1, 2, 3]}
    more = pa.table({**rows, "t": ["a", "b", "b"]})
    cube = Store(tmp_path).build(
        "c",
        {"cells": pa.table({**rows, "v": [1, 2, 3]}), "more": more},
        seed="cells",
        dimension_columns=["x"],
    )
    changed = {"more": pa.table({"x": [1, 2], "t": ["b", "a"]})}
    if also:  # a file of the compared column's dataset differs, too
        changed["cells"] = pa.table({"x": [3], "v": [4]})
    found = cube.append(changed).changes(1, columns=columns, where="t = 'a'").to_arrow()
    assert sorted(
        zip(*(found[name].to_pylist() for name in ("_change_type", "x")), strict=True)
    ) == [
        ("delete", 1),
        ("insert", 2),
    ]


def test_long_values_are_cut_where_people_read_them(face):
    """A comment on a pull request takes 65,536 characters."""
    vectors = [
        pa.array([[n + i / 7 for i in range(768)]] * 3, pa.list_(pa.float32())) for n in (0, 1)
    ]
    table = versions(face, *(pa.table({"k": [1, 2, 3], "v": item}) for item in vectors))
    found = table.changes(1, key=["k"]).difference()
    assert max(map(len, found.lines())) < 600
    assert len("\n".join(found.markdown())) < 3000
    assert len(found.as_dict()["columns"]["v"]["examples"][0]["after"]) == 768


@pytest.mark.parametrize("after", [None, True, 1.0, timedelta(days=1), object()])
def test_what_is_no_version_is_refused(face, after):
    table = versions(face, pa.table({"k": [1]}), pa.table({"k": [2]}))
    if after is None:
        assert table.changes(table.at(timestamp="2999-01-01")).to_arrow().num_rows == 0
        return
    with pytest.raises(QueryError, match="A version is a number or a tag"):
        table.changes(after)


def test_long_values_are_cut_where_they_differ(face):
    texts = ["a" * 500 + end + "z" * 500 for end in ("1", "2")]
    table = versions(face, *(pa.table({"k": [1], "v": [text]}) for text in texts))
    (line,) = (
        i for i in table.changes(1, key=["k"]).difference().lines() if "->" in i and "k=1" in i
    )
    shown = [f"…{'a' * 20}{end}{'z' * 179}…" for end in ("1", "2")]
    assert line == f"    k=1: {' -> '.join(shown)}"
