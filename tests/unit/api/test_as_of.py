"""The newest cells of events: the rows of DuckDB's asof join over the rows of the cube."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import dataclass
from random import Random

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, DataError, LocalEngineError, QueryError
from tests.support.random_cubes import TIMES

DAY = dt.datetime(2026, 1, 1)
BERLIN = "Europe/Berlin"


def day(number, hour=0):
    return DAY + dt.timedelta(days=number, hours=hour)


def days(*numbers, t=None):
    return pa.array([None if n is None else day(n) for n in numbers], t or pa.timestamp("us"))


@pytest.fixture
def opened(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def cube(opened):
    """Two customers; `score` has fewer cells than the seed dataset, and one that it lacks."""
    seed = pa.table({"customer": [1, 1, 2, 2], "at": days(1, 3, 1, 2), "base": [1, 2, 3, 4]})
    score = pa.table({"customer": [1, 2, 2], "at": days(1, 1, 9), "score": [10, 20, 99]})
    names = pa.table({"customer": [1, 2, 3], "name": ["a", "b", "gone"]})
    found = {"seed": seed, "score": score, "names": names}
    return opened.build("f", found, dimension_columns=["customer", "at"])


def answer(cube, events, on=("customer",), time="at", **more):
    """The columns of the cube, event by event."""
    asked = cube.as_of(events, list(on), time=time, **more)
    table = asked.to_arrow()
    assert table.schema.names[: events.num_columns] == events.schema.names
    given = table.select(events.schema.names).to_pydict()
    assert repr(given) == repr(events.to_pydict())
    return table.drop_columns(events.schema.names).to_pydict()


# What an event is -> what `base`, `score` and `name` it gets.
CASES = {
    "later": ((1, day(2)), (1, 10, "a")),
    "at the same time": ((1, day(3)), (2, 10, "a")),
    "a cell that the seed dataset lacks does not count": ((2, day(20)), (4, 20, "b")),
    "before the first cell": ((2, day(0)), (None, None, "b")),
    "a null time has no newest cell": ((2, None), (None, None, "b")),
    "a null key": ((None, day(5)), (None, None, None)),
    "an unknown key": ((7, day(5)), (None, None, None)),
    "a key without a cell": ((3, day(5)), (None, None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_event_gets_the_newest_cell_of_each_dataset(cube, case):
    (customer, at), wanted = CASES[case]
    events = pa.table(
        {"at": pa.array([at], pa.timestamp("us")), "customer": pa.array([customer], pa.int64())}
    )
    assert answer(cube, events) == dict(
        zip(
            ("base", "name", "score"),
            np.array([wanted[0], wanted[2], wanted[1]], object).reshape(3, 1).tolist(),
            strict=True,
        )
    )


def test_all_events_come_in_their_order(cube):
    rows = [event for event, _ in CASES.values()] * 3
    Random(5).shuffle(rows)
    customers, times = zip(*rows, strict=True)
    events = pa.table({"customer": customers, "at": times, "label": range(len(rows))})
    wanted = [dict(CASES.values())[row] for row in rows]
    found = answer(cube, events)
    assert list(zip(found["base"], found["score"], found["name"], strict=True)) == wanted


@pytest.mark.parametrize(
    ("within", "wanted"),
    [
        ("2 days", [1, 2, 2]),
        (dt.timedelta(days=2), [1, 2, 2]),
        ("47 hours", [None, 2, 2]),
        (dt.timedelta(days=2) - dt.timedelta(microseconds=1), [None, 2, 2]),
        (dt.timedelta(0), [None, 2, None]),
        ("0 days", [None, 2, None]),
        (None, [1, 2, 2]),
        (dt.timedelta.max, [1, 2, 2]),
    ],
)
def test_within_is_inclusive(opened, within, wanted):
    seed = pa.table({"customer": [1, 1], "at": [DAY, day(2, 12)], "base": [1, 2]})
    cube = opened.build("w", seed, dimension_columns=["customer", "at"])
    events = pa.table({"customer": [1] * 3, "at": [day(2), day(2, 12), day(3)]})
    assert answer(cube, events, within=within)["base"] == wanted


@pytest.mark.parametrize("within", ["7", "-1 days", dt.timedelta(-1), 7, True, "soon", 1.5, []])
def test_what_is_no_duration_is_refused(cube, within):
    events = pa.table({"customer": [1], "at": [DAY]})
    with pytest.raises((QueryError, ConfigurationError), match=r"within must be|not a duration"):
        cube.as_of(events, ["customer"], time="at", within=within)


NS = pa.array([1_767_225_600_000_000_999], pa.timestamp("ns"))  # DAY and 999 nanoseconds


@pytest.mark.parametrize(
    ("cells", "events", "within", "found"),
    [
        (days(0), days(0, t=pa.timestamp("s")), None, True),
        (days(0), days(0, t=pa.timestamp("ns")), "0 days", True),
        (days(0), NS, None, True),
        (days(0), NS, "0 days", False),
        (pa.array([day(0).date()]), days(0), None, True),
        (pa.array([day(0).date()]), pa.array([day(0, 5)]), "5 hours", True),
        (pa.array([day(0).date()]), pa.array([day(0, 5)]), "4 hours", False),
        (pa.array([day(0).date()]), pa.array([day(0).date()]), "0 days", True),
        (days(0), pa.array([day(0).date()]), "0 days", True),
        (pa.array([day(0, 1)]), pa.array([day(0).date()]), None, False),
        # 01:00 in Berlin is 00:00 in UTC
        (days(0, t=pa.timestamp("us", "UTC")), days(0, t=pa.timestamp("ms", BERLIN)), None, True),
        (days(0, t=pa.timestamp("us", BERLIN)), days(0, t=pa.timestamp("ns", "UTC")), "0s", True),
        (pa.array([5]), pa.array([5], pa.int32()), 0, True),
        (pa.array([5]), pa.array([8], pa.int8()), 2, False),
        (pa.array([5]), pa.array([8]), 3, True),
        (pa.array([-(2**63)]), pa.array([2**63 - 1]), None, True),
        (pa.array([-(2**63)]), pa.array([2**63 - 1]), 2**70, False),
        (pa.array([0]), pa.array([-5]), 3, False),
        (days(0), pa.nulls(1), "1 days", False),
        (days(0), days(0).dictionary_encode(), "1 days", True),
    ],
)
def test_times_are_compared_exactly(opened, cells, events, within, found):
    seed = pa.table({"customer": [1], "at": cells, "base": [4]})
    cube = opened.build("t", seed, dimension_columns=["customer", "at"])
    rows = pa.table({"customer": [1], "at": events})
    assert answer(cube, rows, within=within)["base"] == [4 if found else None]


@pytest.mark.parametrize(
    ("cells", "events"),
    [
        (days(0), days(0, t=pa.timestamp("us", "UTC"))),
        (days(0, t=pa.timestamp("us", "UTC")), days(0)),
        (days(0, t=pa.timestamp("us", "UTC")), pa.array([DAY.date()])),
        (days(0), pa.array([5])),
        (pa.array([5]), days(0)),
        (pa.array([5]), pa.array([5.0])),
        (days(0), pa.array(["2026-01-01"])),
        (pa.array(["2026-01-01"]), pa.array(["2026-01-01"])),
        (pa.array([5], pa.uint64()), pa.array([5], pa.uint64())),
    ],
)
def test_times_of_two_kinds_are_refused(opened, cells, events):
    seed = pa.table({"customer": [1], "at": cells, "base": [4]})
    cube = opened.build("t", seed, dimension_columns=["customer", "at"])
    with pytest.raises(QueryError, match=r"but should be one of|and has no time"):
        cube.as_of(pa.table({"customer": [1], "at": events}), ["customer"], time="at")


def test_times_with_and_without_a_zone_say_how_to_compare_them(opened):
    """Each fix is run as it is written."""
    names = {"pa": pa, "pc": pc}
    for cells, given in (
        (days(0), pa.array([dt.datetime(2025, 12, 31, 23)], pa.timestamp("us", "UTC"))),
        (pa.array([dt.datetime(2025, 12, 31, 23)], pa.timestamp("us", "UTC")), days(0)),
    ):
        seed = pa.table({"customer": [1], "at": cells, "base": [4]})
        cube = opened.build("t", seed, dimension_columns=["customer", "at"], overwrite=True)
        events = pa.table({"customer": [1], "at": given})
        with pytest.raises(QueryError, match="Berlin") as refused:
            cube.as_of(events, ["customer"], time="at")
        fix = str(refused.value).rpartition(": `")[2].rpartition("`")[0]
        fixed = eval(fix, {**names, "events": events})
        found = cube.as_of(
            events.set_column(1, "at", fixed), ["customer"], time="at", within="0 days"
        )
        assert found.to_arrow()["base"].to_pylist() == [4]


KEYS = [
    (pa.array(["a", "b", "a"]), pa.array(["b", None, "a"]).dictionary_encode()),
    (pa.array([1.5, float("nan"), -0.0]), pa.array([float("nan"), 0.0, 7.0])),
    (pa.array([True, False, True]), pa.array([True, None, False])),
    (pa.array([b"\xff", b"", b"x"]), pa.array([b"", b"\xff", None])),
    (pa.array([1, 2, 3], pa.uint64()), pa.array([3, None, 9], pa.uint8())),
    (pa.array([1, 2, 3]), pa.array([3, 2**62, -(2**62)])),
    (pa.array([DAY.date()] * 3), pa.array([DAY.date(), None, day(1).date()], pa.date64())),
    (pa.array(["x", "y", "z"]), pa.nulls(3)),
]


@pytest.mark.parametrize(("cells", "events"), KEYS, ids=lambda item: str(item.type))
def test_keys_of_each_class(opened, cells, events):
    at = days(0, 1, 2)
    cube = opened.build(
        "k", pa.table({"k": cells, "at": at, "v": [1, 2, 3]}), dimension_columns=["k", "at"]
    )
    rows = pa.table({"k": events, "at": days(5, 5, 5)})
    equal = [
        [None if b is None else a == b or (a != a and b != b) for a in cells.to_pylist()]
        for b in pa.table({"k": events.cast(cells.type)})["k"].to_pylist()
    ]
    wanted = [max((n + 1 for n in range(3) if row[n]), default=None) for row in equal]
    assert answer(cube, rows, on=["k"])["v"] == wanted


def test_keys_of_another_class_are_refused(cube):
    with pytest.raises(QueryError, match="column `customer` is int64, and that of the events"):
        cube.as_of(pa.table({"customer": ["1"], "at": [DAY]}), ["customer"], time="at")
    big = pa.table({"customer": pa.array([2**64 - 1], pa.uint64()), "at": [DAY]})
    with pytest.raises(QueryError, match="Cast it in the events"):
        cube.as_of(big, ["customer"], time="at")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"on": ["person"]}, "on and time must be different"),
        ({"on": ["base"]}, "on and time must be different"),
        ({"on": ["customer", "at"]}, "on and time must be different"),
        ({"on": "customer"}, "must be a list of names"),
        ({"time": "when"}, "on and time must be different"),
        ({"time": None}, "on and time must be different"),
        ({"columns": ["scores"]}, "did you mean `score`"),
        ({"columns": ["customer"]}, "`customer` in columns: keys and times of the answer are"),
        ({"columns": ["score", "score"]}, "named twice"),
        ({"columns": "score"}, "must be a list of names"),
        ({"on": None}, "on must be a list of names, but is None"),
    ],
)
def test_wrong_questions_are_refused(cube, asked, said):
    events = pa.table({"customer": [1], "at": [DAY]})
    with pytest.raises(QueryError, match=said):
        cube.as_of(events, **{"on": ["customer"], "time": "at", **asked})


def test_events_lack_no_column_and_repeat_none(cube):
    with pytest.raises(QueryError, match=r"the events have no column `at`.* customer, when"):
        cube.as_of(pa.table({"customer": [1], "when": [DAY]}), ["customer"], time="at")
    for name in ("score", "Score"):
        events = pa.table({"customer": [1], "at": [DAY], name: [1]})
        with pytest.raises(QueryError, match="both have the column `score`"):
            cube.as_of(events, ["customer"], time="at")
        assert answer(cube, events, columns=["base"]) == {"base": [None]}
    for wrong in (5, None, [DAY]):
        with pytest.raises(DataError):
            cube.as_of(wrong, ["customer"], time="at")


def test_events_of_other_libraries(cube):
    events = pa.table({"Customer": [1, 2], "AT": [day(2), day(1)]})
    frames = [
        events,
        events.to_pandas(),
        pl.from_arrow(events),
        events.to_reader(),
        events.to_batches(),
        iter(events.to_batches(1)),
        duckdb.from_arrow(events),
    ]
    for frame in frames:
        asked = cube.as_of(frame, ["customer"], time="at", columns=["score"])
        assert asked.to_arrow()["score"].to_pylist() == [10, 20]
        assert asked.to_arrow().schema.names == ["Customer", "AT", "score"]
    assert asked.to_pandas()["score"].tolist() == [10, 20]
    assert asked.to_polars()["score"].to_list() == [10, 20]
    assert asked.to_duckdb().aggregate("sum(score)").fetchall() == [(30,)]
    assert pl.DataFrame(asked)["score"].to_list() == [10, 20]


def test_no_events(cube):
    events = pa.table({"customer": pa.array([], pa.int64()), "at": pa.array([], pa.date32())})
    asked = cube.as_of(events, ["customer"], time="at")
    assert asked.to_arrow().num_rows == 0
    assert asked.to_arrow().schema.names == ["customer", "at", "base", "name", "score"]
    assert "files 1 -> 0" in asked.explain()


def test_where_says_which_rows_of_the_cube_count(cube):
    events = pa.table({"customer": [1, 2], "at": days(9, 9)})
    assert answer(cube, events, where="base < 4")["base"] == [2, 3]
    assert answer(cube, events, where="score > 10")["base"] == [None, 3]
    found = answer(cube, events, where="base < :most", parameters={"most": 2})
    assert found == {"base": [1, None], "name": ["a", None], "score": [10, None]}


@pytest.fixture
def sold(opened):
    """`price` has a dimension more than `score`."""
    cells = {"customer": [1, 1, 1], "product": ["x", "y", "x"], "at": days(1, 1, 2)}
    seed = pa.table({**cells, "seen": [1, 2, 3]})
    score = pa.table({"customer": [1, 1], "at": days(1, 2), "score": [10, 20]})
    found = {"seed": seed, "price": pa.table({**cells, "price": [5, 6, 7]}), "score": score}
    return opened.build("s", found, dimension_columns=["customer", "product", "at"])


def test_a_further_dimension_is_refused_or_chosen(sold):
    events = pa.table({"customer": [1, 1], "at": days(1, 5)})
    with pytest.raises(QueryError, match=r"Dataset price .* has the dimension product besides"):
        sold.as_of(events, ["customer"], time="at", columns=["price"])
    assert answer(sold, events, columns=["score"]) == {"score": [10, 20]}
    one = "product = 'y'"
    assert answer(sold, events, columns=["price", "score"], where=one) == {
        "price": [6, 6],
        "score": [10, 10],
    }
    several = sold.as_of(events, ["customer"], time="at", columns=["price"], where="product > 'a'")
    with pytest.raises(QueryError, match=r"several newest cells for 1 events.*product x and prod"):
        several.to_arrow()
    later = answer(sold, events.slice(1), columns=["price"], where="product > 'a'")
    assert later == {"price": [7]}
    by_both = pa.table({"product": ["y", "x"], "customer": [1, 1], "at": days(5, 5)})
    found = answer(sold, by_both, on=["product", "customer"])
    assert found == {"seen": [2, 3], "price": [6, 7], "score": [20, 20]}


def test_partition_columns_are_keys_times_and_ties(opened):
    seed = pa.table(
        {"customer": [1, 1, 2], "day": [1, 2, 2], "region": ["e", "e", "w"], "base": [1, 2, 3]}
    )
    cube = opened.build("p", seed, dimension_columns=["customer"], partition_by=["day", "region"])
    events = pa.table({"customer": [1, 1, 2], "day": [1, 5, 5], "region": ["e", "w", "w"]})
    assert answer(cube, events, on=["customer"], time="day")["base"] == [1, 2, 3]
    assert answer(cube, events, on=["region", "customer"], time="day")["base"] == [1, None, 3]
    with pytest.raises(QueryError, match="has the dimension customer besides region, day"):
        cube.as_of(events, ["region"], time="day")
    more = pa.table({"customer": [1], "day": [2], "region": ["w"], "base": [9]})
    cube = cube.append({"seed": more})
    assert answer(cube, events.slice(0, 1), on=["customer"], time="day")["base"] == [1]
    with pytest.raises(QueryError, match=r"customer 1, day 2: region e and region w\. Add region"):
        answer(cube, events, on=["customer"], time="day")
    assert answer(cube, events, time="day", where="region = 'w'")["base"] == [None, 9, 3]


def test_only_files_within_are_opened(opened):
    at = days(*range(0, 100, 5))
    rows = pa.table({"customer": [1] * 20, "at": at, "month": [d // 10 for d in range(0, 100, 5)]})
    scores = rows.append_column("score", pa.array(range(20)))
    cube = opened.build(
        "f",
        {"seed": rows, "e": scores},
        dimension_columns=["customer", "at"],
        partition_by=["month"],
    )
    events = pa.table({"customer": [1, 1], "at": days(12, 91)})
    asked = cube.as_of(events, ["customer"], time="at", within="7 days")
    assert asked.to_arrow()["score"].to_pylist() == [2, 18]
    (plan,) = (item.plan for item in asked.plans)
    assert [item.files.num_rows for item in plan.datasets] == [4, 4]
    assert asked.explain().count("files 10 -> 4") == 2
    everything = cube.as_of(events, ["customer"], time="at")
    assert everything.explain().count("files 10 -> 10") == 2
    assert (
        cube.as_of(events, ["customer"], time="at", where="month = 0")
        .explain()
        .count("files 10 -> 1")
        == 2
    )


def test_keys_prune_files(opened):
    rows = pa.table({"customer": range(40), "at": [DAY] * 40, "part": [n // 10 for n in range(40)]})
    cube = opened.build(
        "f",
        rows.append_column("v", pa.array(range(40))),
        dimension_columns=["customer", "at"],
        partition_by=["part"],
    )
    events = pa.table({"customer": [3, 35], "at": [DAY] * 2})
    asked = cube.as_of(events, ["customer"], time="at")
    assert "files 4 -> 2" in asked.explain()
    assert asked.to_arrow()["v"].to_pylist() == [3, 35]


def test_what_is_explained_stays_short(cube):
    """Keys are counted, and times are put together to a few intervals."""
    events = pa.table({"customer": range(9000), "at": [day(3 * n) for n in range(9000)]})
    asked = cube.as_of(events, ["customer"], time="at", within="1 day")
    said = asked.explain()
    assert "`customer` in (9,000 values) and (`at` >= timestamp_ntz" in said
    assert " or 80 more)" in said
    assert len(said) < 20_000
    assert asked.to_arrow()["base"].to_pylist()[:3] == [None, 2, None]


def test_memory_is_bounded(opened, monkeypatch):
    """Few events are answered at a time, and what is read is reduced piece by piece."""
    n = 3000
    seed = pa.table({"customer": [c % 50 for c in range(n)], "at": [c // 50 for c in range(n)]})
    names = {f"f{i}": pa.array(np.arange(n) * 1.0 + i) for i in range(20)}
    cube = opened.build(
        "m",
        {
            "seed": seed,
            "e": pa.table({**dict(zip(seed.schema.names, seed.columns, strict=True)), **names}),
        },
        dimension_columns=["customer", "at"],
    )
    events = pa.table({"customer": [c % 60 for c in range(n)], "at": [c // 40 for c in range(n)]})
    asked = cube.as_of(events, ["customer"], time="at")
    whole = asked.to_arrow()
    piece = "ktk_engine.local.newest_cells._PIECE_BYTES"  # deep: no public size of a piece
    monkeypatch.setattr(piece, 1)
    assert asked.to_arrow().equals(whole)
    parts = list(asked.to_batches(memory_limit=1_000_000))
    assert len(parts) > 1
    assert pa.Table.from_batches(parts).equals(whole)
    with pytest.raises(LocalEngineError, match="more than the limit"):
        asked.to_arrow(memory_limit=400_000)


def test_a_dataset_has_its_own_keys(opened):
    """Rates are the same for all customers, so a null customer has one, too."""
    seed = pa.table({"customer": [1, 1, 2], "at": [1, 3, 2], "base": [1, 2, 3]})
    rates = pa.table({"at": [1, 2, 3, 4], "rate": [10, 20, 30, 40]})
    cube = opened.build("r", {"seed": seed, "rates": rates}, dimension_columns=["customer", "at"])
    events = pa.table({"customer": [1, None], "at": [2, 9]})
    assert answer(cube, events) == {"base": [1, None], "rate": [20, 30]}
    assert answer(cube, events, on=[], columns=["rate"]) == {"rate": [20, 30]}
    with pytest.raises(QueryError, match="has the dimension customer besides at"):
        cube.as_of(events, [], time="at")


def test_an_old_version_stays(cube):
    events = pa.table({"customer": [2], "at": days(20)})
    newer = cube.append({"seed": pa.table({"customer": [2], "at": days(9), "base": [5]})})
    assert answer(newer, events)["score"] == [99]
    assert answer(newer.at(cube.version), events)["score"] == [20]


# Random cubes and events beside DuckDB.


@dataclass
class Dataset:
    name: str
    address: list[str]
    rows: list[dict]


def random_rows(chance, columns, values, count):
    cells = {tuple(chance.choice(values[c]) for c in columns) for _ in range(count)}
    ordered = sorted(cells, key=str)
    chance.shuffle(ordered)
    return [dict(zip(columns, cell, strict=True)) for cell in ordered]


def random_cube(chance, store):
    """Keys `k` and `p`, where `p` may be a partition column; some datasets lack some of them."""
    texts = chance.random() < 0.5
    values = {
        "k": ["a", "b", "ü", ""] if texts else [1, 2, 3, 9],
        "p": [1, 2],
        "at": [DAY + dt.timedelta(hours=h) for h in range(0, 200, 7)],
    }
    partitions = chance.choice([[], ["p"]])
    found = []
    for number in range(chance.randint(2, 4)):
        address = ["k", "p", "at"]
        if number:
            address = chance.choice([address, ["k", "at"], ["k"], ["p", "at"], ["k", "p"]])
        rows = random_rows(chance, address, values, chance.choice([3, 20, 60]))
        for row in rows:
            row[f"v{number}"] = chance.choice([None, chance.random(), 1.0])
        found.append(Dataset(f"d{number}", address, rows))

    def table(item, rows):
        names = [*item.address, f"v{item.name[1:]}"]
        types = {"at": pa.timestamp("us"), "p": pa.int64(), names[-1]: pa.float64()}
        return pa.table({n: pa.array([r[n] for r in rows], types.get(n)) for n in names})

    # An enrichment partitioned by `p` has other dimensions besides.
    first = {item.name: item.rows[: chance.randint(1, len(item.rows))] for item in found}
    cube = store.build(
        "c",
        {item.name: table(item, first[item.name]) for item in found},
        seed="d0",
        dimension_columns=[c for c in ("k", "p", "at") if c not in partitions],
        partition_by=partitions,
    )
    for item in found:
        rest = item.rows[len(first[item.name]) :]
        if rest:
            again = [{**row, f"v{item.name[1:]}": 7.0} for row in first[item.name][:2]]
            cube = cube.append({item.name: table(item, [*rest, *again])})
            item.rows[:2] = again if len(again) == 2 else [*again, *item.rows[1:2]]
    return cube, found, values


def expected(seed, item, events, on, within):
    """What DuckDB answers for one dataset: its rows that are cells of the cube; None for a tie."""
    on = [c for c in on if c in item.address]
    time = "at" in item.address
    cells = {tuple(row[c] for c in item.address) for row in seed.rows}
    rows = [row for row in item.rows if tuple(row[c] for c in item.address) in cells]
    value = f"v{item.name[1:]}"
    if not rows:
        return [None] * events.num_rows
    types = {"at": pa.timestamp("us"), "p": pa.int64(), value: pa.float64()}
    names = [*item.address, value]
    known = pa.table({n: pa.array([r[n] for r in rows], types.get(n)) for n in names})
    con = duckdb.connect()
    con.register("events", events)
    con.register("known", known)
    met = " and ".join([*(f"e.{c} = k.{c}" for c in on), *(["e.at >= k.at"] if time else [])])
    join = "asof left join" if time else "left join"
    late = f"and e.at - k.at <= interval '{within} microseconds'" if time and within else ""
    group = ", ".join([*on, *(['"at"'] if time else [])])
    con.sql(
        f"create table once as select {group}, count(*) n, any_value({value}) a"
        f" from known group by {group}"
    )
    found = con.sql(
        f"select e.id, case when k.n is not null {late} then k.n end, "
        f"case when k.n is not null {late} then k.a end "
        f"from events e {join} once k on {met} order by e.id"
    ).fetchall()
    return None if any((n or 0) > 1 for _, n, _ in found) else [v for _, _, v in found]


def random_events(chance, values, count):
    return pa.table(
        {
            "at": pa.array(
                [
                    chance.choice(
                        [
                            None,
                            *(
                                t + dt.timedelta(minutes=chance.choice([-1, 0, 0, 1, 99]))
                                for t in chance.sample(values["at"], 9)
                            ),
                        ]
                    )
                    for _ in range(count)
                ],
                pa.timestamp("us"),
            ),
            "k": [chance.choice([None, *values["k"], *values["k"][:1]]) for _ in range(count)],
            "id": range(count),
            "p": pa.array([chance.choice([None, 1, 2, 2, 3]) for _ in range(count)], pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(8 * TIMES))
def test_random_events_beside_duckdb(opened, seed):
    chance = Random(seed)
    cube, found, values = random_cube(chance, opened)
    for _ in range(10):
        events = random_events(chance, values, chance.choice([1, 5, 80]))
        within = chance.choice([None, None, 1, 3_600_000_000, 7 * 3_600_000_000, 86_400_000_000])
        span = None if within is None else dt.timedelta(microseconds=within)
        on = chance.choice([["k", "p"], ["p", "k"], ["k"]])
        for item in found:
            value = f"v{item.name[1:]}"
            wanted = None
            extra = set(item.address) - {*on, "at"}
            if not extra or extra <= set(cube.specification.partition_columns):
                wanted = expected(found[0], item, events, on, within)
            if wanted is None:
                with pytest.raises(QueryError, match="several newest cells"):
                    cube.as_of(events, on, time="at", within=span, columns=[value]).to_arrow()
                continue
            rows = cube.as_of(events, on, time="at", within=span, columns=[value]).to_arrow()
            assert rows[value].to_pylist() == wanted, (item.name, on, within)


def test_pandas_can_work_with_the_texts_of_other_libraries(tmp_path):
    """Polars and DuckDB give views, which pandas can neither group nor sort nor compare."""
    seed = pa.table({"user": ["a", "b"], "at": [DAY, day(1)], "x": [1, 2]})
    cube = Store(tmp_path).build("c", seed, dimension_columns=["user", "at"])
    events = pl.DataFrame({"user": ["b", "a", "a"], "at": [day(9)] * 3, "tags": [["t"]] * 3})
    found = cube.as_of(events, ["user"], time="at").to_pandas()
    assert found.groupby("user").x.sum().to_dict() == {"a": 2, "b": 2}
    assert found.sort_values("user").x.tolist() == [1, 1, 2]
    assert found[found.user == "a"].tags.map(list).tolist() == [["t"], ["t"]]


def test_vectors_keep_their_stored_types(tmp_path):
    seed = pa.table({"user": [1, 2], "at": [DAY, DAY], "n": pa.array([7, 8], pa.int16())})
    vector = pa.list_(pa.float32(), 3)
    vectors = seed.select(["user", "at"]).append_column(
        "v", pa.array([[0.1, 0.2, 0.3], [1, 2, 3]], vector)
    )
    cube = Store(tmp_path).build(
        "c", {"cells": seed, "v": vectors}, seed="cells", dimension_columns=["user", "at"]
    )
    events = pa.table(
        {"user": [2, 9, 1], "at": [day(1)] * 3, "label": pa.array([1, 0, 1], pa.int8())}
    )
    asked = cube.as_of(events, ["user"], time="at", types="stored")
    for found in (asked, pickle.loads(pickle.dumps(asked))):
        rows = found.to_arrow()
        assert [rows.schema.field(name).type for name in ("label", "n", "v")] == [
            pa.int8(),
            pa.int16(),
            vector,
        ]
        assert rows["v"].to_pylist() == [[1, 2, 3], None, np.float32([0.1, 0.2, 0.3]).tolist()]
        assert rows["n"].to_pylist() == [8, None, 7]
    assert pa.concat_tables(asked.shard(i, 2).to_arrow() for i in range(2)).equals(rows)
    assert asked.to_reader().schema == rows.schema
    assert asked.to_polars()["v"].dtype == pl.Array(pl.Float32, 3)
    with pytest.raises(QueryError, match="There are no types 'own'"):
        cube.as_of(events, ["user"], time="at", types="own")


def test_parts_and_events_do_not_decide_about_types(tmp_path):
    vector = pa.list_(pa.float32(), 2)
    rows = {"user": [1, 2], "at": [DAY, DAY]}
    cells = pa.table(
        {**rows, "v": pa.array([[1, 2]] * 2, vector), "n": pa.array([1, 2], pa.int8())}
    )
    cube = Store(tmp_path).build("c", cells, dimension_columns=["user", "at"])
    later = {"user": [3], "at": [DAY], "v": pa.array([[1, 2, 3]]).cast(pa.list_(pa.float32()))}
    cube = cube.append({"seed": pa.table({**later, "n": [1_000]})})
    events = pa.table({"user": [1, 2, 3, 9], "at": [day(1)] * 4})
    asked = cube.as_of(events, ["user"], time="at", types="stored")
    schema = asked.to_arrow().schema
    assert schema.field("v").type == pa.list_(pa.float32())
    parts = [asked.shard(number, 4) for number in range(4)]
    none = cube.as_of(events.slice(0, 0), ["user"], time="at", types="stored")
    assert {part.to_arrow().schema for part in (*parts, none)} == {schema}
    prepared = cube.prepare(["v", "n"], "user = :user", types="stored")
    assert len({str(prepared(user=user).to_arrow().schema) for user in (1, 3, 9)}) == 1
