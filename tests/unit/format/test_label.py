import pyarrow as pa
import pytest

from ktk_engine.errors import FormatError
from ktk_engine.format.label import parse_label, partition_path, partition_table, split_label
from ktk_engine.format.percent_encoding import unquote

SCHEMA = pa.schema([("country", pa.string()), ("n", pa.int8()), ("x/ y", pa.bool_())])


def test_kartotheks_slashes_are_kept():
    texts, base = parse_label("country=J%20P/%C3%BC/0a1b", ["country"])
    assert ({k: unquote(v) for k, v in texts.items()}, base) == ({"country": "J P/ü"}, "0a1b")
    label = "country=a/b/n=1/x/%20y=False/c"
    table = partition_table([label], ["country", "n", "x/ y"], SCHEMA)
    assert table.to_pylist() == [{"country": "a/b", "n": 1, "x/ y": False}]
    assert table.schema.types == [pa.string(), pa.int64(), pa.bool_()]
    # The values `x/` and `/`, and an empty one.
    labels = ["country=x//c", "country=//c", "country=/c"]
    assert partition_table(labels, ["country"], SCHEMA)["country"].to_pylist() == ["x/", "/", ""]


def test_our_paths():
    path = partition_path(["country", "x/ y"], ["a/b", True], [pa.string(), pa.bool_()])
    assert path == "country=a%2Fb/x%2F%20y=True"
    assert partition_path([], [], []) == ""


def test_split():
    assert split_label("a%20b=1/c=%2F/base") == ((("a b", "1"), ("c", "%2F")), "base")
    assert split_label("a=x/y/c=/base") == ((("a", "x/y"), ("c", "")), "base")
    assert split_label("base") == ((), "base")
    with pytest.raises(FormatError):
        split_label("a/base")


@pytest.mark.parametrize("label", ["base", "n=1/country=a/base", "country=a/base", "country=a/n=1"])
def test_labels_without_the_columns(label):
    for call in (
        lambda: parse_label(label, ["country", "n"]),
        lambda: partition_table(["country=a/n=1/b", label], ["country", "n"], SCHEMA),
    ):
        with pytest.raises(FormatError) as caught:
            call()
        assert repr(label) in str(caught.value)


def test_a_bad_value_is_named_with_its_column():
    with pytest.raises(FormatError, match=r"'n'.*'x'"):
        partition_table(["n=x/b"], ["n"], SCHEMA)
    with pytest.raises(FormatError, match="'z'"):
        partition_table(["z=x/b"], ["z"], SCHEMA)


def test_without_partition_columns():
    table = partition_table(["a", "b/c"], [], SCHEMA)
    assert (table.num_rows, table.num_columns) == (2, 0)
    assert parse_label("b/c", []) == ({}, "b/c")
    assert partition_table([], [], SCHEMA).num_rows == 0
    assert partition_table(pa.chunked_array([["n=1/b"], ["n=2/b"]]), ["n"], SCHEMA).num_rows == 2
    assert partition_table([], ["n"], SCHEMA).schema == pa.schema([("n", pa.int64())])
