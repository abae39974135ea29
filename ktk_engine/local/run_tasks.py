"""Executes tasks in threads of this process: in order, few at a time, and cancelled as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.join_task import join_task
from ktk_engine.local.task import Task

_PORTION_BYTES = 64 * 1024 * 1024


def run_tasks(
    run: JoinRun,
    tasks: Sequence[Task],
    threads: int,
    progress: Callable[[int], None] | None = None,
    ordered: bool = True,
) -> Iterator[list[pa.RecordBatch]]:
    """Give the rows of tasks in portions: a task, or a part of a large one.

    A caller that stops iterating, or is interrupted, cancels the running tasks. `progress` gets
    about how many rows of the seed dataset are done with each portion. If `ordered`, all rows of a
    task come before those of the next. Otherwise large tasks take turns, so that all threads work.
    """
    todo = iter(tasks)
    waiting: deque[_Work] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ktk-join")
    try:
        for task in islice(todo, threads + 1):
            waiting.append(_submit(pool, join_task(run, task), task.rows))
        while waiting:
            work = waiting.popleft()
            batches, is_last = work.portion.result()
            left = 0 if is_last else max(work.left - sum(b.num_rows for b in batches), 0)
            if not is_last:
                again = _submit(pool, work.rows, left)
                waiting.insert(0 if ordered else len(waiting), again)
            elif (following := next(todo, None)) is not None:
                waiting.append(_submit(pool, join_task(run, following), following.rows))
            if progress is not None:
                progress(work.left - left)
            yield batches
    finally:
        run.cancelled.set()
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Work:
    """A running task."""

    rows: Iterator[pa.RecordBatch]
    left: int  # about how many rows of the seed dataset are left to read
    # the next rows, and whether they are the last
    portion: Future[tuple[list[pa.RecordBatch], bool]]


def _submit(pool: ThreadPoolExecutor, rows: Iterator[pa.RecordBatch], left: int) -> _Work:
    return _Work(rows, left, pool.submit(_portion, rows))


def _portion(rows: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    found, size = [], 0
    for batch in rows:
        found.append(batch)
        size += batch.nbytes
        if size >= _PORTION_BYTES:
            return found, False
    return found, True
