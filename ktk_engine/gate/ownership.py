"""Whether a write may change a dataset: who built it, under which name, and its layout."""

from __future__ import annotations

from ktk_engine.catalog.catalog import relation_name
from ktk_engine.errors import ConsistencyError
from ktk_engine.gate.layout import check_layout
from ktk_engine.gate.owner import Owner
from ktk_engine.gate.target import Target
from ktk_engine.log.dbt_node import DbtNode
from ktk_engine.log.find_builder import builder_of
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy


def check_ownership(target: Target, state: State, keeps_rows: bool, full_refresh: bool) -> str:
    """Check that a write may change its existing dataset; returns a note for the user, or "".

    Only the node that built a cube's dataset may replace its rows. A plain table is replaced like
    any table by `create or replace`. Raises a `ConsistencyError` that names both nodes, or a
    `ConfigurationError` for another layout.
    """
    said = check_builder(target, state, keeps_rows, full_refresh)
    exists = target.uuid in state.datasets and not state.datasets[target.uuid].problem
    if exists and not full_refresh and (keeps_rows or target.cube):
        check_layout(target, state.snapshot(target.uuid))
    return said


def check_builder(target: Target, state: State, keeps_rows: bool, full_refresh: bool) -> str:
    """Check that a dbt node may replace the rows of a dataset; see `check_ownership`."""
    item, owner = state.datasets.get(target.uuid), target.owner
    if item is None or item.problem or owner is None or not target.cube:
        return ""
    found = builder_of(state, target.uuid)
    if found is None:
        is_empty = item.entry is not None and not item.foreign and item.entry.rows == 0
        if not (keeps_rows or full_refresh or is_empty):
            raise ConsistencyError(_unowned(target, owner))
        return ""
    if not owner.is_successor_of(found):
        raise ConsistencyError(_of_other_owner(target, owner, found))
    name = relation_name(target.uuid, item.entry)
    if keeps_rows and target.relation not in ("", name) and not full_refresh:
        raise ConsistencyError(_renamed(target, name))
    if found == owner.builder:
        return ""
    return f"takes over {target.uuid} from {found}, which the project no longer has"


def _unowned(target: Target, owner: Owner) -> Message:
    return Message(
        f"Dataset {target.uuid} holds rows that no project built (another program, Python or a "
        f"statement did), and {owner} would replace them. Nothing was written. ",
        Remedy("add_replace_or_leave", select=owner.builder.name),
    )


def _of_other_owner(target: Target, owner: Owner, found: DbtNode) -> Message:
    return Message(
        f"Dataset {target.uuid} is built by {found}, and {owner} would write to it. Nothing was "
        "written. ",
        Remedy("other_dataset"),
        " If the first no longer exists, take its dataset out: ",
        Remedy.on("drop", target.cube, target.dataset),
    )


def _renamed(target: Target, name: str) -> Message:
    kind = "keep_name_of_snapshot" if target.keeps_versions else "keep_name"
    return Message(
        f"SQL knows dataset {target.uuid} as {name}, and it would now become {target.relation}: "
        "queries by its old name would fail. Nothing was written. ",
        Remedy(kind, name=name, select=target.select),
    )
