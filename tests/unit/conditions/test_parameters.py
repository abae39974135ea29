"""Parameters of a condition mean what their values mean as literals, and never become text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.conditions.condition import FalseCondition, IsIn
from ktk_engine.conditions.parameters import BoundText
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import ConditionError

DAY, MOMENT = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 5)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("u", pa.uint16()), ("f", pa.float32()), ("s", pa.large_string()),
        ("b", pa.bool_()), ("x", pa.binary()), ("d", pa.date32()), ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "Europe/Berlin")), ("m", pa.decimal128(10, 2)),
        ("o", pa.time64("us")), ("n", pa.null()),
    ]
)  # fmt: skip


def bound(sql: str, **values: object) -> Any:
    return parse_condition(BoundText(sql, values), SCHEMA)


@pytest.mark.parametrize(
    ("sql", "values", "same"),
    [
        ("i > :lo", {"lo": 3}, "i > 3"),
        ("i > :lo", {"lo": np.int64(3)}, "i > 3"),
        ("i = :v", {"v": 2**70}, f"i = {2**70}"),
        ("i < :v", {"v": 10**5000}, f"i < {10**60}"),
        ("m in (:v)", {"v": [1, Decimal("1.5")]}, "m in (1, 1.5)"),
        (":lo < i and f > :lo", {"lo": 3}, "i > 3 and f > 3"),
        ("f = :v", {"v": 0.1}, "f = 0.1"),
        ("f = :v", {"v": np.float32(0.5)}, "f = 0.5"),
        ("m = :v", {"v": Decimal("1.50")}, "m = 1.5"),
        ("s = :v", {"v": "O'Hare\\"}, r"s = 'O\'Hare\\'"),
        ("s = :v", {"v": pa.scalar("x")}, "s = 'x'"),
        ("b = :v", {"v": True}, "b = true"),
        ("x = :v", {"v": b"\x00"}, "x = X'00'"),
        ("d between :lo and :hi", {"lo": DAY, "hi": "2024-02-01"},
         "d between date '2024-01-31' and '2024-02-01'"),
        ("t < :v", {"v": MOMENT}, "t < timestamp '2024-01-31 05:00:00'"),
        ("t < :v", {"v": pd.Timestamp(MOMENT)}, "t < timestamp '2024-01-31 05:00:00'"),
        ("z < :v", {"v": MOMENT.replace(tzinfo=dt.UTC)}, "z < '2024-01-31 05:00:00'"),
        ("z < :v", {"v": "2024-01-31 05:00:00"}, "z < '2024-01-31 05:00:00'"),
        ("o > :v", {"v": dt.time(12)}, "o > '12:00'"),
        ("s like :v", {"v": "a%"}, "s like 'a%'"),
        ("s not like :v escape '#'", {"v": "a#%%"}, "s not like 'a#%%' escape '#'"),
        ("i <=> :v and s <=> :w", {"v": None, "w": "a"}, "i <=> null and s <=> 'a'"),
        ("n = :v", {"v": 3}, "n = 3"),
        ("i in (:v)", {"v": [3, 1, 3]}, "i in (3, 1, 3)"),
        ("i in (:v)", {"v": 3}, "i in (3)"),
        ("i in (:v) and i = :v", {"v": np.array(3)}, "i in (3) and i = 3"),
        ("t = :v", {"v": np.array(MOMENT, "datetime64[us]")}, "t = '2024-01-31 05:00:00'"),
        ("i in (:v, :w, 5)", {"v": 3, "w": 4}, "i in (3, 4, 5)"),
        ("i not in (:v)", {"v": np.arange(3)}, "i not in (0, 1, 2)"),
        ("i in (:v)", {"v": pd.Series([1, 2])}, "i in (1, 2)"),
        ("i in (:v)", {"v": pl.Series([1, 2])}, "i in (1, 2)"),
        ("i in (:v)", {"v": pa.chunked_array([[1], [2]])}, "i in (1, 2)"),
        ("f in (:v)", {"v": (1, 2.5)}, "f in (1, 2.5)"),
        ("s in (:v)", {"v": np.array(["a", "b"])}, "s in ('a', 'b')"),
        ("d in (:v)", {"v": [DAY, "2024-02-01"]}, "d in ('2024-01-31', '2024-02-01')"),
        ("s = ':v' or s = :v", {"v": "x"}, "s = ':v' or s = 'x'"),
        ("s = :v", {"v": "x' or '1' = '1"}, r"s = 'x\' or \'1\' = \'1'"),
    ],
)  # fmt: skip
def test_a_value_means_what_its_literal_means(sql, values, same):
    assert to_sql(bound(sql, **values)) == to_sql(parse_condition(same, SCHEMA))


@pytest.mark.parametrize("column", SCHEMA.names)
@pytest.mark.parametrize("empty", [[], (), set(), np.array([]), pa.array([]), pd.Series([])])
def test_no_row_has_one_of_no_values(column, empty):
    found = bound(f"{column} in (:v)", v=empty)
    assert found == FalseCondition() or (isinstance(found, IsIn) and len(found.values) == 0)


@pytest.mark.parametrize(
    ("sql", "values", "message"),
    [
        ("i = :v", {}, "Parameter `:v` has no value"),
        ("i = ?", {}, "has no value"),
        ("i = :v", {"V": 1}, "does not name the parameter `:V`"),
        ("i = :v", {"v": 1, "w": 2}, "does not name the parameter `:w`"),
        ("i = :v", {"v": [1, 2]}, r"write `in \(:v\)`"),
        ("i in (1, :v)", {"v": [1, 2]}, r"write `in \(:v\)`"),
        ("i between :v and 3", {"v": [1, 2]}, r"write `in \(:v\)`"),
        ("i = :v", {"v": None}, "use `is null`"),
        ("i in (:v)", {"v": [1, None]}, "use `is null`"),
        ("f = :v", {"v": float("nan")}, "NaN"),
        ("i = :v", {"v": "1"}, "Column `i` is of class signed integer"),
        ("i in (:v)", {"v": ["1"]}, "Column `i` is of class signed integer"),
        ("s = :v", {"v": 1}, "Column `s` is of class string"),
        ("s like :v", {"v": 1}, "is not supported"),
        ("m = :v", {"v": 0.5}, "Column `m` is of class decimal"),
        ("m > :v", {"v": Decimal("1.505")}, "Spark would round :v to compare it"),
        ("m in (:v)", {"v": [1, Decimal("1.505")]}, "Spark would round"),
        ("m < :v", {"v": Decimal("1e999999999")}, "out of the range of every class"),
        ("m < :v", {"v": Decimal("Infinity")}, "Column `m` is of class decimal"),
        ("s = :v", {"v": "a\ud800"}, "half of a surrogate pair"),
        ("s in (:v)", {"v": ["a", "\ud800"]}, "half of a surrogate pair"),
        ("s like :v", {"v": "\ud800%"}, "half of a surrogate pair"),
        (":v = 3", {"v": 3}, "is not supported"),
        (":v", {"v": True}, "is not supported"),
    ],
)  # fmt: skip
def test_what_is_refused(sql, values, message):
    with pytest.raises(ConditionError, match=message):
        bound(sql, **values)


def test_every_verb_takes_them(tmp_path):
    store = Store(tmp_path / "store")
    rows = {"k": [1, 2, 3, 4], "p": ["a", "a", "b'", "c"]}
    cube = store.build("c", pa.table(rows), dimension_columns=["k"], partition_by=["p"])
    table = store.write_table("t", pa.table(rows))
    wanted = {"v": [2, 3]}
    for each in (cube, table):
        found = each.query(["k"], "k in (:v)", parameters=wanted).to_arrow()
        assert found["k"].to_pylist() == [2, 3]
        left = each.delete("k in (:v)", parameters=wanted).query(["k"]).to_arrow()
        assert sorted(left["k"].to_pylist()) == [1, 4]
    assert cube.remove_partitions("p = :p", parameters={"p": "c"}).query().count() == 1
    new = pa.table({"k": [9], "p": ["a"]})
    found = cube.update({"seed": new}, "p = :p", parameters={"p": "a"}).query().to_arrow()
    assert found.to_pylist() == [{"k": 9, "p": "a"}]


def test_parameters_without_a_text(tmp_path):
    table = Store(tmp_path / "store").write_table("t", pa.table({"k": [1]}))
    with pytest.raises(ConditionError, match="parameters must be a dict"):
        table.query(where="k = :v", parameters=[1])
    with pytest.raises(ConditionError, match="where is None"):
        table.query(parameters={"v": 1})
    with pytest.raises(ConditionError, match="where is None"):
        table.delete(None, parameters={})
    with pytest.raises(ConditionError, match="has no value"):
        table.query(where="k = :v").count()
