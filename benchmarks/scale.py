"""What commits, plans and lookups cost as a store grows; no JVM.

`python -m benchmarks.scale [--cells 8 64] [--files 10000 1000000] [--commits 100]`, or
`make bench-scale`. Cells, in millions, are those of a seed dataset with an index on a dimension
that has as many values as rows. Files are those of each of four datasets that exist only in the
log. There are no documents for Kartothek. Every step runs in a process of its own, so that nothing
is known from the one before. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.planning import PAYLOAD, synthetic_files, synthetic_snapshot
from benchmarks.report import machine, write_result
from ktk_engine import Store
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.written_files import WrittenFiles
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange, Rebase
from ktk_engine.log.commit import commit
from ktk_engine.log.garbage import Retention
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.scope import cube_scope, new_commit_id
from ktk_engine.log.state import resolve
from ktk_engine.maintain.cleanup import run_cleanup
from ktk_engine.maintain.publish_documents import publish_documents
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.write.rebase import rebased

Found = dict[str, Any]
_MILLION = 1_000_000
_APPENDED = 1_000  # rows of a commit
_BATCH = 500_000
_SCOPE = cube_scope("w")


class _CountingStore(LocalStore):
    """Counts the bytes of whole objects that are read and written."""

    read = written = 0

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self.read += len(data)
        return data

    def get_range(self, key: str, start: int, length: int) -> bytes:
        data = super().get_range(key, start, length)
        self.read += len(data)
        return data

    def put(self, key: str, data: bytes) -> None:
        self.written += len(data)
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.written += len(data)
        super().put_if_absent(key, data)


def _in_child(step: Callable[[], Found]) -> Found:
    """Run a step in a process of its own."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_send, args=(theirs, step))
    child.start()
    theirs.close()
    found: Found = ours.recv()
    child.join()
    return found


def _send(theirs: Any, step: Callable[[], Found]) -> None:
    theirs.send(step())


def _peak() -> int:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _rows(start: int, count: int, day: int) -> pa.Table:
    """Cells of one partition; the dimension `name` has another value in each row."""
    numbers = np.arange(start, start + count)
    random = np.random.default_rng(start)
    names = [f"customer-{number:020d}-of-some-longer-name-as-keys-have-them" for number in numbers]
    return pa.table(
        {"day": pa.array(np.full(count, day)), "name": names, "v": random.random(count)}
    )


def _reader(cells: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, cells, _BATCH):
            # A file a million cells, as a daily load would leave it.
            yield from _rows(start, min(_BATCH, cells - start), start // _MILLION).to_batches()

    return pa.RecordBatchReader.from_batches(_rows(0, 1, 0).schema, batches())


def _build(path: Path, cells: int) -> Found:
    store = Store(str(path))

    def build() -> None:
        store.build("c", _reader(cells), dimension_columns=["name"], partition_by=["day"])

    path.mkdir()
    wall, cpu = _timed(build)
    publish_documents(LocalStore(path), "c", wanted=False)
    return {"build_s": wall, "build_cpu_s": cpu, "build_us_a_row": cpu / cells * 1e6,
            "build_peak_mb": _peak()}  # fmt: skip


def _append(path: Path, cells: int, commits: int) -> Found:
    """Append, replace and remove partitions of a thousand rows."""
    counting = _CountingStore(path)
    store = Store.of(counting)
    store.cube("c").query(where="day = -1").to_arrow()  # imports
    found: Found = {}

    def rows(number: int) -> dict[str, pa.Table]:
        return {"seed": _rows(cells + number * 2000, _APPENDED, 10_000 + number)}

    def day(number: int) -> str:
        return f"day = {10_000 + number}"

    verbs: dict[str, Callable[[int], object]] = {
        "append": lambda number: store.cube("c").append(rows(number)),
        "replace": lambda number: store.cube("c").update(rows(number), day(number)),
        "remove": lambda number: store.cube("c").remove_partitions(day(number)),
    }
    left = {"append": commits, "replace": commits, "remove": commits - commits // 5}
    for name, verb in verbs.items():
        count = commits if name == "append" else commits // 5
        times, counting.written = [], 0
        before = _size(path)
        for number in range(count):
            times.append(_timed(partial(verb, number))[1])
        found[f"{name}_cpu_s"] = statistics.median(times)
        found[f"{name}_mean_cpu_s"] = statistics.mean(times)
        found[f"{name}_kb"] = (_size(path) - before) / count / 1000
        # Of these partitions alone: counting all cells would be the peak of memory.
        new = store.cube("c").query(where="day >= 10000")
        assert new.count() == left[name] * _APPENDED
    found["append_peak_mb"] = _peak()
    return found


def _size(path: Path) -> int:
    """Bytes of all files."""
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())


def _look_up(path: Path, cells: int) -> Found:
    name = _rows(cells // 3, 1, 0)["name"][0].as_py()
    found: Found = {}

    def ask() -> None:
        query = cube.query(where=f"name = '{name}'")
        assert query.to_arrow().num_rows == 1

    start, cpu = time.perf_counter(), time.process_time()
    cube = Store(str(path)).cube("c")
    ask()
    found["lookup_s"], found["lookup_cpu_s"] = (
        time.perf_counter() - start,
        time.process_time() - cpu,
    )
    warm = [_timed(ask) for _ in range(5)]
    found["lookup_warm_s"] = statistics.median(wall for wall, _ in warm)
    found["lookup_peak_mb"] = _peak()
    return found


def measure_cells(millions: int, commits: int) -> Found:
    """Measure a cube with this many million cells."""
    with tempfile.TemporaryDirectory() as folder:
        path, cells = Path(folder) / "store", millions * _MILLION
        found: Found = {"cells_m": millions}
        found |= _in_child(partial(_build, path, cells))
        found |= _in_child(partial(_look_up, path, cells))
        found |= _in_child(partial(_append, path, cells, commits))
        return found


def _build_files(path: Path, count: int) -> Found:
    """Make four datasets by commits of at most a million files."""
    store = LocalStore(path)
    for name in PAYLOAD:
        _rebuild(store, name, min(count, _MILLION))
        for start in range(_MILLION, count, _MILLION):
            more = np.arange(min(_MILLION, count - start))
            index = ((start + more) // 4, more) if name == "seed" else None
            _append_files(store, name, start, len(more), index)
    return {}


def _rebuild(store: LocalStore, name: str, count: int) -> None:
    commit_id = new_commit_id()
    snapshot = synthetic_snapshot(store, name, count, commit_id)
    if name == "seed":
        snapshot = replace(snapshot, properties={"without_documents": True})
    _commit(store, name, commit_id, lambda base, attempt: snapshot)


def _append_files(
    store: LocalStore, name: str, start: int, count: int, index: tuple[Any, Any] | None = None
) -> None:
    """Append files; `index` has values of the indexed column, and the place of the file of each."""
    commit_id = new_commit_id()
    files = synthetic_files(name, count, [commit_id], start)

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        assert base is not None
        if index is None:
            return base.changed(files.slice(0, 0), files)
        place = IndexPlace(store, base.uuid, commit_id, _SCOPE.segment_folder(commit_id))
        values, places = index
        labels = pa.DictionaryArray.from_arrays(places.astype(np.int32), files["label"])
        written = WrittenFiles(files, {"k": (pa.chunked_array([values]), labels)}, {}, ())
        addition = replace(base, file_table=files, indices={}, index_segments={})
        target = replace(WriteRequest.of(base), mode="append")
        return rebased(target, base, addition, place, written)(base, attempt)

    _commit(store, name, commit_id, rebase, frozenset())


def _commit(
    store: LocalStore,
    name: str,
    commit_id: str,
    rebase: Rebase,
    removed: frozenset[str] | None = None,
) -> None:
    role: Any = "seed" if name == "seed" else "enrichment"
    operation: Any = "rebuild" if removed is None else "append"
    change = DatasetChange(f"w++{name}", operation, rebase, removed, role)
    commit(resolve(store, _SCOPE), ChangeSet(PendingCommit(commit_id), (change,)), publish)


def _commit_file(store: LocalStore, number: int) -> None:
    """Append a file to a dataset without an index."""
    _append_files(store, "a", number, 1)


def _commit_pairs(store: LocalStore, number: int) -> None:
    """Append a file to the seed dataset, and its four values to the index."""
    _append_files(store, "seed", number, 1, (np.arange(4) + 4 * number, np.zeros(4)))


def _commit_files(path: Path, count: int, commits: int) -> Found:
    """Commit to a dataset without an index, and to one with an index."""
    return {
        **_committed(path, "commit", _commit_file, count, commits),
        **_committed(path, "indexed", _commit_pairs, count, commits),
    }


def _committed(
    path: Path, name: str, work: Callable[[LocalStore, int], None], count: int, commits: int
) -> Found:
    store = _CountingStore(path)
    work(store, count)  # imports; writes what was one file as segments
    times, walls, read, written = [], [], [], []
    for number in range(commits):
        before = store.read, store.written
        wall, cpu = _timed(partial(work, store, count + 1 + number))
        times.append(cpu)
        walls.append(wall)
        read.append(store.read - before[0])
        written.append(store.written - before[1])
    tenth = max(commits // 10, 1)

    def growth(items: Sequence[float], average: Callable[..., float]) -> float:
        """The last tenth of the commits by the first one."""
        return average(items[-tenth:]) / average(items[:tenth])

    return {
        f"{name}_cpu_s": statistics.median(times),
        f"{name}_mean_cpu_s": statistics.mean(times),
        f"{name}_written_kb": statistics.mean(written) / 1000,
        f"{name}_read_mb": statistics.mean(read) / 1e6,
        f"{name}_last_to_first_median_cpu": growth(times, statistics.median),
        f"{name}_last_to_first_mean_cpu": growth(times, statistics.mean),
        f"{name}_last_to_first_median_s": growth(walls, statistics.median),
        f"{name}_last_to_first_mean_s": growth(walls, statistics.mean),
        f"{name}_last_to_first_median_written": growth(written, statistics.median),
        f"{name}_last_to_first_mean_written": growth(written, statistics.mean),
    }


def _clean_up(path: Path) -> Found:
    """Keep only the newest version; count what is left that it does not name."""
    store = LocalStore(path)
    wall, _ = _timed(lambda: run_cleanup(store, _SCOPE, Retention(timedelta(0), 1)))
    state = resolve(store, _SCOPE)
    named = {item.entry.snapshot for item in state.datasets.values() if item.entry}
    for snapshot in state.snapshots().values():
        named |= {*snapshot.segments, *snapshot.index_keys}
    left = [i.key for i in store.list(f"{_SCOPE.folder}/snapshots/") if i.key not in named]
    return {"cleanup_s": wall, "left_behind": len(left)}


def _plan_files(path: Path, where: str, name: str) -> Found:
    store = _CountingStore(path)

    base = _peak()
    wall, cpu = _timed(lambda: load_cube(resolve(store, _SCOPE)).plan([*PAYLOAD.values()], where))
    return {
        f"{name}_s": wall,
        f"{name}_cpu_s": cpu,
        f"{name}_read_mb": store.read / 1e6,
        f"{name}_more_mb": _peak() - base,
    }


def measure_files(count: int, commits: int) -> Found:
    """Measure four datasets with this many files each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        found: Found = {"files": count}
        _in_child(partial(_build_files, path, count))
        found |= _in_child(partial(_plan_files, path, f"P = {count // 2}", "plan_one"))
        found |= _in_child(partial(_plan_files, path, f"k = {count // 8}", "plan_index"))
        if count <= _MILLION:  # a plan lists its files, and ten million do not fit into memory
            found |= _in_child(partial(_plan_files, path, "v >= 0", "plan_all"))
        found |= _in_child(partial(_commit_files, path, count, commits))
        found |= _in_child(partial(_plan_files, path, f"k = {count // 8}", "plan_index_after"))
        found |= _in_child(partial(_plan_files, path, f"k = {4 * count + 40}", "plan_new_after"))
        found |= _in_child(partial(_clean_up, path))
        return found


def _lines(rows: Sequence[Found]) -> list[str]:
    if not rows:
        return []
    names = list(rows[0])
    lines = ["| | " + " | ".join(f"{row[names[0]]:,}" for row in rows) + " |"]
    lines.append("|---" * (len(rows) + 1) + "|")
    lines += [
        f"| {name} | " + " | ".join(_number(row.get(name)) for row in rows) + " |"
        for name in names[1:]
    ]
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="*", default=[8], help="in millions")
    parser.add_argument("--files", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--commits", type=int, default=100)
    args = parser.parse_args()
    result: Found = {"machine": machine()}
    result["cells"] = [measure_cells(count, args.commits) for count in args.cells]
    result["files"] = [measure_files(count, args.commits) for count in args.files]
    cells = ["Millions of cells, with an index on a dimension of as many values:", ""]
    files = ["Files of each of four datasets:", ""]
    print(
        write_result(
            "scale",
            result,
            "As a store grows",
            [*cells, *_lines(result["cells"])],
            [*files, *_lines(result["files"])],
        )
    )


if __name__ == "__main__":
    main()
