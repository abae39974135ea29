"""Polars and DuckDB over cubes and tables: the rows of a query, and no other file is opened."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.acero import Declaration, ScanNodeOptions

import ktk_engine.duckdb
import ktk_engine.polars
from ktk_engine import Store
from ktk_engine.api.frames_of_rows import check_for_polars
from ktk_engine.errors import (
    ConfigurationError,
    DatasetNotFoundError,
    LocalEngineError,
    QueryError,
)
from tests.support.random_cubes import examples
from tests.support.stores import LocalStore

DAY = dt.datetime(2025, 1, 1)
BERLIN = dt.timezone(dt.timedelta(hours=1))


def rows_of_flights():
    """Of three origins and two months; every class of type that a condition may name, and nulls."""
    number = range(60)
    return pa.table(
        {
            "origin": [("EWR", "JFK", "LGA")[n % 3] for n in number],
            "month": [1 + n // 30 for n in number],
            "flight": list(number),
            "dest": [("SFO", "LAX", "BOS", "SEA")[n % 4] for n in number],
            "delay": [None if n % 7 == 0 else n - 20 for n in number],
            "seats": pa.array([None if n % 5 == 0 else n for n in number], pa.uint64()),
            "speed": [(float("nan"), None, -0.0, 0.0, 400.5)[n % 5] for n in number],
            "fare": pa.array([Decimal(n) / 4 for n in number], pa.decimal128(12, 2)),
            "late": [(True, False, None)[n % 3] for n in number],
            "day": pa.array([DAY.date() + dt.timedelta(days=n % 40) for n in number]),
            "instant": pa.array([DAY + dt.timedelta(hours=n) for n in number], pa.timestamp("us")),
            "utc": pa.array(
                [None if n == 3 else DAY + dt.timedelta(minutes=n) for n in number],
                pa.timestamp("us", "UTC"),
            ),
            "code": [f"x{n}".encode() for n in number],
            "tags": [[f"t{n}", None] if n % 2 else None for n in number],
            "crew": [{"name": f"n{n}", "age": n} for n in number],
            "nothing": pa.nulls(60),
            "class": pa.array(["a" if n % 2 else "b" for n in number]).dictionary_encode(),
        }
    )


def rows_of_weather():
    return pa.table(
        {
            "origin": [o for o in ("EWR", "JFK") for _ in range(60)],
            "flight": [n for _ in range(2) for n in range(60)],
            "gust": [n / 2 if n % 3 else None for n in range(120)],
        }
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = Store(tmp_path_factory.mktemp("store"))
    opened.build(
        "trips",
        {"flights": rows_of_flights(), "weather": rows_of_weather()},
        seed="flights",
        dimension_columns=["flight"],
        partition_by=["origin", "month"],
        partition_on={"weather": ["origin"]},
        indexes=["dest"],
    )
    opened.write_table("fares", rows_of_flights(), partition_by=["month"], indexes=["dest"])
    return opened


SFO, MONTH = pl.col("dest") == "SFO", pl.col("month")
# A condition in SQL and of Polars.
QUESTIONS = {
    "everything": ("true", pl.lit(True)),
    "a partition": ("month = 1", MONTH == 1),
    "partitions": ("month = 2 and origin != 'EWR'", (MONTH > 1) & (pl.col("origin") != "EWR")),
    "an index": ("dest = 'SFO'", SFO),
    "a list": ("dest in ('SFO', 'BOS')", pl.col("dest").is_in(["SFO", "BOS"])),
    "statistics": ("flight between 3 and 5", pl.col("flight").is_between(3, 5)),
    "an enrichment": ("gust < 5", pl.col("gust") < 5),
    "nulls": ("delay is null and month = 2", pl.col("delay").is_null() & (MONTH == 2)),
    "one of two": ("flight = 7 or flight = 40", (pl.col("flight") == 7) | (pl.col("flight") == 40)),
    "not": ("not (month = 1) and not (dest = 'SFO')", ~(MONTH == 1) & ~SFO),
    "a time": (
        "instant >= timestamp '2025-01-03 00:00:00'",
        pl.col("instant") >= DAY + dt.timedelta(days=2),
    ),
    "a decimal": ("fare < 1.5", pl.col("fare") < Decimal("1.5")),
}


@pytest.fixture
def opened(monkeypatch):
    """Keys of the data files that are opened."""
    keys = set()
    for verb in ("get", "get_range", "get_ranges", "open_local", "local_path", "open_input"):
        if hasattr(LocalStore, verb):
            real = getattr(LocalStore, verb)

            def noted(self, key, *arguments, _real=real, **named):
                keys.update(k for k in ([key] if isinstance(key, str) else key) if _is_data(k))
                return _real(self, key, *arguments, **named)

            monkeypatch.setattr(LocalStore, verb, noted)
    return keys


def _is_data(key):
    return "/table/" in key


def planned(query):
    return {key for item in query.plan.datasets for key in item.files["key"].to_pylist()}


def ordered(table):
    return table.sort_by("flight").to_pylist()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("columns", [["flight", "dest"], ["flight", "gust", "late"]], ids=str)
# Each scan below opens a store of its own, which keeps no footer of an earlier one.
def test_twelve_questions(store, opened, question, columns):
    where, predicate = QUESTIONS[question]
    asked = store.cube("trips").query(columns, where)
    expected = ordered(asked.to_arrow())
    opened.clear()

    frame = ktk_engine.polars.scan_cube(store.url, "trips").filter(predicate).select(columns)
    assert not opened
    assert ordered(frame.collect().to_arrow()) == expected
    assert opened == planned(asked)
    opened.clear()

    trips = ktk_engine.duckdb.scan_cube(store.url, "trips")  # found by its name
    assert isinstance(trips, pa.dataset.Dataset)
    found = duckdb.sql(f"select {', '.join(columns)} from trips where {where}").to_arrow_table()
    assert ordered(found) == expected
    assert opened == planned(asked)


def test_a_table(store, opened):
    asked = store.table("fares").query(["flight"], "dest = 'SFO' and month = 2")
    expected, _ = ordered(asked.to_arrow()), opened.clear()
    where = (pl.col("dest") == "SFO") & (pl.col("month") == 2)
    frame = ktk_engine.polars.scan_table(store.url, "fares").filter(where).select("flight")
    assert ordered(frame.collect().to_arrow()) == expected
    assert opened == planned(asked)
    fares = ktk_engine.duckdb.scan_table(store.url, "fares")
    found = duckdb.sql("select flight from fares where dest = 'SFO' and month = 2")
    assert ordered(found.to_arrow_table()) == expected
    assert fares.scanner(["flight"], pc.field("month") == 2).explain().startswith("table fares")


def test_a_version_stays_the_same(store, tmp_path):
    own = Store(tmp_path)
    own.write_table("t", pa.table({"x": [1]}))
    frame = ktk_engine.polars.scan_table(tmp_path, "t")
    rows = ktk_engine.duckdb.scan_table(str(tmp_path), "t")
    assert rows.schema.names == ["x"]
    own.write_table("t", pa.table({"x": [2]}))
    assert frame.collect().height == 1
    assert duckdb.sql("from rows").fetchall() == [(1,)]
    assert ktk_engine.polars.scan_table(own, "t").collect().height == 2
    assert ktk_engine.polars.scan_table(own, "t", version=1).collect().height == 1
    with pytest.raises(DatasetNotFoundError, match="no_such"):
        ktk_engine.polars.scan_cube(own, "no_such")


def test_types_are_known_before_a_file_is_read(store, opened):
    frame = ktk_engine.polars.scan_cube(store, "trips")
    schema = frame.collect_schema()
    assert not opened
    assert (schema["fare"].scale, schema["tags"], schema["code"]) == (
        2,
        pl.List(pl.String),
        pl.Binary,
    )
    assert (schema["utc"], schema["nothing"]) == (pl.Datetime("us", "UTC"), pl.Null)
    assert frame.collect().schema == schema
    rows = store.cube("trips").query().to_polars()
    assert frame.collect().sort("flight").equals(rows.sort("flight"))
    trips = ktk_engine.duckdb.scan_cube(store, "trips")
    assert trips.schema == store.cube("trips").schema
    found = duckdb.sql("from trips order by flight").to_arrow_table()
    shown = found.select(["flight", "fare", "tags", "crew", "utc", "code", "day"]).to_pylist()
    asked = store.cube("trips").query(list(shown[0])).to_arrow().sort_by("flight")
    assert shown == asked.to_pylist()


def test_polars_has_no_wide_decimals():
    wide = pa.decimal256(60, 2)
    schema = pa.schema({"x": pa.decimal128(38, 2), "d": wide, "l": pa.list_(wide)})
    with pytest.raises(QueryError, match="more than 38 digits: `d`, `l`"):
        check_for_polars(schema)


def test_the_first_rows(store):
    frame = ktk_engine.polars.scan_cube(store, "trips")
    assert frame.head(5).collect()["flight"].to_list() == [0, 1, 2, 3, 4]
    assert frame.head(5).filter(pl.col("flight") > 3).collect()["flight"].to_list() == [4]
    assert frame.filter(pl.col("flight") > 3).head(5).collect().height == 5
    assert frame.filter(pl.col("month") == 2).select(pl.len()).collect().item() == 30
    assert frame.select("gust").head(0).collect().height == 0
    assert frame.head(1_000_001).collect().height == 60


def test_pieces_have_the_size_that_polars_wants(store):
    frame = ktk_engine.polars.scan_cube(store, "trips")
    sizes = [piece.height for piece in frame.collect_batches(chunk_size=7)]
    assert (sum(sizes), max(sizes)) == (60, 7)


def test_null_is_a_value_that_a_list_lacks(tmp_path):
    """A row with null passes the negation, where null matches null."""
    rows = pa.table({"p": [1, 1, 2, 2, 3], "x": [1, 2, None, None, 5]})
    opened = Store(tmp_path)
    opened.write_table("t", rows, partition_by=["p"])
    table, lazy = pl.from_arrow(rows), ktk_engine.polars.scan_table(opened, "t")
    for values in ([1, 2], [1, None], [], [None]):
        for test in (
            pl.col("x").is_in(values, nulls_equal=True),
            pl.col("x").is_in(values),
        ):
            for predicate in (test, ~test):
                expected = table.filter(predicate)
                assert (
                    lazy.filter(predicate)
                    .sort("p", "x")
                    .collect()
                    .equals(expected.sort("p", "x").select(lazy.collect_schema().names()))
                ), predicate
        dataset, listed = ktk_engine.duckdb.scan_table(opened, "t"), pa.array(values, pa.int64())
        for test in (pc.field("x").isin(listed), ~pc.field("x").isin(listed)):
            assert dataset.to_table(filter=test).num_rows == rows.filter(test).num_rows, test


def test_joins_and_streams(store):
    frame = ktk_engine.polars.scan_cube(store, "trips")
    both = frame.join(frame.filter(pl.col("month") == 1), on="flight").select(
        "flight", "gust_right"
    )
    assert both.collect(engine="streaming").height == both.collect().height == 30
    trips = ktk_engine.duckdb.scan_cube(store, "trips")
    with duckdb.connect() as own:
        own.register("mine", trips)
        found = own.sql(
            "select count(*), sum(m.flight) from mine m join mine n using (flight, origin)"
        )
        assert found.fetchall() == [(60, sum(range(60)))]
        assert own.sql("select flight from mine limit 3").fetchall()


def test_a_dataset_of_arrow(store):
    trips = ktk_engine.duckdb.scan_cube(store, "trips")
    month = pc.field("month") == 1
    assert repr(trips) == "RelationDataset(Cube('trips', version=1))"
    assert trips.to_table(columns=["flight"], filter=month).num_rows == 30
    assert trips.count_rows(filter=month) == 30
    assert trips.count_rows() == 60
    assert trips.count_rows(filter=pc.scalar(False)) == 0
    assert trips.head(2, columns=["dest"]).num_rows == 2
    assert sum(batch.num_rows for batch in trips.to_batches(filter=~month)) == 30
    speeds = trips.to_table(["speed"], filter=pc.field("speed") > 0)["speed"].to_pylist()
    assert speeds == [400.5] * 12  # with Arrow, NaN is not larger
    for ask in (
        trips.get_fragments,
        lambda: trips.filter(month),
        lambda: trips.partition_expression,
        lambda: trips.files,
    ):
        with pytest.raises(QueryError, match="no Arrow fragments"):
            ask()
    with pytest.raises(QueryError, match="expressions"):
        trips.to_table(columns={"x": pc.field("flight")})
    with pytest.raises(QueryError, match="did you mean `flight`"):
        trips.to_table(columns=["flihgt"])


def test_arrow_itself_is_refused_what_it_cannot_read(store, tmp_path):
    """Its C++ knows none of our methods: what it scans must not seem to be empty."""
    trips = ktk_engine.duckdb.scan_cube(store, "trips")
    both = ds.UnionDataset(trips.schema, [trips, trips])
    for ask in (
        ds.Scanner.from_dataset(trips).to_table,
        ds.Scanner.from_dataset(trips, filter=pc.field("month") == 1).count_rows,
        ds.Scanner.from_dataset(trips).count_rows,
        both.to_table,
        both.count_rows,
        lambda: both.head(1),
        Declaration("scan", ScanNodeOptions(trips)).to_table,
    ):
        with pytest.raises(QueryError, match=r"Cube.*itself.*scanner"):
            ask()
    written = tmp_path / "written"
    ds.write_dataset(trips.scanner().to_reader(), written, format="parquet")
    assert ds.dataset(written).count_rows() == 60


def test_a_memory_limit(store):
    frame = ktk_engine.polars.scan_cube(store, "trips", memory_limit=1)
    with pytest.raises(LocalEngineError, match="memory_limit"):
        frame.collect()


NUMBERS = st.integers(-25, 62)
INSTANTS = st.integers(0, 60).map(lambda n: DAY + dt.timedelta(hours=n))
VALUES = {
    "origin": st.sampled_from(["EWR", "JFK", "LGA", "", "Z"]),
    "month": st.integers(-1, 3) | st.floats(-1, 3),
    "flight": NUMBERS | st.floats(-5, 65, width=16),
    "dest": st.sampled_from(["SFO", "LAX", "B", "SEA"]),
    "delay": NUMBERS,
    "seats": st.integers(0, 60) | st.floats(0, 61, width=16),
    "speed": st.sampled_from([float("nan"), -0.0, 0.0, 400.5, 1, float("inf")]) | st.floats(),
    "fare": st.decimals(0, 15, places=3) | st.integers(0, 15),
    "day": st.integers(0, 41).map(lambda n: DAY.date() + dt.timedelta(days=n)) | INSTANTS,
    "instant": INSTANTS,
    "utc": INSTANTS.map(lambda t: t.replace(tzinfo=BERLIN)),
    "code": st.sampled_from([b"x1", b"x22", b"", b"y"]),
    "gust": st.floats(0, 60, width=16) | NUMBERS,
    "class": st.sampled_from("abc"),
}


@st.composite
def leaves(draw):
    column = draw(st.sampled_from(sorted(VALUES)))
    item, value = pl.col(column), VALUES[column]
    compare = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    kind = draw(st.sampled_from([*compare, "in", "between", "null", "other"]))
    match kind:
        case "in":
            values = draw(st.lists(value | st.none(), max_size=4))
            listed = pl.Series(values, strict=False).implode()
            return item.is_in(listed, nulls_equal=draw(st.booleans()))
        case "between":
            closed = draw(st.sampled_from(["both", "left", "right", "none"]))
            return item.is_between(draw(value), draw(value), closed=closed)
        case "null":
            return draw(st.sampled_from([item.is_null(), item.is_not_null()]))
        case "other":
            other = [pl.col("late"), pl.col("flight") % 3 == 1, pl.col("speed").is_nan()]
            other += [pl.col("dest").str.starts_with("S"), pl.col("dest").str.len_chars() > 3]
            other += [
                pl.col("flight") + pl.col("month") == 7,
                pl.lit(True),
                pl.lit(None, pl.Boolean),
            ]
            other += [pl.col("tags").list.len() > 1, item.eq_missing(draw(value))]
            other += [item.ne_missing(draw(value)), pl.lit(draw(value)) >= item]
            return draw(st.sampled_from(other))
    return getattr(item, compare[kind])(draw(value))


def joined(children):
    return (
        st.tuples(children, children).map(lambda two: two[0] & two[1])
        | st.tuples(children, children).map(lambda two: two[0] | two[1])
        | st.tuples(children, children).map(lambda two: two[0] ^ two[1])
        | children.map(lambda one: ~one)
        | st.tuples(children, children, children).map(
            lambda c: pl.when(c[0]).then(c[1]).otherwise(c[2])
        )
    )


@pytest.fixture(scope="module")
def whole(store):
    return store.cube("trips").query().to_polars().lazy()


@examples(120)
@given(predicate=st.recursive(leaves(), joined, max_leaves=5))
def test_random_predicates(store, whole, predicate):
    """A filter before the rows are collected is a filter after that."""
    frame = ktk_engine.polars.scan_cube(store, "trips")
    try:
        expected = whole.filter(predicate).collect()
    except pl.exceptions.PolarsError:
        return  # types that Polars does not compare
    found = frame.filter(predicate).collect()
    assert found.sort("flight").equals(expected.sort("flight"))


SQL_VALUES = {
    "origin": st.sampled_from(["'EWR'", "'JFK'", "''", "'Z'"]),
    "month": st.sampled_from(["1", "2", "1.5", "-1"]),
    "flight": st.integers(-5, 65).map(str),
    "delay": st.integers(-25, 45).map(str),
    "seats": st.integers(0, 60).map(str),
    "speed": st.sampled_from(["0.0", "-0.0", "400.5", "1", "'nan'::double", "'inf'::double"]),
    "fare": st.decimals(0, 15, places=2).map(str),
    "day": st.integers(1, 31).map(lambda n: f"date '2025-01-{n:02}'"),
    "utc": st.integers(0, 59).map(lambda n: f"timestamptz '2025-01-01 00:{n:02}:00+00'"),
    "code": st.sampled_from(["'x1'::blob", "'y'::blob"]),
    "late": st.sampled_from(["true", "false"]),
    "gust": st.floats(0, 60, width=16).map(str),
}


@st.composite
def sql_leaves(draw):
    column = draw(st.sampled_from(sorted(SQL_VALUES)))
    value = SQL_VALUES[column]
    kind = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "between", "is", "other"]))
    match kind:
        case "in":
            listed = draw(st.lists(value | st.just("null"), min_size=1, max_size=4))
            return f"{column} in ({', '.join(listed)})"
        case "between":
            return f"{column} between {draw(value)} and {draw(value)}"
        case "is":
            said = draw(st.sampled_from(["null", "not null", f"distinct from {draw(value)}"]))
            return f"{column} is {said}"
        case "other":
            return draw(
                st.sampled_from(["late", "dest like 'S%'", "flight % 3 = 1", "crew.age > 30"])
            )
    return f"{column} {kind} {draw(value)}"


def sql_joined(children):
    return st.tuples(children, st.sampled_from(["and", "or"]), children).map(
        lambda parts: f"({' '.join(parts)})"
    ) | children.map(lambda one: f"not ({one})")


@examples(80)
@given(where=st.recursive(sql_leaves(), sql_joined, max_leaves=5))
def test_random_conditions_of_duckdb(store, rows_in_memory, where):
    """What DuckDB answers of a cube, it answers of the rows in memory."""
    trips = ktk_engine.duckdb.scan_cube(store, "trips")
    said = f"select flight from {{}} where {where} order by flight"
    found = duckdb.sql(said.format("trips")).fetchall()
    assert trips.schema.equals(rows_in_memory.schema)
    assert found == duckdb.sql(said.format("rows_in_memory")).fetchall()


@pytest.fixture(scope="module")
def rows_in_memory(store):
    return store.cube("trips").query().to_arrow()


@pytest.mark.parametrize("module", ["polars"])
def test_what_is_missing_is_named(store, monkeypatch, module):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'ktk-engine\[polars\]'"):
        ktk_engine.polars.scan_cube(store, "trips")


# Some have no type in Arrow, others none that a column of ours has.
LITERALS = [
    pl.coalesce("seats", "delay") == 5,
    pl.col("delay").cast(pl.Int128) == 5,
    pl.col("delay") == pl.lit(5, dtype=pl.Int128),
    pl.col("seats") < 2**100,
    pl.col("delay") == pl.lit(5, dtype=pl.UInt8),
    pl.col("speed") == pl.lit(400.5, dtype=pl.Float32),
    pl.col("dest") == pl.lit("SFO", dtype=pl.Categorical),
    pl.col("dest") == pl.lit("SFO", dtype=pl.Enum(["SFO"])),
    pl.col("instant") < pl.lit(DAY, dtype=pl.Datetime("ns")),
    pl.col("fare") == pl.lit(Decimal("1.5"), dtype=pl.Decimal(38, 10)),
    pl.col("code") == b"x3",
]


@pytest.mark.parametrize("condition", LITERALS, ids=str)
def test_literals_of_every_type_are_compared_as_polars_does(store, condition):
    rows = pl.from_arrow(store.table("fares").query().to_arrow(engine="local"))
    found = ktk_engine.polars.scan_table(store, "fares").filter(condition).collect()
    assert sorted(found["flight"]) == sorted(rows.filter(condition)["flight"])
