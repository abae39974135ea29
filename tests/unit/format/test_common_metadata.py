import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import FormatError, TypeClassError
from ktk_engine.format.common_metadata import (
    columns_without_class,
    read_common_metadata,
    render_common_metadata,
)

EVERY_CLASS = [
    ("a_int", pa.int8(), "int64", "int64", None),
    ("a_uint", pa.uint8(), "uint64", "uint64", None),
    ("b_float", pa.float32(), "float64", "float64", None),
    ("c_bool", pa.bool_(), "bool", "bool", None),
    ("d_str", pa.large_string(), "unicode", "object", None),
    ("e_bin", pa.binary(3), "bytes", "object", None),
    ("f_date", pa.date64(), "date", "object", None),
    ("g_ts", pa.timestamp("ns"), "datetime", "datetime64[ns]", None),
    ("h_tz", pa.timestamp("ms", "UTC"), "datetimetz", "datetime64[ns]", {"timezone": "UTC"}),
    ("i_dec", pa.decimal128(4, 2), "decimal", "object", {"precision": 38, "scale": 2}),
    ("j_time", pa.time32("s"), "time", "object", None),
    ("k_list", pa.list_(pa.list_(pa.int8())), "list[list[int64]]", "object", None),
    ("l_list", pa.large_list(pa.timestamp("ns")), "list[datetime]", "object", None),
    ("m_struct", pa.struct([("y", pa.int8()), ("x", pa.string())]), "object", "object", None),
    ("n_map", pa.map_(pa.string(), pa.int8()), "object", "object", None),
    ("o_null", pa.null(), "empty", "object", None),
    ("p_cat", pa.dictionary(pa.int8(), pa.string()), "unicode", "object", None),
]
SCHEMA = pa.schema([(name, t) for name, t, *_ in EVERY_CLASS])


def test_every_class():
    data = render_common_metadata(SCHEMA, ["i_dec", "a_int"])
    names = ["i_dec", "a_int", *sorted(set(SCHEMA.names) - {"i_dec", "a_int"})]
    stored = pq.read_schema(pa.BufferReader(data))
    assert stored.names == names
    assert all(field.nullable for field in stored)
    metadata = json.loads(stored.metadata[b"pandas"])
    described = {c["name"]: c for c in metadata["columns"]}
    assert list(described) == names
    for name, _, pandas_type, numpy_type, extra in EVERY_CLASS:
        assert described[name] == {
            "name": name,
            "field_name": name,
            "pandas_type": pandas_type,
            "numpy_type": numpy_type,
            "metadata": extra,
        }
    assert set(metadata) == {
        "column_indexes",
        "columns",
        "creator",
        "index_columns",
        "pandas_version",
    }
    schema = read_common_metadata(data)
    assert schema.metadata is None
    assert render_common_metadata(schema, ["i_dec", "a_int"]) == data


def test_the_parquet_file():
    file = pq.ParquetFile(pa.BufferReader(render_common_metadata(SCHEMA, [])))
    assert (file.metadata.num_row_groups, file.metadata.num_rows) == (0, 0)
    assert file.metadata.format_version == "2.6"
    text = str(file.schema)
    assert "g_ts (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds" in text
    assert "optional int64 field_id=-1 a_int;" in text
    # As in files of old versions of Arrow.
    assert " item" in text
    assert " element" not in text


def test_order_is_that_of_code_points():
    schema = pa.schema([(name, pa.int64()) for name in ["b", "a", "B", "ü", "_", "z"]])
    read = read_common_metadata(render_common_metadata(schema, ["z", "a"]))
    assert read.names == ["z", "a", "B", "_", "b", "ü"]


def test_unnamed_indices_of_pandas_are_left_out():
    import pandas as pd

    frame = pd.DataFrame({"x": [1]}, index=[5])
    sink = pa.BufferOutputStream()
    pq.write_metadata(pa.Schema.from_pandas(frame), sink)
    schema = read_common_metadata(sink.getvalue().to_pybytes())
    assert schema == pa.schema([("x", pa.int64())])


OTHERS = pa.schema(
    [
        ("p", pa.large_string()),
        ("d", pa.decimal128(3, 2)),
        ("i", pa.int8()),
        ("t", pa.duration("us")),
    ],
    {b"pandas": json.dumps({"columns": [{"name": "d", "field_name": "d", "mine": 1}]}).encode()},
)


def of_others():
    sink = pa.BufferOutputStream()
    pq.write_metadata(OTHERS, sink)
    return sink.getvalue().to_pybytes()


def test_what_others_wrote_stays_byte_for_byte_where_it_says_the_same():
    data = of_others()
    schema = read_common_metadata(data)
    assert schema.names == ["p", "d", "i"] and schema.field("i").type == pa.int64()
    assert list(columns_without_class(data)) == ["t"]
    assert render_common_metadata(schema, ["p"], data, ["t"]) == data
    own = render_common_metadata(schema, ["p"])
    assert render_common_metadata(schema, ["p"], b"damaged") == own != data
    assert render_common_metadata(schema, ["p"], own) == own


def test_a_new_column_changes_no_other():
    schema = read_common_metadata(of_others()).append(pa.field("b", pa.int32())).remove(2)
    data = render_common_metadata(schema, ["p"], of_others(), ["t"])
    found = pq.read_schema(pa.BufferReader(data))
    assert list(zip(found.names, found.types, strict=True)) == [
        ("p", pa.large_string()),
        ("b", pa.int64()),
        ("d", pa.decimal128(3, 2)),
        ("t", pa.duration("us")),
    ]
    columns = {item["name"]: item for item in json.loads(found.metadata[b"pandas"])["columns"]}
    assert columns["d"]["mine"] == 1 and columns["b"]["numpy_type"] == "int64"
    assert columns_without_class(render_common_metadata(schema, ["p"], of_others())) == {}


def test_refusals():
    with pytest.raises(FormatError):
        render_common_metadata(SCHEMA, ["missing"])
    with pytest.raises(FormatError):
        render_common_metadata(pa.schema([("x", pa.int8()), ("x", pa.int8())]), [])
    with pytest.raises(TypeClassError):
        render_common_metadata(pa.schema([("x", pa.duration("s"))]), [])
    whole = render_common_metadata(SCHEMA, [])
    for data in (b"", b"PAR1", b"x" * 100, whole[:-8], whole[20:]):
        with pytest.raises(FormatError):
            read_common_metadata(data)


@pytest.mark.parametrize("said", [{"columns": 7}, {"columns": {"a": 1}}, {"columns": "ab"}])
def test_damaged_metadata_of_pandas_are_a_format_error(said):
    schema = pa.schema([("a", pa.int64())], {b"pandas": json.dumps(said).encode()})
    with pytest.raises(FormatError, match="schema file is damaged"):
        read_common_metadata(_file(schema))


def test_columns_that_pandas_names_oddly_are_kept():
    said = {"columns": [{"field_name": [1]}, {"field_name": {"a": 1}}, 3, None]}
    schema = pa.schema([("a", pa.int64())], {b"pandas": json.dumps(said).encode()})
    assert read_common_metadata(_file(schema)).names == ["a"]


@pytest.mark.parametrize("nested", [lambda t: t, pa.list_, lambda t: pa.struct([("x", t)])])
def test_an_unknown_time_zone_is_a_format_error(nested):
    zoned = pa.schema([("a", nested(pa.timestamp("us", "No/Such")))])
    with pytest.raises(FormatError, match="has an unknown time zone, No/Such"):
        read_common_metadata(_file(zoned))


def _file(schema):
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    return sink.getvalue().to_pybytes()
