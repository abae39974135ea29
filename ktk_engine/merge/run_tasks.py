"""Executes tasks in threads of this process: in order, few at a time, and cancelled as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from ktk_engine.merge.merge import merge
from ktk_engine.merge.merge_run import MergeRun
from ktk_engine.merge.task import Task


def run_tasks(
    run: MergeRun,
    tasks: Sequence[Task],
    threads: int,
    progress: Callable[[int], None] | None = None,
) -> Iterator[list[pa.RecordBatch]]:
    """Give the rows of tasks, one after the other.

    Anyone who stops asking, or is interrupted, cancels the tasks that are at work.

    Args:
        run: where they run.
        tasks: the tasks.
        threads: how many are at work at a time; one more may wait with its rows.
        progress: is told the rows of each task that is done, as `Task.rows` has them.

    Yields:
        The batches of each task, in the order of the tasks.

    Raises:
        what `merge` raises.
    """
    todo = iter(tasks)
    waiting: deque[tuple[Task, Future[list[pa.RecordBatch]]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ktk-merge")
    try:
        for task in islice(todo, threads + 1):
            waiting.append((task, pool.submit(_batches, run, task)))
        while waiting:
            done, future = waiting.popleft()
            batches = future.result()
            following = next(todo, None)
            if following is not None:
                waiting.append((following, pool.submit(_batches, run, following)))
            if progress is not None:
                progress(done.rows)
            yield batches
    finally:
        run.cancelled.set()
        pool.shutdown(cancel_futures=True)


def _batches(run: MergeRun, task: Task) -> list[pa.RecordBatch]:
    run.check()
    return list(merge(run, task))
