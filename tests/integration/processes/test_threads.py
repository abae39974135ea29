"""Threads that share a store, its cubes and everything that these keep of files."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.files import footers, metadata_cache  # deep: its caches
from ktk_engine.format import index_file  # deep: its cache
from ktk_engine.store.read_cache import ReadCache  # deep: a cache
from tests.support.dataset_builder import (
    build_nyc,
    commit_change,
    flights,
    flights_builder,
    weather,
    weather_builder,
    write_plain_nyc,
)
from tests.support.queries import is_in
from tests.support.stores import Warehouse

THREADS, SECONDS = 8, 1.5
ORIGINS = ["EWR", "JFK", "LGA", "BOS"]
CONDITIONS = [
    f"{column} {sign} {value}"
    for column, value in (("hour", 1), ("hour", 2), ("delay", 12), ("gust", 31.5))
    for sign in ("=", ">", "<=", "!=")
] + [f"carrier = '{name}'" for name in ("UA", "AA")]


@pytest.fixture(autouse=True)
def threads_meet_often(monkeypatch):
    """Threads change hands often, and caches are too small for what is asked for."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    monkeypatch.setattr(metadata_cache, "_LARGEST", 150)
    monkeypatch.setattr(metadata_cache, "_LARGEST_FOOTERS", 100)
    monkeypatch.setattr(footers, "_LARGEST", 8)
    yield
    sys.setswitchinterval(before)


def files(cube, condition):
    plan = cube.query(where=condition).plan
    return [(item.dataset, item.files["key"].to_pylist()) for item in plan.datasets]


def in_threads(work):
    """Run work in all threads until time is up; an error of any is raised."""
    until = time.monotonic() + SECONDS

    def run(number):
        count, chance = 0, random.Random(number)
        while time.monotonic() < until:
            work(chance)
            count += 1
        return count

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(run, range(THREADS)))


@pytest.mark.parametrize("writer", ["ours", "another program"])
def test_queries_of_one_store(store, writer):
    if writer == "ours":
        build_nyc(store)
        for make, table in (
            (flights_builder, flights(ORIGINS)),
            (weather_builder, weather(ORIGINS)),
        ):
            commit_change(store, lambda c, m=make, t=table: m(store).rebuild(t, c))
    else:
        write_plain_nyc(store)
    shared = Store(store.root)
    cube = shared.cube("nyc")
    expected = {
        condition: files(Store(store.root).cube("nyc"), condition) for condition in CONDITIONS
    }

    def ask(chance):
        condition = chance.choice(CONDITIONS)
        asked = cube if chance.random() < 0.7 else shared.cube("nyc")
        assert files(asked, condition) == expected[condition]

    assert in_threads(ask) > 3 * THREADS
    cache = shared._cache
    for kept in (cache.indices._parts, cache.indices._footers, cache.footers._footers):
        assert kept._total == sum(size for _, size in kept._values.values())
        assert kept._total <= kept._largest or len(kept._values) == 1
        assert not kept._reading


@pytest.mark.parametrize("largest", [4_000, 1 << 20])
def test_parts_of_one_index(store, monkeypatch, largest):
    monkeypatch.setattr(metadata_cache, "_LARGEST", largest)
    monkeypatch.setattr(index_file, "_ROW_GROUP_SIZE", 10)
    labels = pa.array([f"P={number % 7}/f" for number in range(400)])
    index = index_file.build_index(pa.array(range(400)), labels)
    store.put("i.parquet", index_file.render_index("k", index))
    cache = metadata_cache.IndexCache()

    def ask(chance):
        wanted = [chance.randrange(400) for _ in range(2)]
        found = cache.read(store, "i.parquet", "k", is_in("k", pa.int64(), wanted))
        assert set(wanted) <= set(found["value"].to_pylist())

    assert in_threads(ask)


def test_schemas_of_one_warehouse(tmp_path):
    warehouse = Warehouse(tmp_path)

    def work(chance):
        name = chance.choice("abc")
        match chance.randrange(3):
            case 0:
                warehouse.create_schema(name)
            case 1:
                warehouse.find_schema(name)
            case 2:
                warehouse.schemas()

    assert in_threads(work)


def test_a_value_is_read_once_by_all_who_ask():
    kept, reads, start = ReadCache(10, lambda _: 1), itertools.count(), threading.Barrier(THREADS)

    def read():
        time.sleep(0.05)
        return next(reads)

    def ask(_):
        start.wait()
        return kept.get("key", read)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == [0] * THREADS


def test_after_a_failure_the_next_one_reads_again():
    kept, calls, start = ReadCache(10, lambda _: 1), itertools.count(), threading.Barrier(THREADS)

    def read():
        time.sleep(0.02)
        if next(calls) == 0:
            raise OSError("gone")
        return "read"

    def ask(_):
        start.wait()
        try:
            return kept.get("key", read)
        except OSError as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(ask, range(THREADS)))
    assert sum(isinstance(item, OSError) for item in found) == 1
    assert found.count("read") == THREADS - 1 and next(calls) == 2


def test_the_least_recently_used_value_goes():
    kept = ReadCache(10, len)
    for key, value in (("a", "xxxx"), ("b", "xxxx"), ("a", ""), ("c", "xxxx"), ("d", "x" * 99)):
        kept.get(key, lambda value=value: value)
        if key == "c":
            assert kept.cached("b") is None and kept.cached("a") and kept.cached("c")
    assert kept.cached("a") is None and kept.cached("d") == "x" * 99
