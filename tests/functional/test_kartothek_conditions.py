"""Kartothek's conditions on columns of every class, over a file of ours and over one of its own."""

from __future__ import annotations

import datetime as dt
import json
import math
import operator
import os
import subprocess
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.changes import WriteRequest, build
from tests.support.stores import LocalStore

pytestmark = pytest.mark.skipif(
    not os.environ.get("KTK_ORACLE_PYTHON"),
    reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`",
)

NAN, INF = math.nan, math.inf
NO = [None] * 4
DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 1)
DAYS = [DAY, dt.date(1969, 1, 1), DAY, dt.date(2024, 3, 1), *NO]
DAYS += [None, DAY, dt.date(1700, 1, 1), DAY]
MOMENTS = [value and dt.datetime.combine(value, NOON.time()) for value in DAYS]
TIMES = [dt.time(1), dt.time(2), dt.time(0), dt.time(3), *NO, None, dt.time(2), dt.time(4), None]
DECIMALS = [value and Decimal(value) for value in ("1.50", "2.50", "-3.00", "0.00", *NO, *"7289")]
# Three row groups each, and what they are compared with.
COLUMNS = {
    "int8": (pa.int8(), [1, 2, -128, 0, 2, 2, 2, 2, 127, 7, 4, 3], 2),
    "int64": (pa.int64(), [1, 2, -(2**63), 0, 2, 2, 2, 2, 2**63 - 1, 7, 4, 3], 2),
    "uint8": (pa.uint8(), [1, 2, 0, 3, 2, 2, 2, 2, 255, 7, 5, 4], 2),
    "uint64": (pa.uint64(), [1, 2, 0, 3, 2, 2, 2, 2, 2**63 + 1, 7, 5, 4], 2),
    "float32": (pa.float32(), [1.5, 2.5, -3.0, 0.0, *NO, NAN, -0.0, 7.5, None], 2.5),
    "float64": (pa.float64(), [1.5, 2.5, -3.0, 0.0, *NO, NAN, -0.0, 7.5, None], 2.5),
    "infinite": (pa.float64(), [1.5, INF, -3.0, 0.0, NAN, -INF, INF, 2.5, 1, 1, 1, 1], 2.5),
    "infinity": (pa.float64(), [1.5, INF, -3.0, 0.0, NAN, -INF, INF, 2.5, 1, 1, 1, 1], INF),
    "nan": (pa.float64(), [NAN] * 10 + [None, 2.5], 2.5),
    "is_nan": (pa.float64(), [1.5, 2.5, -3.0, 0.0, *NO, NAN, -0.0, 7.5, None], NAN),
    "zero": (pa.float64(), [0.0] * 4 + [-0.0] * 4 + [-0.0, 0.0, NAN, None], 0.0),
    "minus": (pa.float64(), [0.0] * 4 + [-0.0] * 4 + [-0.0, 0.0, NAN, None], -0.0),
    "decimal": (pa.decimal128(9, 2), DECIMALS, Decimal("2.50")),
    "text": (pa.string(), ["a", "b", "", "ü", *"bbbb", "c" * 99, "b", "\U0010ffff", "a"], "b"),
    "nulls": (pa.string(), ["a", "b", "", "ü", *NO, "c" * 99, None, "\U0010ffff", "b"], "b"),
    "binary": (pa.binary(), [b"a", b"b", b"", b"\xff", *NO, b"c", b"\0", None, b"b"], b"b"),
    "bool": (pa.bool_(), [True, False, True, True, *NO, False, False, None, False], True),
    "date": (pa.date32(), DAYS, DAY),
    "timestamp": (pa.timestamp("us"), MOMENTS, NOON),
    "zoned": (pa.timestamp("us", "UTC"), MOMENTS, NOON),
    "time": (pa.time64("us"), TIMES, dt.time(2)),
}
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: left == right,
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Column and operator -> what Kartothek answers over our file, and over its own."""
    folder = tmp_path_factory.mktemp("kartothek")
    arrays = {name: pa.array(values, t) for name, (t, values, _) in COLUMNS.items()}
    table = pa.table({"id": pa.array(range(12)), **arrays})
    store = LocalStore(folder / "store")
    build(store, table, WriteRequest("ours", row_group_rows=4))
    pq.write_table(table, folder / "rows.parquet")
    questions = [(name, sign, _source(name, sign)) for name in COLUMNS for sign in OPERATORS]
    asked = [(dataset, *item) for dataset in ("ours", "own") for item in questions]
    script = Path(__file__).with_name("ask_kartothek.py")
    python = os.environ["KTK_ORACLE_PYTHON"]
    command = [python, str(script), str(store.root), str(folder / "rows.parquet")]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ours, own = found[: len(questions)], found[len(questions) :]
    names = [(name, sign) for name, sign, _ in questions]
    return dict(zip(names, zip(ours, own, strict=True), strict=True))


def _source(name, sign):
    value = COLUMNS[name][2]
    text = f"float({str(value)!r})" if isinstance(value, float) else repr(value)
    text = text.replace("Decimal(", "decimal.Decimal(")
    return f"[{text}]" if sign == "in" else text


@pytest.mark.parametrize("name", COLUMNS)
def test_kartothek_finds_the_same_rows_as_in_its_own_files(answers, name):
    _, values, value = COLUMNS[name]
    numbers = [i for i, found in enumerate(values) if found is not None and found == found]
    failed = []
    for sign, compare in OPERATORS.items():
        ours, own = answers[name, sign]
        if isinstance(ours, str):
            failed.append(sign)
        elif sign == "!=":  # to Kartothek null differs from any value, or not: as bounds are
            ours, own = ([i for i in found if i in numbers] for found in (ours, own))
        assert ours == own, sign
        if value == value and sign not in failed:
            assert ours == [i for i in numbers if compare(values[i], value)], sign
    assert failed == _impossible(name)


def _impossible(name):
    """What Kartothek cannot do, no matter who wrote the file."""
    signs = list(OPERATORS)
    if name in ("decimal", "time"):
        return signs
    order = ["<", "<=", ">", ">="]
    return {"nulls": order, "binary": order, "bool": order, "is_nan": order}.get(name, [])
