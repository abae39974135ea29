"""Queries that are prepared once and asked with many values give the rows of plain queries."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConditionError, FormatError, KtkError, QueryError
from ktk_engine.files import footers  # deep: counts footers that are parsed

ROWS = 60
NAMES = ["L", "d", "P", "s", "t", "f", "v"]
VECTOR = pa.list_(pa.float32(), 2)
DAYS = [date(2024, 1, 1) + timedelta(day) for day in range(ROWS)]
TEXTS = [None if n % 7 == 0 else f"t{n % 10}" for n in range(ROWS)]


def rows_of(first, stop, shift=0.0):
    numbers = np.arange(first, stop)
    cells = {"P": numbers % 3, "L": numbers}
    seed = {**cells, "s": TEXTS[first:stop], "t": numbers % 11, "d": DAYS[first:stop]}
    floats = pa.array([None if n % 5 == 0 else n + shift for n in numbers], pa.float32())
    payload = {**cells, "f": floats, "v": pa.array([[n, 1.0] for n in numbers], VECTOR)}
    return {"seed": pa.table(seed), "e": pa.table(payload).filter(pa.array(numbers % 4 != 0))}


def built(folder, *, changed=True):
    """A cube whose enrichment lacks cells; changed ones have overlays and lost rows."""
    store = Store(folder)
    cube = store.build(
        "k", rows_of(0, ROWS), seed="seed", dimension_columns=["L"], partition_by=["P"],
        indexes=["t"],
    )  # fmt: skip
    if changed:
        cube = cube.append(rows_of(10, 20, 0.5)).append({"e": rows_of(15, 40, 0.25)["e"]})
        cube = cube.delete("L between 30 and 33").delete("f > 55", datasets=["e"])
    return cube


def number(chance):
    return chance.choice([chance.randrange(ROWS), -1, ROWS + 5, 2**40, np.int64(7)])


def text(chance):
    return chance.choice(["t1", "t9", "", "nobody", "' or true or s = '", "t1' --", "%"])


ASKED = {
    "L = :a": lambda chance: {"a": number(chance)},
    "P = :p and L = :a": lambda chance: {"a": number(chance), "p": chance.randrange(4)},
    "L in (:a)": lambda chance: {"a": [number(chance) for _ in range(chance.randrange(5))]},
    "L between :a and :b": lambda chance: {"a": number(chance), "b": number(chance)},
    "t = :a": lambda chance: {"a": chance.choice([3, 10, 11])},
    "s = :a": lambda chance: {"a": text(chance)},
    "s <=> :a": lambda chance: {"a": chance.choice([None, "t3"])},
    "s in (:a) or L = :b": lambda chance: {"a": ["t2", text(chance)], "b": number(chance)},
    "s like :a and not f > :b": lambda chance: {"a": text(chance) + "%", "b": 9.5},
    "f >= :a": lambda chance: {"a": chance.choice([10.5, 30, -1.0])},
    "d = :a": lambda chance: {"a": chance.choice([DAYS[5], str(DAYS[6]), date(1999, 1, 1)])},
    "d > :a and f is null": lambda chance: {"a": DAYS[chance.randrange(ROWS)]},
}


@pytest.mark.parametrize("types", ["class", "stored"])
@pytest.mark.parametrize("where", ASKED)
def test_rows_are_those_of_plain_queries(tmp_path, where, types):
    cube, chance = built(tmp_path), random.Random(where)
    prepared = cube.prepare(NAMES, where, types=types)
    for _ in range(12):
        values = ASKED[where](chance)
        known = cube.query(NAMES, where, parameters=values, types=types)
        found = prepared(**values)
        assert found.explain() == known.explain()
        assert found.to_arrow().equals(known.to_arrow())
        assert found.count() == known.count()


def test_any_columns_a_limit_and_tables(tmp_path):
    cube = built(tmp_path)
    for columns in (None, ["v"], ["f", "L"]):
        found = cube.prepare(columns, "s = :s", limit=2)(s="t1")
        assert found.to_arrow().equals(
            cube.query(columns, "s = :s", limit=2, parameters={"s": "t1"}).to_arrow()
        )
    table = Store(tmp_path).write_table("t", rows_of(0, ROWS)["seed"], partition_by=["P"])
    table = table.delete("L = 7")
    prepared = table.prepare(["L", "s"], "P = :p and L in (:keys)")
    rows = prepared(p=1, keys=[1, 2, 4, 7]).to_arrow().sort_by("L")
    assert rows.to_pylist() == [{"L": 1, "s": "t1"}, {"L": 4, "s": "t4"}]
    assert prepared(p=2, keys=pa.array([], pa.int64())).count() == 0


def test_it_keeps_its_version_and_moves_with_at(tmp_path):
    cube = built(tmp_path, changed=False)
    prepared = cube.prepare(["f"], "L = :key")
    cube.update({"e": rows_of(1, 2, 0.5)["e"]}, "L = 1").alter("e", add={"new": "double"})
    for _ in range(2):
        assert prepared(key=1).to_arrow()["f"].to_pylist() == [1.0]
    newest = prepared.at()
    assert newest(key=1).to_arrow()["f"].to_pylist() == [1.5]
    assert (prepared.version, newest.version, newest.at(1).version) == (1, 3, 1)
    assert "L = :key" in repr(newest) and "version=3" in repr(newest)
    cube.at().alter("e", rename={"f": "g"})
    with pytest.raises(QueryError, match="no column `f`"):
        prepared.at()


REFUSED = {
    "an unknown column": ("Q = :a", {}, "Unknown column `Q`"),
    "one like another": ("ff = :a", {}, "did you mean `f`"),
    "no condition": ("L =", {}, "not a condition"),
    "a name of SQL": ("current_date = :a", {"a": 1}, "needs backticks: `current_date`"),
    "another class": ("L = :a", {"a": "7"}, "`L` is of class signed integer"),
    "a truth": ("L = :a", {"a": True}, "cannot be compared with"),
    "null": ("L = :a", {"a": None}, "use `is null`"),
    "a list for one": ("L = :a", {"a": [1, 2]}, r"in \(:a\)"),
    "no value": ("L = :a", {}, "`:a` has no value"),
    "a further value": ("L = :a", {"a": 1, "b": 2}, "does not name the parameter `:b`"),
    "a column as a value": ("L = :a and s = 'x'", {"a": "s"}, "of class signed integer"),
    "two columns": ("L = P", {}, "compares two columns"),
}


@pytest.mark.parametrize(("where", "values", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(tmp_path, where, values, said):
    cube = built(tmp_path, changed=False).alter("e", add={"current_date": "int"})
    with pytest.raises(ConditionError, match=said) as plain:
        cube.query(["f"], where, parameters=values)
    with pytest.raises(ConditionError) as error:
        cube.prepare(["f"], where)(**values)
    assert str(error.value) == str(plain.value)


def test_what_is_refused_before_values_are_known(tmp_path):
    cube = built(tmp_path, changed=False)
    for columns, where, types, kind, said in (
        (["g"], "L = :a", "class", QueryError, "no column `g`"),
        (["f"], "L = :a", "files", QueryError, "no types 'files'"),
        (["f"], "nothing = :a", "class", ConditionError, "Unknown column"),
        (["f"], None, "class", ConditionError, "prepare needs a condition as SQL text"),
    ):
        with pytest.raises(kind, match=said):
            cube.prepare(columns, where, types=types)
    with pytest.raises(QueryError, match="limit"):
        cube.prepare(["f"], "L = :a", limit=-1)


def test_footers_are_parsed_once_and_what_is_kept_is_bounded(tmp_path, monkeypatch):
    parsed, parse = [], footers.parse_footer

    def counted(store, key, tail):
        parsed.append(key)
        return parse(store, key, tail)

    monkeypatch.setattr(footers, "parse_footer", counted)
    prepared = built(tmp_path).prepare(NAMES, "L = :key")
    rows = [prepared(key=key).to_arrow() for key in range(ROWS)]
    assert parsed and len(parsed) == len(set(parsed))
    monkeypatch.setattr(footers, "_LARGEST_OPENED", 1)
    few = Store(tmp_path).cube("k").prepare(NAMES, "L = :key")
    assert [few(key=key).to_arrow() for key in range(ROWS)] == rows
    assert len(few._store._cache.footers._opened._values) == 1


def test_a_file_that_is_replaced_is_noticed(tmp_path):
    """What was parsed of its footer does not stand in for the file."""
    cube = built(tmp_path, changed=False)
    prepared = cube.prepare(["f", "L"], "L = :key")
    assert prepared(key=1).to_arrow().num_rows == 1
    (file,) = tmp_path.glob("k++e/table/P=1/*.parquet")
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.slice(0, 0).append_column("z", pa.array([], pa.int64())), file)
    for asked in (prepared(key=1), cube.query(["f"])):
        with pytest.raises(FormatError, match="damaged"):
            asked.to_arrow()


def test_threads_share_it(tmp_path):
    cube = built(tmp_path)
    prepared = cube.prepare(NAMES, "L = :key", types="stored")
    known = [prepared(key=key).to_arrow() for key in range(ROWS)]
    fresh = Store(tmp_path).cube("k").prepare(NAMES, "L = :key", types="stored")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda key: fresh(key=key).to_arrow(), [*range(ROWS)] * 3))
    assert found == known * 3


def test_files_that_are_gone_or_damaged(tmp_path):
    cube = built(tmp_path, changed=False)
    prepared = cube.prepare(["f", "L"], "L = :key")
    assert prepared(key=1).count() == 1
    (file,) = tmp_path.glob("k++e/table/P=1/*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:60] + bytes([whole[60] ^ 255]) + whole[61:])
    with pytest.raises(KtkError, match="damaged"):
        prepared(key=1).to_arrow()
    file.unlink()
    with pytest.raises(KtkError, match=r"P=1/.*(missing|not exist|gone)"):
        prepared(key=1).to_arrow()
    assert prepared(key=2).to_arrow()["f"].to_pylist() == [2.0]
    file.write_bytes(whole)
    assert prepared(key=1).to_arrow()["f"].to_pylist() == [1.0]


def test_queries_of_it_are_pickled_and_it_is_not(tmp_path):
    prepared = built(tmp_path).prepare(["f"], "L = :key")
    query = pickle.loads(pickle.dumps(prepared(key=1)))
    assert query.to_arrow().equals(prepared(key=1).to_arrow())
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(prepared)
