"""What a task does besides giving the right rows: what it reads, how it ends, what it refuses."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import CancelledError

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import FormatError, LocalEngineError, QueryError
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.join_task import join_task
from ktk_engine.local.run_tasks import run_tasks
from ktk_engine.local.tasks import tasks
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification
from tests.support.foreign_cubes import write_files
from tests.support.queries import FooterCache, read_row_groups
from tests.support.unreadable_value import write_cube

LARGE = 1 << 40
ROWS = 2_000


@pytest.fixture
def cube(store):
    """Two partitions of 1,000 cells; each file has ten row groups."""
    n = range(ROWS)
    specification = CubeSpecification("c", ("L",), ("P",), suppress_index_on=frozenset({"L"}))
    p = pa.array([i // 1000 for i in n], pa.int64())
    seed = pa.table({"P": p, "L": pa.array(n, pa.int64()), "v": [float(i) for i in n]})
    other = seed.select(["P", "L"]).append_column("a", pa.array([i * 3 for i in n]))
    for name, table in (("seed", seed), ("a", other)):
        metadata = specification.metadata(name)
        uuid = specification.uuid(name)
        write_plain(store, uuid, table, ("P",), metadata, row_group_rows=100)
    return store


def plan_of(store, columns=None, where=None, **question):
    return Store(store.root).cube("c").query(columns, where, **question).plan


def engine_of(store, **settings):
    return LocalEngine(store, FooterCache(), **{"limit": LARGE, **settings})


@pytest.fixture
def read(monkeypatch):
    """Which columns of how many row groups are read."""
    found = []

    def spy(store, key, metadata, schema, digest, columns, groups, *rest):
        dataset = key.partition("/")[0].partition("++")[2]
        found.append((dataset, tuple(sorted(columns)), len(groups)))
        return read_row_groups(store, key, metadata, schema, digest, columns, groups, *rest)

    monkeypatch.setattr("ktk_engine.local.read.stored_rows.read_row_groups", spy)
    return found


def test_row_groups_are_skipped_and_payload_is_read_last(cube, read):
    table = engine_of(cube).table(plan_of(cube, ["L", "v", "a"], "L = 1234"))
    assert table.to_pylist() == [{"L": 1234, "v": 1234.0, "a": 3702}]
    assert read[0] == ("seed", ("L",), 1)
    # The cells of the other dataset are the same bytes; the two are read side by side.
    assert sorted(read[1:]) == [("a", ("a",), 1), ("seed", ("v",), 1)]


def test_a_restricted_dataset_is_read_first(cube, read):
    table = engine_of(cube).table(plan_of(cube, ["v"], "a = 600"))
    assert table.to_pylist() == [{"v": 200.0}]
    assert read == [("a", ("L", "a"), 1), ("seed", ("v",), 1)]


def test_no_row_group_is_read_for_nothing(cube, read):
    assert engine_of(cube).table(plan_of(cube, ["v"], "a = 1")).num_rows == 0
    assert [(dataset, groups) for dataset, _, groups in read] == [("a", 1)]


def test_large_partitions_are_cut_by_row_groups(cube, monkeypatch, read):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 300)
    plan = plan_of(cube)
    found = tasks(cube, FooterCache(), plan)
    assert [task.rows for task in found] == [300, 300, 300, 100] * 2
    run = JoinRun(cube, LARGE)
    counts = [sum(batch.num_rows for batch in join_task(run, task)) for task in found]
    assert counts == [300, 300, 300, 100] * 2
    assert engine_of(cube).table(plan)["L"].to_pylist() == list(range(ROWS))


def test_fewer_dimensions_are_not_cut(store, monkeypatch):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 2)
    rows = pa.table({"A": [i // 4 for i in range(16)], "B": [i % 4 for i in range(16)]})
    write_files(store, CubeSpecification("c", ("A", "B")), "seed", [rows], row_group_rows=2)
    engine = engine_of(store)
    for where in (None, "A > 0 or B > 2"):
        table = engine.table(plan_of(store, ["B"], where, dimension_columns=["B"]))
        assert table["B"].to_pylist() == [0, 1, 2, 3]


def test_tasks_are_plain_data(cube):
    for task in tasks(cube, FooterCache(), plan_of(cube, where="v > 10 and a in (30, 60)")):
        copy = pickle.loads(pickle.dumps(task))
        run = JoinRun(cube, LARGE)
        assert list(join_task(run, copy)) == list(join_task(run, task))


def test_small_partitions_are_one_task(store):
    n = range(100)
    seed = pa.table({"P": [i % 20 for i in n], "L": list(n)})
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    assert len(tasks(store, FooterCache(), plan_of(store))) == 1
    assert engine_of(store).table(plan_of(store))["L"].to_pylist() == list(n)


def test_a_dataset_that_all_tasks_read_is_read_once(store, monkeypatch, read):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 5)
    n = range(40)
    seed = pa.table({"P": [i % 4 for i in n], "L": list(n)})
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    names = pa.table({"L": list(n), "name": [f"n{i}" for i in n]})
    build(store, names, WriteRequest("names", "enrichment", "c", ("L",), ()))
    plan = plan_of(store)
    assert len(tasks(store, FooterCache(), plan)) == 4
    assert engine_of(store).table(plan)["name"].to_pylist() == [f"n{i}" for i in n]
    assert sum(dataset == "names" for dataset, _, _ in read) == 1


def test_cancelled_runs_end(cube):
    run = JoinRun(cube, LARGE)
    run.cancelled.set()
    (task,) = tasks(cube, FooterCache(), plan_of(cube))
    with pytest.raises(CancelledError):
        list(join_task(run, task))


def test_whoever_stops_asking_cancels(cube, monkeypatch):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 100)
    found = tasks(cube, FooterCache(), plan_of(cube))
    run = JoinRun(cube, LARGE)
    batches = run_tasks(run, found, 2)
    next(batches)
    batches.close()
    assert run.cancelled.is_set()


def test_what_does_not_fit_is_refused(cube):
    plan = plan_of(cube)
    with pytest.raises(LocalEngineError, match=r"takes 96.0 kB of memory.*limit of 1.0 kB.*spark"):
        engine_of(cube, limit=1_000).table(plan)
    with pytest.raises(LocalEngineError, match="more than the limit"):
        list(engine_of(cube, limit=1_000).batches(plan))
    with pytest.raises(LocalEngineError, match=r"limit of 1\.0 kB"):
        Store(cube.root).cube("c").query().to_arrow(engine="local", memory_limit=1_000)


def test_texts_are_counted_when_they_are_read(store):
    seed = pa.table({"L": range(1000), "t": ["x" * 10_000] * 1000})
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",), ()))
    with pytest.raises(LocalEngineError, match="so far"):
        engine_of(store, limit=5_000_000).table(plan_of(store))
    assert engine_of(store, limit=25_000_000).table(plan_of(store)).num_rows == 1000


def test_damaged_pages_and_footers_are_errors(store):
    rows = pa.table({"L": range(5000), "v": [float(i * i) for i in range(5000)]})
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    (path,) = (store.root / "c++seed" / "table").rglob("*.parquet")
    plan = plan_of(store)
    data = path.read_bytes()
    for position in (1000, len(data) - 30):
        path.chmod(0o600)
        path.write_bytes(data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :])
        with pytest.raises(FormatError, match="is damaged"):
            engine_of(store).table(plan)


def test_partition_values_that_nobody_can_read(store):
    write_cube(store)
    cube = Store(store.root).cube("c")
    with pytest.raises(FormatError, match=r"column `day` .*cannot be read"):
        cube.query().to_arrow(engine="local")


def test_engines_by_name(cube):
    query = Store(cube.root).cube("c").query(["L", "a"], "a < 30")
    assert query.to_arrow()["L"].to_pylist() == list(range(10))
    assert query.count() == 10
    assert pa.table(query)["a"].to_pylist() == [3 * i for i in range(10)]
    assert sum(batch.num_rows for batch in query.to_batches()) == 10
    assert str(query.to_pandas()["a"].dtype) == "int64[pyarrow]"
    with pytest.raises(QueryError, match=r'no engine .duckdb.. Known: "auto", "local", "spark"'):
        query.to_arrow(engine="duckdb")


def test_rows_without_their_partition_columns(cube):
    query = Store(cube.root).cube("c").query(["v"])
    assert query.count(engine="local") == ROWS
    batches = list(query.to_batches(engine="local"))
    assert [v for batch in batches for v in batch["v"].to_pylist()] == list(map(float, range(ROWS)))
    assert Store(cube.root).cube("c").query(["P"]).count(engine="local") == ROWS


def test_an_answer_without_rows_has_its_columns(cube):
    query = Store(cube.root).cube("c").query(["v", "P"], "P = 17")
    assert query.to_arrow().schema == pa.schema({"v": pa.float64(), "P": pa.int64()})
    assert pa.table(query).schema == query.to_arrow().schema
    assert query.count() == 0
    assert list(query.to_batches()) == []


def test_groups(cube):
    query = Store(cube.root).cube("c").query(["v"], "L < 3 or L > 1998", partition_by=["P"])
    groups = [(values, rows["v"].to_pylist()) for values, rows in query.iter_groups()]
    assert groups == [({"P": 0}, [0.0, 1.0, 2.0]), ({"P": 1}, [1999.0])]


def test_other_writers_may_repeat_cells(store):
    specification = CubeSpecification("c", ("L",), (), suppress_index_on=frozenset({"L"}))
    seed = pa.table({"L": [2, 1, 1]})
    other = pa.table({"L": [1, 1, 3], "a": ["x", "y", "z"]})
    for name, table in (("seed", seed), ("a", other)):
        write_plain(store, specification.uuid(name), table, (), specification.metadata(name))
    rows = engine_of(store).table(plan_of(store)).to_pylist()
    assert sorted((row["L"], row["a"] or "") for row in rows) == [
        (1, "x"), (1, "x"), (1, "y"), (1, "y"), (2, ""),
    ]  # fmt: skip


def test_a_newer_row_that_does_not_match_hides_the_older_one(store):
    specification = CubeSpecification("c", ("L",), (), suppress_index_on=frozenset({"L"}))
    parts = [pa.table({"L": [1, 2], "v": [5, 6]}), pa.table({"L": [2, 3], "v": [0, 1]})]
    write_files(store, specification, "seed", parts)
    plan = plan_of(store, ["L"], "v >= 1")
    assert plan.datasets[0].overlaid
    assert engine_of(store).table(plan)["L"].to_pylist() == [1, 3]
    # No row of the newer file matches, but it says that the older one's does not count.
    assert engine_of(store).table(plan_of(store, ["L"], "v > 4"))["L"].to_pylist() == [1]


def test_ranges_have_all_rows(store, monkeypatch):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 4)
    specification = CubeSpecification("c", ("L",), (), suppress_index_on=frozenset({"L"}))
    cells = [*range(12), 12, None]
    seed = pa.table({"L": pa.array(cells, pa.int64()), "v": list(range(len(cells)))})
    write_files(store, specification, "seed", [seed], row_group_rows=2)
    plan = plan_of(store)
    assert len(tasks(store, FooterCache(), plan)) > 2
    assert engine_of(store).table(plan)["v"].to_pylist() == list(range(len(cells)))


def test_row_groups_with_nan_are_not_skipped(store):
    """Bounds of floats leave NaN out."""
    specification = CubeSpecification("c", ("L",), (), suppress_index_on=frozenset({"L"}))
    seed = pa.table({"L": [1.0, math.nan], "v": [1, 2]})
    other = pa.table({"L": [1.0, 2.0, 50.0, math.nan], "a": [1, 2, 3, 4]})
    write_files(store, specification, "seed", [seed])
    write_files(store, specification, "a", [other], row_group_rows=2)
    assert engine_of(store).table(plan_of(store))["a"].to_pylist() == [1, 4]
