from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import DataError, FormatError
from ktk_engine.format.index_file import (
    build_index,
    flatten_index,
    merge_indices,
    read_index,
    render_index,
    restrict_index,
)

VALUES = [
    (pa.int8(), [3, 1, 2]),
    (pa.uint64(), [2**64 - 1, 0, 5]),
    (pa.float32(), [0.5, -0.25, float("inf")]),
    (pa.bool_(), [True, False, True]),
    (pa.string(), ["ü", "", "a"]),
    (pa.binary(), [b"\xff", b"", b"a"]),
    (pa.date32(), [date(2020, 1, 1), date(1900, 1, 1), date(2020, 1, 2)]),
    (pa.timestamp("ns"), [datetime(2020, 1, 1), datetime(1900, 1, 1), datetime(2020, 1, 2)]),
    (pa.timestamp("us", "UTC"), [3, 1, 2]),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "b"]),
]


def as_dict(index):
    return dict(zip(index["value"].to_pylist(), index["partition"].to_pylist(), strict=True))


def build(pairs, t=None):
    t = t or pa.int64()
    values, labels = zip(*pairs, strict=True) if pairs else ((), ())
    return build_index(pa.array(values, t), pa.array(labels, pa.string()))


@pytest.mark.parametrize(("t", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_round_trip_of_every_class(t, values):
    index = build(list(zip(values, ["b", "a", "b"], strict=True)), t)
    data = render_index("column", index)
    assert read_index(data).equals(index)
    assert read_index(pa.BufferReader(data)).equals(index)
    stored = index["value"].to_pylist()
    assert stored == sorted(stored)
    file = pq.ParquetFile(pa.BufferReader(data))
    assert file.schema_arrow.names == ["column", "partition"]
    assert file.metadata.format_version == "1.0"
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    assert file.metadata.row_group(0).column(1).path_in_schema == "partition.list.item"
    assert b"pandas" not in (file.schema_arrow.metadata or {})


PAIRS = st.lists(
    st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["p=1/a", "p=2/a", "p=3/ü", ""]))
)


def model(pairs):
    result = {}
    for value, label in pairs:
        if value is not None:
            result.setdefault(value, set()).add(label)
    return {value: sorted(result[value]) for value in sorted(result)}


@settings(max_examples=50, deadline=None)
@given(PAIRS, PAIRS, st.sets(st.sampled_from(["p=1/a", "p=2/a", "x"])))
def test_against_a_model(a, b, removed):
    first, second = build(a), build(b)
    assert as_dict(first) == model(a)
    assert list(as_dict(first)) == sorted(as_dict(first))
    merged = merge_indices(first, second)
    assert as_dict(merged) == model(a + b)
    rest = restrict_index(merged, pa.array(sorted(removed), pa.string()))
    assert as_dict(rest) == model([pair for pair in a + b if pair[1] not in removed])
    pairs = flatten_index(merged)
    assert pairs.column_names == ["value", "label"]
    assert build_index(pairs["value"], pairs["label"]).equals(merged)


def test_a_large_index_is_sorted():
    """Arrow's groups come in any order once there are more than some thousand rows."""
    count = 100_000
    values = pa.array([(i * 7919) % 1000 for i in range(count)])
    labels = pa.array([f"p={i % 330}/x" for i in range(count)])
    index = build_index(values, labels.dictionary_encode())
    expected = model(zip(values.to_pylist(), labels.to_pylist(), strict=True))
    assert list(as_dict(index).items()) == list(expected.items())
    many = build_index(pa.array(range(25_000, 0, -1)), pa.array(["a"] * 25_000))
    file = pq.ParquetFile(pa.BufferReader(render_index("x", many)))
    rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert rows == [10_000, 10_000, 5_000]


def test_rendering_sorts():
    table = pa.table({"value": [2, 1], "partition": [["b"], ["a"]]})
    assert read_index(render_index("x", table))["value"].to_pylist() == [1, 2]


def test_floats():
    values = pa.array([0.0, -0.0, float("nan"), float("nan"), None])
    index = build_index(values, pa.array(["a", "b", "a", "b", "c"]))
    assert index["partition"].to_pylist() == [["a", "b"], ["a", "b"]]
    assert str(index["value"].to_pylist()) == "[0.0, nan]"


def test_chunks_and_nothing():
    values = pa.chunked_array([[1], [], [2, 1]])
    labels = pa.chunked_array([["a", "b"], ["c"]])
    assert as_dict(build_index(values, labels)) == {1: ["a", "c"], 2: ["b"]}
    empty = build([], pa.string())
    assert read_index(render_index("x", empty)).equals(empty)
    assert merge_indices(empty, empty).num_rows == 0


def test_the_indexed_column_may_be_called_value():
    index = build([(1, "a")])
    assert read_index(render_index("value", index)).equals(index)
    swapped = pa.table({"partition": [["a"]], "value": [1]})
    sink = pa.BufferOutputStream()
    pq.write_table(swapped, sink)
    assert read_index(sink.getvalue().to_pybytes()).equals(index)


def test_refusals():
    index = build([(1, "a")])
    with pytest.raises(FormatError, match="partition"):
        render_index("partition", index)
    for t in (pa.decimal128(3, 1), pa.time64("us"), pa.null(), pa.list_(pa.int64())):
        table = pa.table([pa.array([], t), index["partition"][:0]], ["value", "partition"])
        with pytest.raises(FormatError, match="'x'"):
            render_index("x", table)
    with pytest.raises(FormatError):
        merge_indices(index, build([("1", "a")], pa.string()))
    with pytest.raises(DataError):
        build([(1, "a")], pa.timestamp("ns"))
    whole = render_index("x", index)
    for data in (b"", b"x" * 100, whole[:-9], whole[30:]):
        with pytest.raises(FormatError):
            read_index(data)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    with pytest.raises(FormatError, match="columns"):
        read_index(sink.getvalue().to_pybytes())
