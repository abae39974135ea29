"""Whether a write may change a dataset: who built it, under which name, and its layout."""

from __future__ import annotations

from ktk_engine.catalog.catalog import relation_name
from ktk_engine.errors import ConfigurationError, ConsistencyError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.dbt_node import DbtNode, Owner, builder_of
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot


def check_ownership(target: WriteRequest, state: State) -> str:
    """Check that a write may change its existing dataset; returns a note for the user, or "".

    Only the node that built a cube's dataset may replace its rows. A plain table is replaced like
    any table by `create or replace`. Raises a `ConsistencyError` that names both nodes, or a
    `ConfigurationError` for another layout.
    """
    said = check_builder(target, state)
    exists = target.uuid in state.datasets and not state.datasets[target.uuid].problem
    if exists and target.is_bound:
        _check_layout(target, state.snapshot(target.uuid))
    return said


def check_builder(target: WriteRequest, state: State) -> str:
    """Check that a dbt node may replace the rows of a dataset; see `check_ownership`."""
    item, owner = state.datasets.get(target.uuid), target.owner
    if item is None or item.problem or owner is None or not target.cube:
        return ""
    found = builder_of(state, target.uuid)
    if found is None:
        is_empty = item.entry is not None and not item.foreign and item.entry.rows == 0
        if not (target.mode or target.full_refresh or is_empty):
            raise ConsistencyError(_unowned(target, owner))
        return ""
    if not owner.is_successor_of(found):
        raise ConsistencyError(_of_other_owner(target, owner, found))
    name = relation_name(target.uuid, item.entry)
    if target.mode and target.relation not in ("", name) and not target.full_refresh:
        raise ConsistencyError(_renamed(target, name))
    if found == owner.builder:
        return ""
    return f"takes over {target.uuid} from {found}, which the project no longer has"


def _unowned(target: WriteRequest, owner: Owner) -> Message:
    return Message(
        f"Dataset {target.uuid} holds rows that no project built (another program, Python or a "
        f"statement did), and {owner} would replace them. Nothing was written. ",
        Remedy("add_replace_or_leave", select=owner.builder.name),
    )


def _of_other_owner(target: WriteRequest, owner: Owner, found: DbtNode) -> Message:
    return Message(
        f"Dataset {target.uuid} is built by {found}, and {owner} would write to it. Nothing was "
        "written. ",
        Remedy("other_dataset"),
        " If the first no longer exists, drop its dataset: ",
        Remedy.on("drop", target.cube, target.dataset),
    )


def _renamed(target: WriteRequest, name: str) -> Message:
    kind = "keep_name_of_snapshot" if target.keeps_versions else "keep_name"
    return Message(
        f"SQL knows dataset {target.uuid} as {name}, and it would now become {target.relation}: "
        "queries by its old name would fail. Nothing was written. ",
        Remedy(kind, name=name, select=target.select),
    )


def _check_layout(target: WriteRequest, base: Snapshot) -> None:
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
        f"Dataset {target.uuid}: {'; '.join(differences)}. Nothing was written. ", _fix(target)
    )


def _fix(target: WriteRequest) -> Remedy:
    """How to change the layout, which rewrites all rows."""
    if target.keeps_versions:
        kind = "lay_out_snapshot" if target.cube else "lay_out_snapshot_table"
        return Remedy(kind, name=target.dataset)
    if target.owner is not None:
        return Remedy("lay_out_model", select=target.select)
    return Remedy("lay_out" if target.cube else "lay_out_table", name=target.dataset)


def _dimensions(target: WriteRequest, base: Snapshot) -> tuple[str, ...]:
    """The dataset's dimension columns; those that Kartothek wrote have no defined order."""
    known = base.dimension_columns
    if not base.properties.get("dimension_columns") and set(known) == set(target.dimension_columns):
        return target.dimension_columns
    return known
