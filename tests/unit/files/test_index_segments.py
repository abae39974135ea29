"""Segments of indexes: what is written is found again, whatever class, order and bounds."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.conditions.condition import Comparison  # deep: what is looked up
from ktk_engine.conditions.evaluate import evaluate  # deep: what is looked up
from ktk_engine.conditions.parse import parse_condition  # deep: what is looked up
from ktk_engine.errors import FormatError
from ktk_engine.files.compact_segments import compact_segments, in_tiers, sorted_pairs
from ktk_engine.files.index_lookup import look_up
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.metadata_cache import IndexCache
from ktk_engine.snapshot.index_segment import segment_of_json  # deep: what is looked up
from ktk_engine.snapshot.snapshot import Snapshot, files_table  # deep: what is looked up
from tests.support.tiny_bounds import tiny_indices

TIMES = [dt.datetime(2020, 1, day + 1, 2) for day in range(5)]
NAN = pa.scalar(float("nan"))
VALUES = {
    "int64": [3, -(2**63), 2**63 - 1, 0, 7],
    "int8": pa.array([3, -128, 127, 0, 7], pa.int8()),
    "uint64": pa.array([3, 2**64 - 1, 2**63, 0, 7], pa.uint64()),
    "float": [3.5, float("inf"), -float("inf"), -0.0, 1e-300],
    "nan": [3.5, float("nan"), -1.0, 0.0, float("nan")],
    "only nan": [float("nan")] * 5,
    "bool": [True, False, True, False, True],
    "text": ["", "ü", "a" * 500, "\U0010ffff" * 70, "'"],
    "bytes": [b"", b"\xff" * 90, b"\x00", b"a", b"\xff"],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)]
    + [dt.date(2020, 2, 29)] * 2,
    "timestamp": pa.array(
        [dt.datetime(2020, 1, day + 1, 2) for day in range(5)], pa.timestamp("us")
    ),
    "zoned": pa.array([time.replace(tzinfo=dt.UTC) for time in TIMES], pa.timestamp("us", "UTC")),
    "nulls": [None, 1, None, 2, 1],
    "nothing": pa.array([None] * 5, pa.int64()),
    "dictionary": pa.array(["a", "b", "a", None, "c"]).dictionary_encode(),
}


@pytest.fixture(autouse=True)
def _tiny():
    with tiny_indices():
        yield


def place(store):
    return IndexPlace(store, "t", "f" * 32, "folder")


def indexed(store, values, rounds=5):
    """An index of several rounds of the same values in different files, merged in tiers."""
    values = values if isinstance(values, pa.Array) else pa.array(values)
    own = place(store)
    t = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    segments, first = (), 0
    expected = []
    for turn in range(rounds):
        parts = []
        for number in range(len(values)):
            shown = values.slice(number, 1 + (turn + number) % 2)
            plain = shown.dictionary_decode() if pa.types.is_dictionary(shown.type) else shown
            parts.append((pc.unique(plain), number, f"p={number % 2}/f{turn}{number}"))
            expected.append((first + number, pc.unique(plain).drop_null().to_pylist()))
        added = own.segments(t, parts)
        segments = own.in_tiers((*segments, *(item.moved(first) for item in added)))
        first += len(values)
    return segments, expected, pa.schema([("v", t)])


def snapshot(schema, segments, count):
    labels = [f"p={number % 2}/{number}" for number in range(count)]
    files = files_table(labels, labels, pa.table({}))
    return Snapshot("t", schema, (), files, index_segments={"v": segments})


@pytest.mark.parametrize("name", VALUES)
def test_every_pair_comes_back_in_order(store, name):
    segments, expected, schema = indexed(store, VALUES[name])
    wanted = sorted((repr(v + 0.0 if name == "float" else v), n) for n, vs in expected for v in vs)
    tables = [found.select(["value", "file"]) for found in sorted_pairs(store, segments)]
    found = pa.concat_tables(tables).to_pylist() if tables else []
    assert sorted((repr(pair["value"]), pair["file"]) for pair in found) == wanted
    if tables and "nan" not in name:
        values = pa.concat_tables(tables)["value"].combine_chunks()
        assert values.equals(values.take(pc.array_sort_indices(values)))
    t = schema.field("v").type
    assert tuple(segment_of_json(item.as_json(), t) for item in segments) == segments


CONDITIONS = {
    "int64": ["v = 3", "v > 0", "v < -5", "v in (0, 7)", "v <> 3", "v between 1 and 5"],
    "uint64": ["v = 18446744073709551615", "v > 3", "v = 5"],
    "float": ["v = 0.0", "v = -0.0", "v > 1", "v < 0", "v <> 0"],
    "nan": ["v > 100", "v = 3.5", "NaN", "v >= 0", "v < 0", "v <> 3.5"],
    "only nan": ["v > 100", "NaN", "v < 5"],
    "bool": ["v = true", "v = false"],
    "text": ["v = ''", "v = 'ü'", "v like 'a%'", "v > 'b'", "v = 'zzz'"],
    "date": ["v = date'9999-12-31'", "v < date'1970-01-01'", "v > date'2020-02-28'"],
    "timestamp": ["v = timestamp'2020-01-03 02:00:00'", "v > timestamp'2020-01-04'"],
    "nulls": ["v = 1", "v > 0", "v = 3"],
    "nothing": ["v = 1"],
    "dictionary": ["v = 'a'", "v > 'a'"],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, ts in CONDITIONS.items() for t in ts])
def test_lookups_find_what_a_scan_finds(store, name, text):
    segments, expected, schema = indexed(store, VALUES[name])
    t = schema.field("v").type
    condition = Comparison("v", "=", NAN) if text == "NaN" else parse_condition(text, schema)
    wanted = {
        number
        for number, values in expected
        if pc.any(evaluate(condition, pa.table({"v": pa.array(values, t)}))).as_py()
    }
    count = len(expected)
    known = IndexCache()
    for _ in range(2):
        hits = look_up(store, snapshot(schema, segments, count), "v", condition, known)
        assert set(hits.files.to_pylist()) == wanted
        assert set(hits.folders.to_pylist()) == {f"p={(number % 5) % 2}" for number in wanted}


def test_a_merge_never_divides_the_pairs_of_a_value(store):
    own = place(store)
    random = np.random.default_rng(1)
    segments = []
    for first in range(0, 60, 10):
        parts = [(pa.array(np.unique(random.integers(0, 6, 4))), n, f"f{n}") for n in range(10)]
        segments += [item.moved(first) for item in own.segments(pa.int64(), parts)]
    merged = compact_segments(store, own.new_key, segments, at_most=4)
    bounds = [(item.low.as_py(), item.high.as_py()) for item in merged]
    assert len(merged) > 2
    assert all(a[1] < b[0] for a, b in itertools.pairwise(bounds))
    assert sum(item.pairs for item in merged) == sum(item.pairs for item in segments)


def test_a_merge_drops_pairs_of_files_that_are_gone(store):
    own = place(store)
    segments = own.segments(pa.int64(), [(pa.array([1, 2]), n, f"f{n}") for n in range(6)])
    alive = np.array([False, True, False, False, True, False])
    merged = compact_segments(store, own.new_key, segments, alive=alive)
    assert [item.pairs for item in merged] == [4]
    assert compact_segments(store, own.new_key, segments, alive=np.zeros(6, bool)) == ()


def test_tiers_stay_few_and_small_merges_are_bounded(store):
    own, segments = place(store), ()
    for number in range(60):
        added = own.segments(pa.int64(), [(pa.array([number, number + 1]), 0, "f")])
        segments = in_tiers(store, own.new_key, (*segments, *(a.moved(number) for a in added)))
    assert len(segments) < 12
    assert sum(item.pairs for item in segments) == 120
    numbers = {n for t in sorted_pairs(store, segments) for n in t["file"].to_pylist()}
    assert numbers == set(range(60))


def test_damage_names_the_file(store):
    segments, _, schema = indexed(store, VALUES["int64"])
    data = bytearray(store.get(segments[0].key))
    data[len(data) // 3] ^= 1
    data[-30] ^= 1
    store.put(segments[0].key, bytes(data))
    with pytest.raises(FormatError, match=segments[0].key):
        look_up(
            store,
            snapshot(schema, segments, 25),
            "v",
            parse_condition("v > -9", schema),
            IndexCache(),
        )
