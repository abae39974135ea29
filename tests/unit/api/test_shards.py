"""Parts of a query for the workers of a training: each row once, the same in every process."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.errors import LocalEngineError, QueryError, VersionGoneError
from ktk_engine.log.staged_logs import StagedLogs  # deep: what a staged run reads from
from tests.support.dataset_builder import append_as_kartothek
from tests.support.queries import LocalEngine

CELLS = {"customer": np.arange(3000), "day": np.arange(3000) % 10}


@pytest.fixture
def opened(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def cube(opened):
    """Ten partitions; `late` has fewer cells and its newest rows overlay older ones."""
    scores = pa.table({**CELLS, "score": np.arange(3000) * 0.5})
    late = pa.table({name: values[::3] for name, values in CELLS.items()})
    late = late.append_column("late", pa.array([True] * 1000))
    found = {"seed": pa.table(CELLS), "scores": scores, "late": late}
    made = opened.build("f", found, dimension_columns=["customer"], partition_by=["day"])
    return made.append({"late": late.slice(0, 500)})


QUERIES = {
    "everything": lambda cube: cube.query(),
    "a condition": lambda cube: cube.query(["score"], "customer < 700 or customer > 1500"),
    "a condition on a left join": lambda cube: cube.query(["score"], "late is null"),
    "an inner join": lambda cube: cube.query(["customer", "late"], "late"),
    "a partition": lambda cube: cube.query(where="day = 4"),
    "no row": lambda cube: cube.query(where="customer < 0"),
    "only partition columns": lambda cube: cube.query(["day"]),
    "fewer columns than decide": lambda cube: cube.query(["score"]),
}


def rows(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("count", [1, 3, 7, 40])
@pytest.mark.parametrize("name", QUERIES)
def test_parts_are_together_all_rows(cube, name, count):
    query = QUERIES[name](cube)
    parts = [query.shard(index, count) for index in range(count)]
    tables = [part.to_arrow() for part in parts]
    assert rows(pa.concat_tables(tables)) == rows(query.to_arrow())
    for part, table in zip(parts, tables, strict=True):
        assert part.count() == table.num_rows
        batches = list(part.to_batches())
        assert rows(pa.Table.from_batches(batches, table.schema)) == rows(table)
        assert part.explain().endswith(f"shard {parts.index(part)} of {count}")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_parts_have_about_as_many_rows_each(cube, count):
    sizes = [cube.query().shard(index, count).count() for index in range(count)]
    assert max(sizes) <= 1.5 * 3000 / count


def test_a_large_partition_is_cut_between_row_groups(opened):
    total = 131_072 * 8
    table = pa.table({"customer": np.arange(total), "v": np.arange(total)})
    cube = opened.build("f", table, dimension_columns=["customer"])
    for count in (2, 3, 5):
        parts = [cube.query(["v"]).shard(index, count) for index in range(count)]
        found = [np.concatenate([b["v"].to_numpy() for b in p.to_batches()]) for p in parts]
        assert max(map(len, found)) <= 1.5 * total / count
        assert np.array_equal(np.sort(np.concatenate(found)), np.arange(total))
        assert all((np.diff(part) > 0).all() for part in found)


def test_a_table_is_cut_between_files(opened):
    for _ in range(4):
        table = opened.write_table("t", pa.table({"a": range(100)}), "append")
    sizes = [table.query().shard(index, 4).count() for index in range(4)]
    assert sizes == [100] * 4
    assert sum(table.query(where="a < 10").shard(index, 3).count() for index in range(3)) == 40


def test_groups_of_a_part(opened):
    table = pa.table({"k": range(60), "day": [n % 3 for n in range(60)], "g": ["a", "b"] * 30})
    cube = opened.build("c", table, dimension_columns=["k"], partition_by=["day"], indexes=["g"])
    query = cube.query(["k"], partition_by=["g"])
    found = [
        k
        for index in range(3)
        for _, group in query.shard(index, 3).iter_groups()
        for k in group["k"].to_pylist()
    ]
    assert sorted(found) == list(range(60))
    fewer = cube.query(["day"], dimension_columns=["k"])
    assert sum(fewer.shard(index, 3).count() for index in range(3)) == 60


def test_parts_do_not_depend_on_threads(cube, monkeypatch):
    asked = [cube.query(["score"]).shard(index, 3) for index in range(3)]
    before = [list(part.to_batches()) for part in asked]
    engine = OpenedStore._engine

    def with_threads(*arguments):
        made = engine(*arguments)
        return LocalEngine(made.store, made.footers, made.limit, threads=16)

    monkeypatch.setattr(OpenedStore, "_engine", with_threads)
    again = [list(pickle.loads(pickle.dumps(part)).to_batches()) for part in asked]
    assert again == before


@pytest.mark.parametrize(
    ("index", "count"), [(-1, 3), (3, 3), (0, 0), (True, 2), (0, "2"), (0.0, 2), (None, 2)]
)
def test_what_is_no_part_is_refused(cube, index, count):
    events = pa.table({"customer": [1], "day": [2]})
    for asked in (cube.query(), cube.as_of(events, ["customer"], time="day")):
        with pytest.raises(QueryError, match="A shard is one of"):
            asked.shard(index, count)


def test_a_part_is_read_in_this_process(cube):
    with pytest.raises(QueryError, match="a limit has no shards"):
        cube.query(limit=3).shard(0, 2)
    part = cube.query().shard(0, 2)
    for ask in (part.to_spark, lambda: part.to_arrow(engine="spark")):
        with pytest.raises(QueryError, match="read in this process"):
            ask()
    with pytest.raises(LocalEngineError, match="more than the limit"):
        part.to_arrow(memory_limit="1kB")


def test_events_are_cut_in_their_order(cube):
    events = pa.table({"customer": range(20), "day": [12] * 20, "y": range(20)})
    asked = cube.as_of(events, ["customer"], time="day", columns=["score"])
    parts = [asked.shard(index, 3) for index in range(3)]
    assert [part.to_arrow().num_rows for part in parts] == [6, 7, 7]
    assert pa.concat_tables([p.to_arrow() for p in parts]).equals(asked.to_arrow())
    sent = [pickle.dumps(item) for item in (*parts, asked)]
    assert max(map(len, sent[:3])) < len(sent[3])  # a part has its own events alone
    again = pickle.loads(sent[1])
    assert again.to_arrow().equals(parts[1].to_arrow())


def test_a_pickled_query_is_of_its_version(cube):
    where, values = "score < :most and customer in (:some)", {"most": 500.0, "some": [1, 2, 2999]}
    query = cube.query(["score"], where, parameters=values, datasets=["seed", "scores"])
    data = pickle.dumps(query)
    assert len(data) < 2000
    cube.delete("true")
    again = pickle.loads(data)
    assert again.to_arrow().equals(query.to_arrow())
    assert again.explain() == query.explain()
    assert again.to_arrow().num_rows == 2


def test_a_pickled_query_of_a_table(opened):
    table = opened.write_table("t", pa.table({"a": [1, 2]}))
    data = pickle.dumps(table.query(where="a > 1"))
    opened.write_table("t", pa.table({"a": [3]}), "append")
    assert pickle.loads(data).to_arrow().to_pydict() == {"a": [2]}


def test_another_cube_with_the_same_version_is_not_taken(opened, tmp_path):
    """Also if it has the same name and number: rows would change in the middle of a training."""
    rows = pa.table({"k": [1], "v": [1]})
    query = opened.build("c", rows, dimension_columns=["k"]).query()
    data = pickle.dumps(query)
    (tmp_path / "store").rename(tmp_path / "old")
    opened.build("c", pa.table({"k": [1], "v": [2]}), dimension_columns=["k"])
    with pytest.raises(VersionGoneError, match="was built again"):
        pickle.loads(data)


def test_settings_go_along_unless_one_is_secret(cube):
    """A secret in the question's settings is refused; the address and a region are not."""
    state = cube._loaded.state

    def asked(**options):
        store = Store("s3://bucket/prefix", {"region": "eu-central-1", **options})._store
        query = cube.query()
        object.__setattr__(state, "store", store)
        return pickle.dumps(query)

    assert b"eu-central-1" in asked(endpoint="http://localhost:9")
    with pytest.raises(TypeError, match="Leave keys to the environment") as refused:
        asked(access_key_id="canary1", secret_access_key="canary2")
    assert "canary" not in str(refused.value)


def test_what_another_program_wrote_since_is_not_pickled(opened):
    opened.write_table("t", pa.table({"a": [1]}))
    append_as_kartothek(opened._store, "t", pa.table({"a": [7]}))
    query = opened.table("t").query()
    assert query.count() == 2
    with pytest.raises(TypeError, match="another program wrote t, which has no version for that"):
        pickle.dumps(query)
    assert pickle.loads(pickle.dumps(opened.table("t").at(1).query())).count() == 1


def test_staged_rows_are_not_pickled(cube):
    """Another process would find another version, or none, under the same number."""
    state = cube._loaded.state
    query = cube.query()
    object.__setattr__(state, "store", StagedLogs(state.store))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(query)
