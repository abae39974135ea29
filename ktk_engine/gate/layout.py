"""Whether a dataset has the layout that a write would give it."""

from __future__ import annotations

from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.target import Target
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot


def check_layout(target: Target, base: Snapshot) -> None:
    """Raise a `ConfigurationError` that names what differs in layout or role.

    A full refresh changes the layout.
    """
    differences = []
    if target.cube and base.is_seed != (target.role == "seed"):
        was = "the seed dataset" if base.is_seed else "an enrichment"
        role = "the seed dataset" if target.role == "seed" else "an enrichment"
        differences.append(f"it is {was} of cube {target.cube} and would become {role}")
    for what, now, then in (
        ("partition_by", target.partition_by, base.partition_keys),
        ("dimension_columns", target.dimension_columns, _dimensions(target, base)),
    ):
        if tuple(now) != tuple(then):
            now_, then_ = ", ".join(now) or "empty", ", ".join(then) or "none"
            differences.append(f"{what} is {now_}, the dataset has {then_}")
    if not differences:
        return
    raise ConfigurationError(
        Message(
            f"Dataset {target.uuid}: {'; '.join(differences)}. Nothing was written. ", _fix(target)
        )
    )


def _fix(target: Target) -> Remedy:
    """How to change the layout, which rewrites all rows."""
    if target.keeps_versions:
        kind = "lay_out_snapshot" if target.cube else "lay_out_snapshot_table"
        return Remedy(kind, name=target.dataset)
    if target.owner is not None:
        return Remedy("lay_out_model", select=target.select)
    return Remedy("lay_out" if target.cube else "lay_out_table", name=target.dataset)


def _dimensions(target: Target, base: Snapshot) -> tuple[str, ...]:
    """The dataset's dimension columns; in one of Kartothek's, the order is undefined."""
    known = base.dimension_columns
    if not base.properties.get("dimension_columns") and set(known) == set(target.dimension_columns):
        return target.dimension_columns
    return known
