"""What needs attention: possible compactions and clean-ups, skew, missing partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import KtkError
from ktk_engine.formatting import counted, number, size
from ktk_engine.log.garbage import Retention
from ktk_engine.log.state import State
from ktk_engine.maintain.cleanup import plan_cleanup
from ktk_engine.maintain.compactable import find_compaction
from ktk_engine.maintain.orphans import Orphan
from ktk_engine.messages import Message, Remedy
from ktk_engine.report.partition_map import PartitionMap, Partitions

MANY_SEGMENTS = 64
SKEW = 10  # times the median: beyond it, one task works while others wait


@dataclass(frozen=True)
class Remark:
    """Something that needs attention."""

    dataset: str  # empty: all
    what: str  # the finding
    fix: str | Remedy = ""  # empty: nothing to do


def remarks(
    state: State,
    partitions: Mapping[str, Partitions],
    shown: PartitionMap | None,
    orphans: Sequence[Orphan] = (),
) -> list[Remark]:
    """Collect all remarks."""
    found = [*_problems(state), *_compactions(state), *_segments(state), *_skew(partitions)]
    if shown is not None:
        found += _missing(shown)
    return [*found, *_orphans(state, orphans), *_garbage(state)]


def _problems(state: State) -> Iterator[Remark]:
    for uuid, dataset in state.datasets.items():
        if dataset.problem:
            name = state.scope.dataset_id(uuid)
            yield Remark(name, dataset.problem, Remedy("look_at_adoption", name=state.scope.name))


def _compactions(state: State) -> Iterator[Remark]:
    for uuid in state.datasets:
        found = find_compaction(state, uuid)
        if found.files.num_rows:
            dataset = state.scope.dataset_id(uuid)
            overlaid = f", {number(found.overlaid)} of them overlaid" if found.overlaid else ""
            what = f"{found} are small or overlaid{overlaid}; compaction makes few large ones"
            yield Remark(dataset, what, Remedy.on("compact", *cube_and_dataset(uuid)))


def _segments(state: State) -> Iterator[Remark]:
    for uuid, snapshot in state.snapshots().items():
        for name, segments in snapshot.index_segments.items():
            if len(segments) > MANY_SEGMENTS:
                what = (
                    f"the index on {name} has {number(len(segments))} segments, and a lookup may "
                    "read of all; compaction merges them"
                )
                fix = Remedy.on("compact", *cube_and_dataset(uuid))
                yield Remark(state.scope.dataset_id(uuid), what, fix)


def _orphans(state: State, orphans: Sequence[Orphan]) -> Iterator[Remark]:
    for orphan in orphans:
        if orphan.uuid in state.datasets:
            what = f"nothing in the project builds it; {orphan.builder} did"
            fix = Remedy.on("drop", *cube_and_dataset(orphan.uuid))
            yield Remark(state.scope.dataset_id(orphan.uuid), what, fix)


def _skew(partitions: Mapping[str, Partitions]) -> Iterator[Remark]:
    for name, item in partitions.items():
        rows = {values: sizes[0] for values, sizes in item.sizes.items()}
        middle = median(rows.values()) if rows else 0
        if not middle or len(rows) < 2:
            continue
        largest = max(rows, key=lambda values: rows[values])
        if rows[largest] > SKEW * middle:
            where = " / ".join(map(str, largest))
            times = f"{rows[largest] / middle:.0f} times the median"
            what = f"partition {where} has {number(rows[largest])} rows, {times}"
            yield Remark(name, what, "bucket_by and num_buckets, or other partition columns")


def _missing(shown: PartitionMap) -> Iterator[Remark]:
    for name, count in shown.missing.items():
        if count:
            what = f"has nothing in {counted(count, 'partition')} of {number(shown.partitions)}"
            yield Remark(name, what)


def _garbage(state: State) -> Iterator[Remark]:
    try:
        garbage = plan_cleanup(state.store, state.scope, Retention())
    except KtkError as error:
        yield Remark("", Message("a clean-up is not possible: ", error))
        return
    files = len(garbage.objects) + len(garbage.unfinished)
    if files:
        what = f"{counted(files, 'file')} ({size(garbage.bytes)}) that no kept version needs"
        yield Remark("", what, Remedy("delete_garbage", name=state.scope.name))
