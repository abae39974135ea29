"""What holds for few rows without Spark holds in Spark too, and depends on the same rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import DataError, FormatError
from ktk_engine.spark.session.session import new_session
from ktk_engine.sql.dialect import DEFAULT  # deep: what texts mean
from ktk_engine.write import verify_constraints as module
from ktk_engine.write import verify_in_memory as here
from ktk_engine.write.verify_constraints import verify_constraints
from ktk_engine.write.verify_in_memory import verify_in_memory
from tests.spark.numbered_rows import snapshot
from tests.support.changes import Constraint, WriteRequest, build

pytestmark = pytest.mark.usefixtures("few_rows")

ZONE = "Asia/Kolkata"
DIALECT = replace(DEFAULT, zone=ZONE)
FREE = WriteRequest("t", partition_by=("p",))
CUBE = WriteRequest("s", "seed", "c", ("id",), ("p",))
ROWS = """
select cast(id as int) as id, element_at(array('a/b', '50%', 'x=y', 'Łódź', ''),
       cast(id % 5 as int) + 1) as p, cast(id % 2 as boolean) as b,
       if(id % 7 = 3, null, id) as n, cast(id * 1.5 as decimal(20, 2)) as d,
       element_at(array(double('nan'), -0.0d, 0.0d, 1.5d), cast(id % 4 as int) + 1) as f,
       timestamp_seconds(id * 3600) as t, timestamp_ntz '2024-01-01 00:00:00' as w,
       date_add(date '2024-01-01', cast(id as int)) as day, cast(concat('ä', id) as binary) as y,
       concat('k', id % 3) as s, cast(null as void) as nothing, array(id) as l
from range({low}, {high})
"""


def check(expression):
    return Constraint("check", expression=expression)


def unique(*names):
    return Constraint("unique", names)


def key(*names):
    return Constraint("primary_key", names)


# Whether it holds for ROWS from 0 to 20.
IN_MEMORY = [
    (Constraint("not_null", ("id", "p", "f", "y", "l")), True),
    (Constraint("not_null", ("n",)), False),
    (Constraint("not_null", ("nothing",)), False),
    (check("n >= 0"), True),
    (check("N >= 0"), True),
    (check("n >= 0 and p != 'zzz' -- they say"), True),
    (check("n > 0 or f = 1.5"), False),
    (check("f >= 0"), True),
    (check("f < 2"), False),
    (check("f = 0 or f > 1"), True),
    (check("d <= 28.5"), True),
    (check("d < 28.5"), False),
    (check("s in ('k0', 'k1', 'k2')"), True),
    (check("s like 'k_' and not s like '%1'"), False),
    (check("b is true or n is not null"), False),
    (check("day between date '2024-01-01' and date '2024-01-20'"), True),
    (check("t >= timestamp '1970-01-01 05:30:00'"), True),
    (check("t >= timestamp '1970-01-01 05:30:01'"), False),
    (check("w = timestamp_ntz '2024-01-01 00:00:00'"), True),
    (unique("id"), True),
    (unique("n"), True),
    (key("n"), False),
    (unique("s", "id"), True),
    (unique("s"), False),
    (unique("p"), False),
    (key("p", "s", "b"), True),
    (unique("d"), True),
    (unique("t"), True),
    (unique("w", "day"), True),
    (unique("day"), True),
    (key("y"), True),
]
# Spark is asked at once.
NOT_IN_MEMORY = [
    (check("n % 1 = 0"), True),
    (check("length(s) = 2"), True),
    (check("1 = 1"), True),
    (unique("f", "id"), True),
    (unique("f"), False),
    (unique("l"), True),
    (unique("nothing"), True),
]


def rows(spark, low=0, high=20):
    return spark.sql(ROWS.format(low=low, high=high))


def in_spark(monkeypatch, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(module, "verify_in_memory", lambda *_: None)
        return verify_constraints(*arguments)


def test_the_same_constraints_hold(spark, store, monkeypatch):
    build(store, rows(spark), FREE)
    written = snapshot(store, FREE)
    for constraint, holds in IN_MEMORY:
        held = verify_in_memory(store, [constraint], written, None, DIALECT)
        assert held == (() if holds else None), constraint
    for constraint, _ in NOT_IN_MEMORY:
        assert verify_in_memory(store, [constraint], written, None, DIALECT) is None, constraint
    monkeypatch.setattr(module, "session_for_frames", with_zone)
    kept = [constraint for constraint, holds in [*IN_MEMORY, *NOT_IN_MEMORY] if holds]
    assert in_spark(monkeypatch, store, rows(spark), kept, written, None) == ()
    broken = [constraint for constraint, holds in [*IN_MEMORY, *NOT_IN_MEMORY] if not holds]
    with pytest.raises(DataError) as caught:
        in_spark(monkeypatch, store, rows(spark), broken, written, None)
    assert [item for item in broken if f"the {item}." not in str(caught.value)] == []


def with_zone(session):
    own = new_session(session)
    own.conf.set("spark.sql.session.timeZone", ZONE)
    return own


def values(conditions):
    """What is asked for, in no certain order."""
    return [{item.column: set(item.values.to_pylist()) for item in part} for part in conditions]


@pytest.mark.parametrize("target", [FREE, CUBE], ids=["table", "cube"])
def test_keys_of_rows_that_stay(spark, store, target, monkeypatch):
    build(store, rows(spark, 0, 10), target)
    kept = snapshot(store, target)
    for low in (30, 8):  # new ones; some that are there, in a cube in place of the old rows
        build(store, rows(spark, low, low + 5), target, mode="append")
        whole = snapshot(store, target)
        new = set(whole.labels) - set(kept.labels)
        added = pa.array([label in new for label in whole.labels])
        addition = replace(whole, file_table=whole.files.filter(added))
        for names in [("id",), ("p", "s"), ("n",), ("t", "day"), ("y",), ("d", "b")]:
            held = verify_in_memory(store, [unique(*names)], addition, kept, DEFAULT)
            arguments = (store, rows(spark), [unique(*names)], addition, kept)
            if names == ("p", "s") or (target is FREE and low == 8):
                assert held is None
                with pytest.raises(DataError, match="rows have"):
                    in_spark(monkeypatch, *arguments)
            else:
                assert values(held) == values(in_spark(monkeypatch, *arguments))


def test_no_job_of_spark_verifies_few_rows(spark, store, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "rows_of", lambda *arguments: asked.append(arguments))
    constraints = (key("id"), check("n >= 0"), Constraint("not_null", ("s",)))
    target = WriteRequest("t", partition_by=("p",), constraints=constraints)
    build(store, rows(spark), target)
    build(store, rows(spark, 20, 25), target, mode="append")
    assert asked == []


def test_more_rows_than_fit_are_sparks(spark, store, monkeypatch):
    build(store, rows(spark), FREE)
    written = snapshot(store, FREE)
    assert verify_in_memory(store, [unique("id")], written, None, DEFAULT) == ()
    monkeypatch.setattr(here, "is_small", lambda files, columns: False)
    assert verify_in_memory(store, [unique("id")], written, None, DEFAULT) is None


def test_a_damaged_file_is_an_error(spark, store):
    build(store, rows(spark), FREE)
    written = snapshot(store, FREE)
    file = store.root / written.files["key"][0].as_py()
    file.write_bytes(file.read_bytes()[:-100] + bytes(100))
    with pytest.raises(FormatError, match=file.name):
        verify_in_memory(store, [unique("id")], written, None, DEFAULT)
