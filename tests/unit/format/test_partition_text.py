from datetime import UTC, date, datetime, time
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import DataError, FormatError, TypeClassError
from ktk_engine.format.label import parse_label, partition_path, partition_table
from ktk_engine.format.partition_text import partition_text, partition_texts, partition_values
from ktk_engine.format.percent_encoding import quote, unquote, unquote_bytes
from ktk_engine.store.key import validate_key  # deep: texts are in keys

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
YEARS = {"min_value": datetime(1, 1, 2), "max_value": datetime(9999, 12, 30)}
CLASSES = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes(**YEARS)),
    (pa.timestamp("us", "UTC"), st.datetimes(**YEARS, timezones=st.just(UTC))),
    (pa.timestamp("us", "Europe/Berlin"), st.datetimes(**YEARS, timezones=st.just(UTC))),
    (pa.timestamp("us", "+05:30"), st.datetimes(**YEARS, timezones=st.just(UTC))),
    (pa.decimal128(10, 4), st.decimals(-99999, 99999, places=4)),
    (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (pa.decimal128(38, 38), st.decimals(0, "0.1", places=38)),
    (pa.time64("us"), st.times()),
]


@pytest.mark.parametrize(("t", "values"), CLASSES, ids=[str(t) for t, _ in CLASSES])
def test_values_of_every_class_round_trip(t, values):
    @settings(max_examples=30, deadline=None)
    @given(st.lists(values, max_size=5))
    def check(items):
        array = pa.array(items, t)
        texts = partition_texts(array)
        restored = partition_values(texts, t)
        assert restored.to_pylist() == array.to_pylist()
        assert partition_values(texts, t).type == restored.type
        for item, text in zip(array, texts.to_pylist(), strict=True):
            assert partition_text(item, t) == text
            assert text.isascii() and "/" not in text
            if len(text) < 200:
                validate_key(f"p={text}/{text or 'x'}")

    check()


@settings(max_examples=30, deadline=None)
@given(TEXT.filter(bool), TEXT.filter(bool), TEXT, st.integers(-5, 5))
def test_labels_round_trip(first, second, text, number):
    if first == second:
        return
    columns = [first, second]
    schema = pa.schema([(first, pa.string()), (second, pa.int64())])
    path = partition_path(columns, [text, number], schema.types)
    texts, base = parse_label(f"{path}/abc", columns)
    assert ([unquote(t) for t in texts.values()], base) == ([text, str(number)], "abc")
    assert partition_table([f"{path}/abc"], columns, schema).to_pydict() == {
        first: [text],
        second: [number],
    }


@pytest.mark.parametrize(
    ("t", "value", "text"),
    [
        (pa.int32(), -5, "-5"),
        (pa.uint64(), 9223372036854775813, "9223372036854775813"),
        (pa.float64(), 1e20, "1e%2B20"),
        (pa.float64(), 1e-7, "1e-07"),
        (pa.float64(), 0.0, "0.0"),
        (pa.float64(), float("inf"), "inf"),
        (pa.float64(), 123456789.12345679, "123456789.12345679"),
        (pa.float32(), 0.1, "0.10000000149011612"),
        (pa.bool_(), False, "False"),
        (pa.string(), "", ""),
        (pa.string(), "a b~-_.ü\n%=+:", "a%20b~-_.%C3%BC%0A%25%3D%2B%3A"),
        (pa.string(), "J P/ü", "J%20P%2F%C3%BC"),
        (pa.string(), "..", "%2E%2E"),
        (pa.string(), ".", "%2E"),
        (pa.string(), "...", "..."),
        (pa.binary(), b"\xffa/", "%FFa%2F"),
        (pa.date32(), date(2018, 1, 1), "2018-01-01"),
        (pa.timestamp("us"), datetime(2018, 1, 1), "2018-01-01%2000%3A00%3A00"),
        (
            pa.timestamp("us"),
            datetime(2018, 1, 1, 12, 34, 56, 789000),
            "2018-01-01%2012%3A34%3A56.789000",
        ),
        (
            pa.timestamp("us", "Europe/Berlin"),
            datetime(2018, 1, 1, 9, tzinfo=UTC),
            "2018-01-01%2010%3A00%3A00%2B01%3A00",
        ),
        (pa.decimal128(5, 2), Decimal("1.2"), "1.20"),
        (pa.decimal128(9, 8), Decimal("0"), "0.00000000"),
        (pa.time64("us"), time(1, 2, 3), "01%3A02%3A03"),
    ],
)
def test_the_texts_are_kartotheks(t, value, text):
    assert partition_text(value, t) == text


@given(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)))
def test_timestamps_are_written_as_pandas_does(moment):
    assert unquote(partition_text(moment, pa.timestamp("us"))) == str(pd.Timestamp(moment))


@pytest.mark.parametrize(
    ("t", "text", "value"),
    [
        (pa.int64(), "01", 1),
        (pa.int64(), "5.0", 5),
        (pa.bool_(), "true", True),
        (pa.bool_(), "FALSE", False),
        (pa.float64(), "1", 1.0),
        (pa.float64(), "-inf", float("-inf")),
        (pa.date32(), "2018-01-01%2000%3A00%3A00", date(2018, 1, 1)),
        (pa.timestamp("ns"), "2018-01-01", datetime(2018, 1, 1)),
        (pa.timestamp("us"), "2018-01-01T10:00", datetime(2018, 1, 1, 10)),
        (pa.timestamp("us"), "2018-01-01 10:00:00.1", datetime(2018, 1, 1, 10, 0, 0, 100000)),
        (pa.timestamp("us"), "2018-01-01 10:00:00.000001000", datetime(2018, 1, 1, 10, 0, 0, 1)),
        (pa.timestamp("us", "UTC"), "2018-01-01 10:00:00Z", datetime(2018, 1, 1, 10, tzinfo=UTC)),
        (
            pa.timestamp("us", "UTC"),
            "2018-01-01%2010:00:00-0130",
            datetime(2018, 1, 1, 11, 30, tzinfo=UTC),
        ),
        (pa.decimal128(5, 2), "1.2", Decimal("1.20")),
        (pa.decimal128(9, 8), "0E-8", Decimal("0E-8")),
        (pa.string(), "ü%zz%4", "ü%zz%4"),
        (pa.string(), "a+b", "a+b"),
        (pa.string(), "a/b", "a/b"),
    ],
)
def test_what_others_write_is_read(t, text, value):
    assert partition_values([text], t).to_pylist() == [value]


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (pa.int64(), "x"),
        (pa.int64(), ""),
        (pa.int64(), "1_0"),
        (pa.int64(), str(2**63)),
        (pa.uint64(), "-1"),
        (pa.float64(), "1_0"),
        (pa.bool_(), "1"),
        (pa.date32(), "20180101"),
        (pa.date32(), "2018-02-30"),
        (pa.date32(), "2018-01-01 10:00:00"),
        (pa.timestamp("us"), "2018-01-01 10:00:00.000000001"),
        (pa.timestamp("us"), "2018-01-01 10:00:00+01:00"),
        (pa.timestamp("us", "UTC"), "2018-01-01 10:00:00"),
        (pa.decimal128(5, 2), "1.234"),
        (pa.decimal128(5, 2), "nan"),
        (pa.time64("us"), "25:00:00"),
        (pa.string(), "%FF"),
    ],
)
def test_other_texts_are_refused_and_named(t, text):
    with pytest.raises(FormatError) as caught:
        partition_values(["%31", text] if t == pa.string() else [text], t)
    assert repr(text) in str(caught.value)


def test_what_cannot_be_written():
    for array in (
        pa.array([1, None]),
        pa.array([float("nan")]),
        pa.array([1], pa.timestamp("ns")),
        pa.array([2**60], pa.timestamp("us")),
    ):
        with pytest.raises(DataError):
            partition_texts(array)
    for t in (pa.list_(pa.int64()), pa.null(), pa.duration("us")):
        with pytest.raises(TypeClassError):
            partition_texts(pa.array([], t))
        with pytest.raises(TypeClassError):
            partition_values([], t)
    with pytest.raises(DataError):
        partition_text("x", pa.int64())


def test_dictionaries_and_chunks():
    array = pa.chunked_array(
        [pa.array(["a/b", "c"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    )
    texts = partition_texts(array)
    assert texts.to_pylist() == ["a%2Fb", "c", "c"]
    assert partition_values(texts, array.type).to_pylist() == ["a/b", "c", "c"]


def test_encoding():
    assert quote(b"\xff.") == "%FF."
    assert unquote_bytes("%FF%zz") == b"\xff%zz"
    with pytest.raises(FormatError):
        unquote("%FF")
    with pytest.raises(FormatError):
        unquote_bytes("\udc80")
