"""Which enrichments a new seed dataset breaks, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from ktk_engine.cube.consistency import layout_problems
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.formatting import counted
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name


def broken_enrichments(
    seed: pa.Schema,
    specification: CubeSpecification,
    others: Mapping[str, Snapshot],
    before: Snapshot | None = None,
) -> dict[str, tuple[str, ...]]:
    """Find the enrichments that do not fit a new seed dataset, with the reasons.

    `before` is the current seed dataset. Payload that two datasets have is not a reason, since
    removing the enrichment would lose it.
    """
    keys = () if before is None else before.partition_keys
    found = {
        name: tuple(_reasons(name, item, seed, specification, keys))
        for name, item in others.items()
    }
    return {name: reasons for name, reasons in sorted(found.items()) if reasons}


def breakage_text(
    cube: str,
    broken: Mapping[str, tuple[str, ...]],
    full_refresh: bool,
    external: Collection[str] = (),
) -> Message:
    """Say which enrichments break, and what to do.

    Datasets in `external` are in other stores and stay as they are.
    """
    lines: list[object] = [f"This breaks {counted(len(broken), 'enrichment')} of cube {cube}:"]
    lines += [Message(f"- {n}: ", joined("; ", reasons), ".") for n, reasons in broken.items()]
    if deferred := [name for name in broken if name in external]:
        fix = Remedy("unbreak_elsewhere", names=", ".join(deferred))
        return Message(joined("\n", [*lines, fix]), " Nothing was written.")
    fix = Remedy("unbreak_in_full_refresh" if full_refresh else "unbreak")
    return Message(joined("\n", [*lines, "Fix: "]), fix, ". Nothing was written.")


def _reasons(
    name: str,
    item: Snapshot,
    seed: pa.Schema,
    specification: CubeSpecification,
    keys: Sequence[str],
) -> Iterator[str]:
    for column in sorted(specification.shared_columns & set(item.schema.names)):
        ours, theirs = seed.field(column).type, item.schema.field(column).type
        if mismatch(theirs, ours) is not None:
            yield f"`{column}` is {class_name(theirs)} there and {class_name(ours)} in the new seed"
    # Otherwise its address would become payload, and a cell would have several of its rows.
    told_apart = [*item.dimension_columns, *(key for key in keys if key in item.partition_keys)]
    lost = [name for name in told_apart if name not in specification.shared_columns]
    if lost:
        listed = ", ".join(f"`{column}`" for column in lost)
        yield (
            f"its rows are addressed by {listed}, which the new seed has neither as dimension nor "
            "as partition column"
        )
    for problem in layout_problems(name, item, specification):
        yield problem.rstrip(".")
