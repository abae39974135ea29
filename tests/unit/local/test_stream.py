"""Large partitions are read in slices: what they hold, in what order, and what cannot be sliced."""

from __future__ import annotations

import itertools
import random
from concurrent.futures import CancelledError

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import FormatError, LocalEngineError
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.join_task import join_task
from ktk_engine.local.read.cursor import Cursor
from ktk_engine.local.read.decoded_size import decoded_width
from ktk_engine.local.stream import stream
from ktk_engine.local.take import batches_of, take
from ktk_engine.local.task import TaskFile
from ktk_engine.local.tasks import tasks
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification
from tests.support.foreign_cubes import write_files
from tests.support.queries import FooterCache

LARGE = 1 << 40
N = 1_000


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """A task of more than 1 kB is read in slices of about 50 rows."""
    limits = {
        "_WHOLE_BYTES": 1_000,
        "_COLUMN_BYTES": 0,
        "_SLICE_BYTES": 2_000,
        "_SLICE_ROWS": 50,
        "_BLOCK_ROWS": 16,
    }
    for name, value in limits.items():
        monkeypatch.setattr(f"ktk_engine.local.stream.{name}", value)


def write_cube(store, dimensions=("L",), row_group_rows=None, **datasets):
    """Write datasets, each as a list of tables, one a file."""
    specification = CubeSpecification("c", dimensions, (), suppress_index_on=frozenset(dimensions))
    for name, parts in datasets.items():
        write_files(store, specification, name, parts, row_group_rows=row_group_rows)


def numbers(column, factor=1, start=0, stop=N, step=1):
    cells = list(range(start, stop, step))
    return pa.table({"L": cells, column: [cell * factor for cell in cells]})


def plan_of(store, columns=None, where=None):
    return Store(store.root).cube("c").query(columns, where).plan


def pieces_of(store, limit=LARGE, **question):
    found = tasks(store, FooterCache(), plan_of(store, **question))
    return [table for task in found for table in stream(JoinRun(store, limit), task)]


def rows_of(pieces):
    return [row for piece in pieces for row in piece.to_pylist()]


def shuffled(table):
    order = list(range(table.num_rows))
    random.Random(0).shuffle(order)
    return table.take(order)


@pytest.mark.parametrize("row_group_rows", [None, 7, 100])
def test_one_partition_in_slices(store, row_group_rows):
    others = {
        "a": [numbers("a", 3, step=2)],
        "b": [numbers("b", 5, stop=500), numbers("b", 5, 500)],
    }
    write_cube(store, row_group_rows=row_group_rows, seed=[numbers("v")], **others)
    pieces = pieces_of(store)
    assert len(pieces) > N / 60
    assert max(piece.num_rows for piece in pieces) <= 80
    assert rows_of(pieces) == [
        {"L": n, "v": n, "a": n * 3 if n % 2 == 0 else None, "b": n * 5} for n in range(N)
    ]


def test_a_constant_dimension_and_datasets_with_fewer(store):
    cells = [("x", n // 10, n % 10) for n in range(N)]
    seed = pa.table({name: [cell[i] for cell in cells] for i, name in enumerate("ABC")})
    fewer = pa.table({"A": ["x"] * 100, "B": range(100), "b": range(100)})
    other = pa.table({"C": range(10), "c": range(10)})
    write_cube(store, ("A", "B", "C"), seed=[seed], b=[fewer], c=[other])
    pieces = pieces_of(store)
    assert len(pieces) > 10
    expected = [{"A": "x", "B": b, "C": c, "b": b, "c": c} for _, b, c in cells]
    assert rows_of(pieces) == expected


@pytest.mark.parametrize("row_group_rows", [None, 100])
def test_parts_of_a_file_whose_bounds_are_wider_than_its_cells(store, row_group_rows):
    """Another program may have cut the upper bound of a text, so the last part may be anywhere."""
    seed = numbers("v").add_column(0, "A", [["x"] * N])
    more = numbers("w", -1).add_column(0, "A", [["x"] * N])
    write_cube(store, ("A", "L"), row_group_rows, seed=[seed], more=[more])
    found = tasks(store, FooterCache(), plan_of(store), None, 8, least=1)
    assert len(found) > 1 or row_group_rows is None
    limit = 60_000  # of all rows: more than 80,000
    pieces = [list(stream(JoinRun(store, limit), task)) for task in found]
    assert max(piece.num_rows for part in pieces for piece in part) <= 66
    rows = [row for part in pieces for row in rows_of(part)]
    assert [(row["L"], row["v"], row["w"]) for row in rows] == [(n, n, -n) for n in range(N)]


def test_the_newest_file_wins_in_each_slice(store):
    newer = pa.table({"L": range(0, N, 3), "v": [-1] * len(range(0, N, 3))})
    write_cube(store, seed=[numbers("v"), newer])
    assert plan_of(store).datasets[0].overlaid
    assert len(pieces_of(store)) > 10
    rows = rows_of(pieces_of(store, where="v >= 0"))
    assert sorted(row["L"] for row in rows) == [n for n in range(N) if n % 3]


def test_an_unsorted_enrichment_is_kept_while_slices_pass(store, monkeypatch):
    opened = []
    open_ = Cursor._open
    monkeypatch.setattr(Cursor, "_open", lambda self, row: opened.append(row) or open_(self, row))
    write_cube(store, seed=[numbers("v")], a=[shuffled(numbers("a", 3))])
    pieces = pieces_of(store)
    assert len(pieces) > 10
    assert rows_of(pieces) == [{"L": n, "v": n, "a": n * 3} for n in range(N)]
    assert opened == [0] * 4  # cells and payload of each dataset


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("limit", "whole"), [(LARGE, True), (20_000, False)])
def test_many_columns_of_few_rows_are_not_cut(store, monkeypatch, step, limit, whole):
    """Cursors would hold more of each column than there is; a smaller memory limit still cuts."""
    monkeypatch.setattr("ktk_engine.local.stream._COLUMN_BYTES", 10_000)
    rows = numbers("a", step=step)
    wide = {f"a{n}": rows["a"] for n in range(50)}
    write_cube(store, seed=[numbers("v")], a=[pa.table({"L": rows["L"], **wide})])
    pieces = pieces_of(store, limit=limit * 10)
    assert (len(pieces) == 1) is whole
    assert [row["a7"] for row in rows_of(pieces)] == [None if n % step else n for n in range(N)]


def test_an_unsorted_seed_alone_is_read_as_it_lies(store):
    rows = shuffled(numbers("v"))
    write_cube(store, seed=[rows])
    pieces = pieces_of(store, limit=20_000)
    assert len(pieces) >= 10
    assert rows_of(pieces) == rows.to_pylist()


def test_an_unsorted_seed_beside_other_cells_is_read_at_once_or_refused(store):
    write_cube(store, seed=[shuffled(numbers("v"))], a=[numbers("a", 3, step=2)])
    (whole,) = pieces_of(store)
    assert sorted(row["L"] for row in whole.to_pylist()) == list(range(N))
    with pytest.raises(LocalEngineError, match=r"dataset seed .* not sorted by `L`.*spark"):
        pieces_of(store, limit=10_000)
    query = Store(store.root).cube("c").query(where="a is null")
    with pytest.raises(LocalEngineError, match="not sorted"):
        query.count(engine="local", memory_limit=20_000)


def test_without_the_leading_dimension_rows_stay_together(store):
    seed = pa.table({"A": [n // 100 for n in range(N)], "B": [n % 100 for n in range(N)]})
    write_cube(store, ("A", "B"), seed=[seed])
    query = Store(store.root).cube("c").query(["B"], dimension_columns=["B"])
    assert query.to_arrow(engine="local")["B"].to_pylist() == list(range(100))
    (task,) = tasks(store, FooterCache(), query.plan)
    with pytest.raises(LocalEngineError, match="leaves out the leading dimension"):
        list(stream(JoinRun(store, 5_000), task))


def test_too_many_files_of_the_same_cells(store, monkeypatch):
    parts = [numbers("v", start=start, step=10) for start in range(10)]
    write_cube(store, seed=parts)
    assert len(pieces_of(store)) > 10
    monkeypatch.setattr("ktk_engine.local.stream._MOST_FILES", 9)
    assert len(pieces_of(store)) == 1
    with pytest.raises(LocalEngineError, match="10 large files hold the same cells; compacting"):
        pieces_of(store, limit=10_000)


def test_a_dataset_of_long_texts_is_not_shared(store, monkeypatch):
    monkeypatch.setattr("ktk_engine.local.read.decoded_size._LEAST_ROWS", 1)
    seed = numbers("v").append_column("P", pa.array([n // 250 for n in range(N)]))
    specification = CubeSpecification("c", ("L",), ("P",), suppress_index_on=frozenset({"L"}))
    write_files(store, specification, "seed", [seed], ["P"])
    texts = pa.table({"L": range(N), "t": ["x" * 300] * N})
    write_files(store, specification, "a", [texts])
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 250)
    found = tasks(store, FooterCache(), plan_of(store))
    assert [task.datasets[1].shared for task in found] == [True] * 4
    assert max(piece.num_rows for piece in pieces_of(store)) <= 80
    assert {row["t"] for row in rows_of(pieces_of(store))} == {"x" * 300}


def test_nothing_is_read_late_for_slices_without_rows(store, monkeypatch):
    read = []
    physical = Cursor.read

    def spy(self, start, stop):
        read.append((*self._names, stop - start))
        return physical(self, start, stop)

    monkeypatch.setattr(Cursor, "read", spy)
    write_cube(store, seed=[numbers("v")], a=[numbers("a", 3)])
    assert rows_of(pieces_of(store, columns=["v"], where="a = 1500")) == [{"v": 500}]
    payload = [rows for *names, rows in read if names == ["v"]]
    assert len(payload) == 1
    assert payload[0] < 100


def test_memory_is_bounded_by_the_slice_not_by_the_answer(store):
    write_cube(store, seed=[numbers("v")], a=[numbers("a", 3)])
    engine = LocalEngine(store, FooterCache(), limit=60_000, threads=1)
    assert sum(batch.num_rows for batch in engine.batches(plan_of(store))) == N
    assert engine.count(plan_of(store)) == N
    query = Store(store.root).cube("c").query()
    assert query.count(engine="local", memory_limit=60_000) == N
    with pytest.raises(LocalEngineError, match="more than the limit"):
        LocalEngine(store, FooterCache(), limit=10_000).table(plan_of(store))


@pytest.mark.parametrize("ordered", [True, False])
def test_large_tasks_are_given_in_portions(store, monkeypatch, ordered):
    monkeypatch.setattr("ktk_engine.local.run_tasks._PORTION_BYTES", 1_000)
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 250)
    write_cube(store, row_group_rows=250, seed=[numbers("v")])
    told = []
    engine = LocalEngine(
        store, FooterCache(), threads=2, progress=lambda done, total: told.append((done, total))
    )
    if ordered:
        assert engine.table(plan_of(store))["L"].to_pylist() == list(range(N))
    else:
        cells = [n for batch in engine.batches(plan_of(store)) for n in batch["L"].to_pylist()]
        assert sorted(cells) == list(range(N))
        assert cells != list(range(N))  # tasks take turns
    assert len(told) > 8
    assert told == sorted(told)
    assert told[-1] == (1000, 1000)


def test_slices_become_smaller_where_texts_become_longer(store):
    """The dictionary hides how long they are; what was read tells."""
    texts = ["x" * (1 if n < N // 2 else 400) for n in range(N)]
    write_cube(store, seed=[numbers("v").append_column("t", pa.array(texts))])
    pieces = pieces_of(store)
    assert "".join(row["t"] for row in rows_of(pieces)) == "".join(texts)
    sizes = [piece.num_rows for piece in pieces]
    assert max(sizes[:3]) > 2 * max(sizes[-3:])


def test_batches_are_cut_by_bytes(store, monkeypatch):
    monkeypatch.setattr("ktk_engine.local.join_task.BATCH_BYTES", 1_000)
    write_cube(store, seed=[numbers("v").append_column("t", pa.array(["x" * 90] * N))])
    (task,) = tasks(store, FooterCache(), plan_of(store))
    batches = list(join_task(JoinRun(store, LARGE), task))
    assert max(batch.num_rows for batch in batches) <= 10
    assert sum(batch.num_rows for batch in batches) == N


def test_widths_of_texts_that_a_dictionary_hides(store, monkeypatch):
    texts = {"short": ["x"] * N, "long": ["y" * 500] * N, "plain": [f"{n:0300}" for n in range(N)]}
    table = numbers("v")
    for name, values in texts.items():
        table = table.append_column(name, pa.array(values))
    write_cube(store, seed=[table])
    (task,) = tasks(store, FooterCache(), plan_of(store))
    run = JoinRun(store, LARGE)
    assert decoded_width(run, task.datasets[0]) == 16 + 3 * 32  # so few that it does not matter
    monkeypatch.setattr("ktk_engine.local.read.decoded_size._LEAST_ROWS", 1)
    assert 16 + 5 + 504 + 304 <= decoded_width(run, task.datasets[0]) < 16 + 10 + 530 + 330


def test_cancelled_between_slices(store):
    write_cube(store, seed=[numbers("v")])
    (task,) = tasks(store, FooterCache(), plan_of(store))
    run = JoinRun(store, LARGE)
    batches = join_task(run, task)
    next(batches)
    run.cancelled.set()
    with pytest.raises(CancelledError):
        list(batches)


def test_damage_is_found_in_the_middle(store):
    rows = pa.table({"L": range(5000), "v": [[float(i)] for i in range(5000)]})
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    plan = plan_of(store)
    assert len(rows_of(pieces_of(store))) == 5000
    (path,) = (store.root / "c++seed" / "table").rglob("*.parquet")
    data = path.read_bytes()
    path.chmod(0o600)
    for position in (1000, len(data) - 30):
        path.write_bytes(data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :])
        with pytest.raises(FormatError, match="is damaged"):
            list(LocalEngine(store, FooterCache()).batches(plan))


@pytest.fixture
def cursor(store):
    """A cursor over three of five row groups, and what it should give."""
    write_cube(store, row_group_rows=20, seed=[numbers("v", stop=100)])
    (key,) = [info.key for info in store.list() if info.key.endswith(".parquet")]
    file = TaskFile(key, None, {}, 100)
    cells = [*range(20), *range(40, 60), *range(80, 100)]
    return Cursor(JoinRun(store, LARGE), file, ["L"], [0, 2, 4], 7), cells


def test_a_cursor_gives_any_ranges(cursor):
    reader, cells = cursor
    places = random.Random(1)
    for _ in range(200):
        start, stop = sorted(places.choices(range(len(cells) + 1), k=2))
        assert reader.read(start, stop)["L"].to_pylist() == cells[start:stop]


def test_a_cursor_reads_each_row_once_if_ranges_ascend(cursor, monkeypatch):
    reader, cells = cursor
    opened = []
    open_ = Cursor._open
    monkeypatch.setattr(Cursor, "_open", lambda self, row: opened.append(row) or open_(self, row))
    for start, stop in itertools.pairwise(range(0, 60, 5)):
        assert (
            reader.read(max(start - 3, 0), stop)["L"].to_pylist() == cells[max(start - 3, 0) : stop]
        )
    assert opened == [0]
    assert len(reader._kept) <= 2


def test_a_cursor_leaves_row_groups_out(cursor):
    reader, cells = cursor
    assert reader.read(3, 5)["L"].to_pylist() == cells[3:5]
    assert reader.read(50, 60)["L"].to_pylist() == cells[50:]
    assert reader._kept[0][0] == 47


def test_texts_of_more_than_two_gigabytes_get_large_offsets():
    class Full:
        """A table whose texts do not fit; a real one would take that much memory."""

        schema = pa.schema({"t": pa.string(), "n": pa.int64(), "b": pa.binary()})

        def take(self, at):
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")

        def cast(self, schema):
            columns = {"t": ["x", "y"], "n": [1, 2], "b": [b"x", b"y"]}
            return pa.table(columns, schema=schema)

    found = take(Full(), pa.array([1, None]))
    assert found.schema.types == [pa.large_string(), pa.int64(), pa.large_binary()]
    assert found.to_pylist() == [{"t": "y", "n": 2, "b": b"y"}, dict.fromkeys("tnb")]


def test_batches_have_no_large_types():
    table = pa.table({"t": pa.array([f"{n:090}" for n in range(100)], pa.large_string())})
    schema = pa.schema({"t": pa.string()})
    batches = list(batches_of(table, schema, 30, 1_000))
    assert max(batch.num_rows for batch in batches) <= 10
    assert pa.Table.from_batches(batches, schema)["t"].to_pylist() == table["t"].to_pylist()
    assert len(list(batches_of(table, schema, 30, 1 << 20))) == 4


def test_a_seed_without_known_cells(store):
    """No block says where to cut, and no block of the other dataset is left."""
    seed = pa.table({"A": pa.array([None] * N, pa.int64()), "L": range(N)})
    other = pa.table({"A": range(N), "L": range(N), "a": range(N)})
    write_cube(store, ("A", "L"), seed=[seed], a=[other])
    query = Store(store.root).cube("c").query(None, "L < 900")
    assert query.to_arrow(engine="local")["L"].to_pylist() == list(range(900))
    assert query.count(engine="local") == 900


def test_a_plain_table_is_read_in_pieces_of_bytes(store):
    """Whatever its row groups: those of other writers may have gigabytes."""
    texts = [f"{n:06}" * (1 + n % 7) for n in range(N)]
    rows = pa.table({"n": list(range(N)), "t": texts})
    write_plain(store, "t", rows, row_group_rows=N)
    plan = Store.of(store).table("t").query(where="n >= 10").plan
    (task,) = tasks(store, FooterCache(), plan)
    pieces = list(stream(JoinRun(store, LARGE), task))
    assert pa.concat_tables(pieces).sort_by("n").equals(rows.slice(10).select(task.columns))
    assert max(piece.nbytes for piece in pieces) < 8_000 < rows.nbytes


def test_few_long_texts_are_read_and_changed_within_a_small_limit(store):
    """Two thousand texts of 16 kB, in one row group: 32 MB under a limit of 8 MB."""
    count, text = 2_000, "0123456789abcdef" * 1_024
    rows = pa.table({"n": list(range(count)), "t": [f"{n:04}{text}" for n in range(count)]})
    write_plain(store, "t", rows, row_group_rows=count)
    table = Store.of(store).table("t")
    with pytest.raises(LocalEngineError, match="more than the limit"):
        table.query().to_arrow(memory_limit="8MB", engine="local")
    batches = list(table.query().to_batches(memory_limit="8MB", engine="local"))
    assert pa.Table.from_batches(batches).sort_by("n").equals(rows)
    assert max(batch.nbytes for batch in batches) < 1 << 20
    assert table.delete("n = 7").query().count() == count - 1
