"""Long lists are read at once, and mean what they mean literal by literal."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ktk_engine.conditions import long_list
from ktk_engine.conditions.condition import IsIn
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError

SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("u", pa.uint16()), ("f", pa.float32()), ("s", pa.large_string()),
        ("b", pa.bool_()), ("x", pa.binary()), ("d", pa.date32()), ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "Europe/Berlin")), ("m", pa.decimal128(10, 2)),
        ("o", pa.time64("us")), ("n", pa.null()), ("a b", pa.string()),
    ]
)  # fmt: skip

# fmt: off
_OTHERS = [
    "'2024-01-01'", "'12:00'", "'x''y'", r"'\''", "007", "-0", "- 5", "+5", "1.5", "1e3", "5L",
    "1_0", "null", "0x1F", "X'00'", "true", "i", '"q"', "١", "ktk_long_list_0",
]
_HEADS = [
    "", "not ", "i = 5 and ", "s = 'in (1, 2)' and ", "(", "i - ", "i = -1 or ", "s = '", "/* ",
    "-- ", '"', "i in (1, 2) or ", "ktk_long_list_0 = 1 and ", "s not in ('x') and ",
]
# fmt: on
_BLANK = st.sampled_from(["", " ", "\n", "\t ", "--\n", "/**/"])
_LITERAL = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.integers(-9, 9).map(str),
    st.text("ab'\\,) (-0é", max_size=5).map(lambda text: f"'{text}'"),
    st.sampled_from(_OTHERS),
)
_ITEM = st.builds("{}{}{}".format, _BLANK, _LITERAL, _BLANK)
_SIMILAR = st.one_of(
    st.lists(st.integers(-99, 10**18).map(str), min_size=1, max_size=9),
    st.lists(st.text("ab-, é", max_size=3).map(lambda text: f"'{text}'"), min_size=1, max_size=9),
)
_LIST = st.one_of(_SIMILAR, st.lists(_ITEM, max_size=6)).map(",".join)
_COLUMN = st.sampled_from(
    ["i", "u", "f", "s", "d", "t", "z", "m", "o", "b", "n", "x", "I", "`a b`"]
)
_HEAD = st.sampled_from(_HEADS)
_TAIL = st.sampled_from(["", " and i > 3", ")", " or s in ('a', 'b')", " */", "'", "--", ";", " 1"])
_IN = st.sampled_from([" in (", " IN(", " not in (", "in (", " = (", " in  (("])
_SQL = st.builds("{}{}{}{}){}".format, _HEAD, _COLUMN, _IN, _LIST, _TAIL)


def _outcome(sql):
    try:
        return parse_condition(sql, SCHEMA)
    except ConditionError as error:
        return str(error)


@settings(max_examples=400, deadline=None)
@given(_SQL)
@example("n in (9223372036854775808)")
@example("i in (1,2) and s in ('a', 'b')")
@example("i in (1, 2) and i in (3, 4) or u not in (-5, 6)")
@example("s in ('i in (1, 2)', 'x')")
@example("s = 'i in (1, 2)'")
@example("i = 1 /* or i in (1, 2) */")
@example("i = 1 -- or i in (1, 2)")
def test_means_the_same_as_literal_by_literal(sql):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_list, "_SHORTEST", 1_000_000)
        expected = _outcome(sql)
        patch.setattr(long_list, "_SHORTEST", 2)
        assert _outcome(sql) == expected


@pytest.mark.parametrize(
    ("sql", "lists"),
    [
        ("i in (1, 2)", [[1, 2]]),
        ("i in (1, 2) and s not in ('a', '') and i = 1", [[1, 2], ["a", ""]]),
        ("s in ('x') and i in (1, 2)", [["x"], [1, 2]]),
        ("s = 'a' and i in (1, 2)", None),
        ("i in (1, 2.5)", None),
        ("s in ('a''b', 'c')", None),
        ("s in ('a' 'b')", None),
        (r"s in ('\'', 'c')", None),
        ("i = 1 -- i in (1, 2)", None),
        ("i in (ktk_long_list_0) or i in (1, 2)", None),
    ],
)
def test_which_lists_are_taken_out(sql, lists, monkeypatch):
    monkeypatch.setattr(long_list, "_SHORTEST", 2)
    short = long_list.without_long_lists(sql)
    if lists is None:
        assert short is None
        return
    found = [[getattr(v, "text", v) for v in values] for values in short.lists.values()]
    assert found == lists
    assert all(name in short.sql for name in short.lists)


def test_a_hundred_thousand_literals():
    sql = f"i in ({', '.join(map(str, range(100_000)))})"
    start = time.process_time()
    found = parse_condition(sql, SCHEMA)
    assert time.process_time() - start < 1  # sqlglot alone takes longer by far
    assert found == IsIn("i", pa.array(range(100_000), pa.int64()))


def test_an_error_shows_the_text_as_it_is():
    sql = f"nothing in ({', '.join(map(str, range(2_000)))})"
    with pytest.raises(ConditionError, match="Unknown column `nothing`"):
        parse_condition(sql, SCHEMA)
