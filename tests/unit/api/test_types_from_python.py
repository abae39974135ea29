"""Types of other libraries, from Python: each has a class or is refused by the column's name."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, DataError, TypeClassError
from tests.support.stores import tree

KEY = uuid.UUID(int=7).bytes
TEXT = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["x"]))
LISTS = [[1, 2], None, [], [3]]
FOUND = {
    "run-end encoded": (TEXT, ["x", "x"]),
    "list of run-end encoded": (
        pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), TEXT),
        [["x", "x"]],
    ),
    "text view": (pa.array(["a", None], pa.string_view()), ["a", None]),
    "bytes view": (pa.array([b"a", None], pa.binary_view()), [b"a", None]),
    "list view": (pa.array(LISTS, pa.list_view(pa.int64())), LISTS),
    "large list view": (pa.array(LISTS, pa.large_list_view(pa.int64())), LISTS),
    "part of a list view": (pa.array([[9], *LISTS], pa.list_view(pa.int64())).slice(1), LISTS),
    "list view in a struct": (
        pa.array([{"a": [1]}, None, {"a": None}], pa.struct([("a", pa.list_view(pa.int64()))])),
        [{"a": [1]}, None, {"a": None}],
    ),
    "map to list views": (
        pa.array([[("k", [1])], None, []], pa.map_(pa.string(), pa.list_view(pa.int64()))),
        [[("k", [1])], None, []],
    ),
    "last day": (pa.array([dt.date(9999, 12, 31), dt.date(1, 1, 1)]), None),
    "last time": (pa.array([dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]), None),
}
if hasattr(pa, "json_"):  # since pyarrow 19
    FOUND["uuid"] = (pa.array([KEY, None], pa.uuid()), [KEY, None])
    FOUND["json"] = (pa.array(["{}", None], pa.json_()), ["{}", None])
    one = pa.array([0, 1], pa.int32())
    FOUND["list of uuid"] = (
        pa.ListArray.from_arrays(one, pa.array([KEY], pa.uuid())),
        [[KEY]],
    )
    FOUND["struct of json"] = (
        pa.StructArray.from_arrays([pa.array(["{}"], pa.json_())], names=["a"]),
        [{"a": "{}"}],
    )
for bits in (32, 64):
    made = getattr(pa, f"decimal{bits}", None)
    if made:
        FOUND[f"decimal{bits}"] = (pa.array([Decimal("1.25"), None], made(9, 2)), None)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_stored_and_read_again(tmp_path, name):
    values, expected = FOUND[name]
    store = Store(tmp_path)
    for mode in ("overwrite", "append"):
        store.write_table("t", pa.table({"v": values}), mode=mode)
    found = Store(tmp_path).table("t").query().to_arrow()["v"].to_pylist()
    assert found == 2 * (values.to_pylist() if expected is None else expected)
    nested = pa.types.is_nested(store.table("t").schema.field("v").type)
    if not nested:
        first = next(value for value in found if value is not None)
        if not isinstance(first, bytes | Decimal):
            assert store.table("t").query(where=f"v = '{first}'").count() >= 2


def days(number: int) -> pa.Array:
    return pa.array([0, number], pa.int32()).cast(pa.date32())


def times(number: int, t: pa.DataType) -> pa.Array:
    return pa.array([0, number], pa.int64()).cast(t)


BEYOND = {
    "far day": (days(3_790_000), "12346-"),
    "infinite day": (days(2**31 - 1), "2147483647"),
    "early day": (days(-(2**31) + 2), "-2147483646"),
    "far time": (times(2**62, pa.timestamp("us")), "4611686018427387904"),
    "far instant": (times(-(2**62), pa.timestamp("us", "UTC")), "-4611686018427387904"),
    "far second": (times(2**62, pa.timestamp("s")), "4611686018427387904"),
    "hour 24": (times(86_400_000_000, pa.time64("us")), ""),
    "far day in a list": (pa.array([[0], [1, 3_790_000]], pa.list_(pa.int32())), "12346-"),
}
BEYOND["far day in a list"] = (
    BEYOND["far day in a list"][0].cast(pa.list_(pa.date32())),
    "12346-",
)


ROLES = [
    (name, layout)
    for name, (values, _) in BEYOND.items()
    for layout in ({}, {"partition_by": ["v"]}, {"indexes": ["v"]})
    if not layout or not (pa.types.is_nested(values.type) or pa.types.is_time(values.type))
]


@pytest.mark.parametrize(("name", "layout"), ROLES)
def test_what_no_calendar_has_is_refused_by_column_and_value(tmp_path, name, layout):
    values, example = BEYOND[name]
    store = Store(tmp_path)
    store.write_table("other", pa.table({"a": [1]}))
    before = tree(tmp_path)
    with pytest.raises(DataError, match=r"1 row has a (date or time|value) in `v`") as caught:
        store.write_table("t", pa.table({"v": values, "a": [1, 2]}), **layout)
    assert example in str(caught.value)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "zone",
    ["Etc/UTC", "+00:00", "-00:00", "Z", "Zulu", "GMT", "Etc/GMT", "Etc/Universal", "UCT", "utc"],
)
def test_all_names_of_utc_are_utc(tmp_path, zone):
    t, utc = pa.timestamp("us", zone), pa.timestamp("us", "UTC")

    def rows(first, type_):
        instants = pa.array([first, first + 1], pa.int64()).cast(type_)
        nested = pa.StructArray.from_arrays([instants], names=["at"])
        return pa.table({"k": [first, first + 1], "at": instants, "in": nested})

    store = Store(tmp_path)
    store.write_table("t", rows(0, utc))
    store.write_table("t", rows(2, t))
    store.write_table("t", rows(2, t), "merge", key=["k"])
    found = store.table("t").query().to_arrow().sort_by("k")
    assert found["at"].type == utc and found["in"].type == pa.struct([("at", utc)])
    assert found["at"].cast(pa.int64()).to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("zone", ["Mars/Phobos", "+25:00", "GMT+1", "America/Argentina", "a\0b"])
def test_time_zones_that_python_does_not_know_are_refused(tmp_path, zone):
    values = times(0, pa.timestamp("us", zone))
    for column in (values, pa.array([[], None], pa.list_(values.type))):
        with pytest.raises(TypeClassError, match="Python knows no such time zone"):
            Store(tmp_path).write_table("t", pa.table({"v": column}))
    assert not tree(tmp_path)


NO_CLASS = {
    "union": pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    ),
    "interval": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "duration": pa.array([1], pa.duration("us")),
}


@pytest.mark.parametrize("name", NO_CLASS)
def test_other_types_are_refused_by_name(tmp_path, name):
    with pytest.raises(TypeClassError, match=r"\| v .*has no type class"):
        Store(tmp_path).write_table("t", pa.table({"v": NO_CLASS[name]}))
    assert not tree(tmp_path)


def test_a_named_index_of_pandas_is_never_dropped(tmp_path):
    store = Store(tmp_path)
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="k"))
    two = pd.DataFrame({"k": [1], "b": [2], "a": [3]}).set_index(["k", "b"])
    for write in (
        lambda: store.write_table("t", frame),
        lambda: store.write_table("t", [frame, frame]),
        lambda: store.write_table("t", two),
        lambda: store.build("c", {"seed": frame}, dimension_columns=["a"]),
    ):
        with pytest.raises(DataError, match=r"has k(, b)? in its index.*reset_index\(\)"):
            write()
    assert not tree(tmp_path)
    store.write_table("t", frame.reset_index())
    store.write_table("u", frame.rename_axis(None))
    assert store.table("t").schema.names == ["k", "a"]
    assert store.table("u").schema.names == ["a"]


def test_nan_as_a_partition_value_is_refused_by_column(tmp_path):
    rows = pa.table({"v": [1.5, float("nan")], "a": [1, 2]})
    with pytest.raises(DataError, match="1 row has NaN in `v`, which is a partition column"):
        Store(tmp_path).write_table("t", rows, partition_by=["v"])
    assert not tree(tmp_path)


BROKEN = pa.array([b"a", b"\xff"]).view(pa.string())


@pytest.mark.parametrize(
    "values",
    [
        BROKEN,
        BROKEN.cast(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
        pa.array([b"a", b"\xed\xa0\x80"]).view(pa.string()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), BROKEN),
        pa.ListArray.from_arrays([0, 1, 2], BROKEN),
        pa.StructArray.from_arrays([BROKEN], names=["a"]),
    ],
    ids=["text", "large text", "half a character", "dictionary", "list", "struct"],
)
def test_texts_that_are_not_utf8_are_refused_by_column(tmp_path, values):
    store = Store(tmp_path)
    rows = pa.table({"v": values, "a": [1, 2]})
    store.write_table("t", rows.slice(0, 0))
    before = tree(tmp_path)
    layouts = [{}] if pa.types.is_nested(values.type) else [{}, {"partition_by": ["v"]}]
    for name, options in [*(("u", layout) for layout in layouts), ("t", {"mode": "merge"})]:
        key = {"key": ["a"]} if options.get("mode") else {}
        with pytest.raises(DataError, match=r"Values in `v` are invalid in Arrow"):
            store.write_table(name, rows, **options, **key)
    if not pa.types.is_nested(values.type):
        with pytest.raises(DataError, match=r"Values in `v` are invalid in Arrow"):
            store.write_table("t", rows, "merge", key=["v"])
    assert tree(tmp_path) == before


def test_types_of_polars_that_arrow_does_not_know_are_refused(tmp_path):
    store, wide = Store(tmp_path), pl.Series("v", [2**100], pl.Int128)
    with pytest.raises(DataError, match="Dataset t: a column of the frame has a type that Arrow"):
        store.write_table("t", pl.DataFrame([wide]))
    with pytest.raises(DataError, match="rows must be a frame"):
        store.write_table("t", pl.Series("v", [1]))


OBJECTS = {
    "an integer beyond 64 bits": ([2**70, 1], "column `v`: an integer has more than 64 bits"),
    "one below": ([-(2**63) - 1], "column `v`: an integer has more than 64 bits"),
    "half a character": (["\ud800"], "column `v`: a text has half of a surrogate pair"),
    "half a character in a list": ([["\ud800"]], "column `v`: a text has half of a surrogate pair"),
    "a date and a datetime": (
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 3)],
        "`v` has datetime",
    ),
    "zones and none": ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], "zone"),
    "a time with a zone": ([None, dt.time(1, tzinfo=dt.UTC)], "`v` has times with a time zone"),
    "nanoseconds": ([pd.Timestamp(1, unit="ns"), None], "`v` has nanoseconds"),
    "text and bytes": (["a", b"b"], "`v` has texts and bytes"),
    "a number and a flag": ([1.5, True], "`v` has booleans and numbers"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_of_pandas_never_become_other_values(tmp_path, name):
    values, said = OBJECTS[name]
    frame = pd.DataFrame({"k": range(len(values)), "v": pd.Series(values, dtype=object)})
    store = Store(tmp_path)
    for write in (
        lambda: store.write_table("t", frame),
        lambda: store.build("c", {"seed": frame}, dimension_columns=["k"]),
    ):
        with pytest.raises(DataError, match=said) as error:
            write()
        assert "Nothing was written" in str(error.value)
    assert not tree(tmp_path)


MIXTURES = [name for name, (_, said) in OBJECTS.items() if "column `v`: a" not in said]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda values: [[value] for value in values],
        lambda values: [(None, *values)],
        lambda values: [{"f": value, "g": 1} for value in values],
        lambda values: [[{"f": [value]}] for value in values],
        lambda values: [np.array(values, dtype=object)],
    ],
    ids=["lists", "tuple", "dicts", "dicts in lists", "array"],
)
@pytest.mark.parametrize("name", MIXTURES)
def test_objects_in_lists_and_dicts_neither(tmp_path, name, wrap):
    values, said = OBJECTS[name]
    frame = pd.DataFrame({"v": pd.Series(wrap(values), dtype=object)})
    with pytest.raises(DataError, match=said.replace("column ", "")):
        Store(tmp_path).write_table("t", frame)
    assert not tree(tmp_path)


@pytest.mark.parametrize("name", ["a date and a datetime", "zones and none", "text and bytes"])
def test_objects_of_categories_neither(tmp_path, name):
    values, said = OBJECTS[name]
    frame = pd.DataFrame({"v": pd.Categorical(pd.Series(values, dtype=object))})
    with pytest.raises(DataError, match=said):
        Store(tmp_path).write_table("t", frame)


def test_lists_and_dicts_of_one_type_are_stored(tmp_path):
    day = dt.datetime(2020, 1, 1, 5)
    values = {
        "lists": [[1.5, None], [], None],
        "times": [[day, None, pd.NaT], [pd.Timestamp(day)], None],
        "dicts": [{"a": 1}, {"b": "x"}, None],
        "arrays": [np.array([1.5]), np.array([2.5, np.nan]), None],
        "grids": [[[1], [2]], [np.array([3])], None],
        "dates": [np.array([], dtype=object), np.array([day.date()], dtype=object), None],
    }
    frame = pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in values.items()})
    found = Store(tmp_path).write_table("t", frame).query().to_arrow()
    assert found["times"].to_pylist() == [[day, None, None], [day], None]
    assert found["dicts"].to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}, None]
    assert found["grids"].to_pylist() == [[[1], [2]], [[3]], None]
    assert found["dates"].to_pylist() == [[], [day.date()], None]


class Frame(pd.DataFrame):
    """As geopandas and many projects have one."""

    @property
    def _constructor(self):
        return Frame


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (Frame({"g": ["a", "a"], "v": [1, 2]}).groupby("g").sum(), "has g in its index"),
        (Frame([[1, 2]]), "names of columns must be text"),
        (Frame([[1, 2]], columns=["x", "x"]), "several columns `x`"),
        (Frame({"v": OBJECTS["a date and a datetime"][0]}), "`v` has datetimes and other"),
        (Frame({"v": [2**70]}), "more than 64 bits"),
        (
            pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)),
            r"a column is called '.ud800', with half of a surrogate",
        ),
        (pd.DataFrame(index=[1, 2]), "has no columns"),
    ],
)
def test_frames_of_subclasses_and_odd_names(tmp_path, frame, said):
    store = Store(tmp_path)
    for rows in (frame, [frame]):
        with pytest.raises(DataError, match=said):
            store.write_table("t", rows)
    assert not tree(tmp_path)


def test_the_index_of_a_filtered_subclass_is_no_column(tmp_path):
    frame = Frame({"v": [1, 2, 3]})
    found = Store(tmp_path).write_table("t", frame[frame.v > 1]).query().to_arrow()
    assert found.to_pydict() == {"v": [2, 3]}


def test_python_objects_of_polars_are_refused(tmp_path):
    frame = pl.DataFrame({"k": [1], "u": [uuid.UUID(int=1)]})
    store = Store(tmp_path)
    for rows in (frame, [frame.select("k").with_columns(u=pl.lit("x")), frame]):
        with pytest.raises(DataError, match="column `u` of the Polars frame holds Python objects"):
            store.write_table("t", rows)
    assert not tree(tmp_path)


@pytest.mark.parametrize(
    "values", [[[1, 2]], [{"a": 1}], pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))]
)
def test_rows_are_not_sorted_by_nested_columns(tmp_path, values):
    store, rows = Store(tmp_path), pa.table({"n": values, "k": [1]})
    with pytest.raises(ConfigurationError, match=r"clustered_by names `n`, a column of .*sorted"):
        store.write_table("t", rows, clustered_by=["n"])
    assert not tree(tmp_path)
    assert store.write_table("t", rows, clustered_by=["k"]).rows == 1


@pytest.mark.parametrize("layout", ["dimension_columns", "partition_by", "indexes"])
def test_a_column_without_a_name_has_no_role(tmp_path, layout):
    rows = pa.table({"": [1], "k": [1]})
    with pytest.raises(TypeClassError, match="column needs a name, which is that of a folder"):
        Store(tmp_path).build("c", rows, **{"dimension_columns": ["k"], layout: [""]})
    assert not tree(tmp_path)


@pytest.mark.parametrize("key", [["v"], ["v", "k"]])
def test_keys_in_dictionaries_are_merged(tmp_path, key):
    frame = pd.DataFrame({"k": [1, 2, 3], "v": ["a", "b", None]}).astype({"v": "category"})
    store = Store(tmp_path)
    store.write_table("t", frame)
    merged = store.write_table("t", frame.iloc[:2].assign(n=1).drop(columns="n"), "merge", key=key)
    assert merged.rows == 3
    again = pd.DataFrame({"k": [9], "v": ["b"]}).astype({"v": "category"})
    found = store.write_table("t", again, "merge", key=["v"]).query(["k"], "v = 'b'").to_arrow()
    assert found["k"].to_pylist() == [9]
