from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from ktk_engine.errors import TypeClassError
from ktk_engine.types.arrow_name import arrow_name, parse_type, sql_name
from tests.unit.types.strategies import TYPES


@settings(max_examples=100, deadline=None)
@given(TYPES)
def test_names_are_read_back(t: pa.DataType) -> None:
    assert parse_type(arrow_name(t)).equals(t)


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("list<item: int64>", pa.list_(pa.int64())),
        ("list<int64>", pa.list_(pa.int64())),
        ("array<string>", pa.list_(pa.string())),
        ("struct<a: int64, b: string>", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("struct<a: int, `b c`: string>", pa.struct([("a", pa.int32()), ("b c", pa.string())])),
        ("map<string, int64>", pa.map_(pa.string(), pa.int64())),
        ("dictionary<string>", pa.dictionary(pa.int32(), pa.string())),
        (
            "dictionary<values=string, indices=int8, ordered=0>",
            pa.dictionary(pa.int8(), pa.string()),
        ),
        ("timestamp[us, tz=Europe/Berlin]", pa.timestamp("us", "Europe/Berlin")),
        ("timestamp[us, Europe/Berlin]", pa.timestamp("us", "Europe/Berlin")),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("decimal128(10, 2)", pa.decimal128(10, 2)),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("numeric", pa.decimal128(10, 0)),
        ("date32[day]", pa.date32()),
        ("time", pa.time64("us")),
        ("varchar(10)", pa.string()),
        ("Bigint", pa.int64()),
        ("double precision", pa.float64()),
        ("halffloat", pa.float16()),
        ("fixed_size_binary[16]", pa.binary(16)),
    ],
)
def test_names(text: str, t: pa.DataType) -> None:
    assert parse_type(text).equals(t)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bigin", "did you mean `bigint`"),
        ("uint33", "did you mean `uint"),
        ("list<int", "expected `>` at the end"),
        ("int64 int64", "unexpected `int64`"),
        ("decimal(99,1)", "precision"),
        ("time32[us]", "time32 has s or ms"),
        ("timestamp[us", "expected `]`"),
        ("map<null, int>", "null"),
        ("", "is unknown"),
    ],
)
def test_what_is_no_type(text: str, message: str) -> None:
    with pytest.raises(TypeClassError) as error:
        parse_type(text)
    assert f"`{text}`" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    ("t", "name"),
    [
        (pa.int8(), "bigint"),
        (pa.uint8(), "decimal(20,0)"),
        (pa.float32(), "double"),
        (pa.decimal128(5, 2), "decimal(38,2)"),
        (pa.large_string(), "string"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("ns", "UTC"), "timestamp"),
        (pa.list_(pa.bool_()), "array<boolean>"),
        (pa.struct([("b c", pa.int8()), ("a", pa.date64())]), "struct<`b c`: bigint, a: date>"),
        (pa.map_(pa.string(), pa.binary()), "map<string, binary>"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
    ],
)
def test_sql_names(t: pa.DataType, name: str) -> None:
    assert sql_name(t) == name


def test_sql_name_needs_a_class() -> None:
    with pytest.raises(TypeClassError):
        sql_name(pa.duration("s"))


@pytest.mark.parametrize("name", ["struct", "array", "map", "STRUCT"])
def test_a_nested_type_without_parts_shows_how_to_name_them(name):
    with pytest.raises(TypeClassError, match="needs the types of its parts, for instance") as error:
        parse_type(name)
    assert parse_type(str(error.value).rpartition("instance ")[2])
