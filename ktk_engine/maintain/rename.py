"""Gives a cube or table another name: its files are copied, then the old name goes.

Two names are two logs, so this is two commits. No moment loses a row: first the new name has
everything, then the old one is removed. A call that is killed in between leaves both, and the same
call finishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ktk_engine.catalog.catalog import Catalog, read_view
from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.catalog.view import FOLDER as VIEW_FOLDER
from ktk_engine.catalog.view import view_name
from ktk_engine.cube.specification import check_cube_name, check_together
from ktk_engine.errors import CommitConflictError, ConsistencyError, StoreError
from ktk_engine.log.change.after_commit import after_commit, say_committed
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.dbt_node import builder_of
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.log.version import tags_of
from ktk_engine.maintain.change_datasets import ChangeResult, change_datasets
from ktk_engine.maintain.copy import CopyPlan, plan_copy, run_copy
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.publish.publish import publish, publish_head
from ktk_engine.store.interface import ObjectStore

_FROM = "renamed_from"


@dataclass(frozen=True)
class RenamePlan:
    """What a renaming would do."""

    state: State  # the scope under its old name
    new: str
    copy: CopyPlan | None  # None: an earlier call has copied
    copied: int = 0  # version of the copy of an earlier call; 0: none

    @property
    def scope(self) -> LogScope:
        """The scope under its new name."""
        return LogScope(self.state.scope.kind, self.new)

    @property
    def builders(self) -> tuple[str, ...]:
        """The dbt nodes that would build it again under the old name."""
        found = (builder_of(self.state, uuid) for uuid in self.state.datasets)
        return tuple(sorted({str(builder) for builder in found if builder}))


def rename(
    store: ObjectStore, name: str, new: str, history: Mapping[str, str] | None = None
) -> ChangeResult:
    """Give a cube or table another name in its store.

    The history stays under the old name, from where `undrop` brings datasets back until a clean-up.
    Raises a `ConsistencyError` if the new name is taken or something refers to the old one. After a
    `StoreError` that leaves both names, the same call finishes it.
    """
    return run_rename(plan_rename(store, name, new), history)


def plan_rename(store: ObjectStore, name: str, new: str) -> RenamePlan:
    """Find out whether it can be renamed; see `rename`."""
    check_cube_name("name", new)
    state = find_scope(store, name)
    if state.scope.cube:
        check_together(new, "")
    if new == name:
        raise ConsistencyError(f"{name} has this name already. Nothing was written.")
    if tags := tags_of(state):
        raise ConsistencyError(
            f"{name} has the tags {', '.join(tags)}, which name versions of its log; that "
            "stays under the old name. Delete the tags first: ",
            Remedy("untag", name=name, tag=next(iter(tags))),
            ". Nothing was written.",
        )
    if views := _views_over(store, state.scope):
        raise ConsistencyError(
            f"The views {', '.join(views)} read the cube {name} by its name. Drop them first (drop "
            f"view {views[0]}), and build them over {new} afterwards. Nothing was written."
        )
    there = resolve(store, LogScope(state.scope.kind, new))
    if there.datasets and _is_copy(there, state):
        return RenamePlan(state, new, None, there.version)
    if there.datasets or _is_taken(store, state.scope, new):
        raise ConsistencyError(f"{store.url} has {new} already. Nothing was written.")
    plan = plan_copy(state, store, new)
    return RenamePlan(state, new, replace(plan, keeps_owner=True))


def run_rename(plan: RenamePlan, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Do what was planned; see `rename`."""
    state, store, old = plan.state, plan.state.store, plan.state.scope.name
    if plan.copy is not None:
        if state.head is None or any(item.foreign for item in state.datasets.values()):
            # The log has to know it, so that it can be brought back under its old name.
            change_datasets(state, f"adopt {old}", (), {"reason": f"to rename it to {plan.new}"})
            return run_rename(plan_rename(store, old, plan.new), history)
        said = {"reason": f"renamed from {old}", _FROM: _identity(state), **(history or {})}
        plan = replace(plan, copied=run_copy(plan.copy, said).version)
    try:
        warning = _switch_over(plan, {"reason": f"renamed to {plan.new}", **(history or {})})
    except CommitConflictError as error:
        message = Message(error, f" {old} keeps its name. ", _take_back(plan), "Run it again.")
        raise CommitConflictError(message) from error
    except BaseException as error:
        remedy = Remedy("rename", name=old, new=plan.new)
        both = f"{old} and {plan.new} may both be there now, with the same rows."
        say_committed(error, f"{both} To finish: {remedy}")
        raise
    with after_commit(plan.new):
        done = resolve(store, plan.scope)
    names = tuple(done.scope.dataset_id(uuid) for uuid in done.datasets)
    return ChangeResult(plan.new, names, done.version, warning)


def _switch_over(plan: RenamePlan, history: Mapping[str, str]) -> str:
    """Remove the old name once readers have all under the new one; returns a warning.

    If Kartothek's documents cannot be published, the old name stays: that passes. Another form does
    not stop the renaming, since it may fail as long as a package is missing here. Raises a
    `CommitConflictError` if others changed something.
    """
    state, store = plan.state, plan.state.store
    if _is_taken(store, state.scope, plan.new):
        raise CommitConflictError(f"{plan.new} was given to another relation meanwhile.")
    behind = publish_head(store, plan.scope)
    if behind.documents:
        raise StoreError(Message(f"{plan.new} is ", behind.documents, "."))
    return joined("; ", filter(None, (behind.others, _remove(state, history))))


def _views_over(store: ObjectStore, scope: LogScope) -> list[str]:
    """The cube models over a cube."""
    names = [view_name(name) for name in store.list_names(VIEW_FOLDER)]
    views = [view for name in names if scope.cube and (view := read_view(store, name))]
    return [view.name for view in views if view.cube == scope.cube]


def _is_taken(store: ObjectStore, scope: LogScope, new: str) -> bool:
    """Whether a cube, a table or a view has the name already, or SQL knows a dataset by it."""
    if scope.kind == "cube":
        return bool(resolve(store, LogScope("dataset", new)).datasets)
    others = [item for item in Catalog.of(store).known_as(new) if item.uuid != new]
    return bool(others or resolve(store, LogScope("cube", new)).datasets)


def _identity(state: State) -> str:
    """A text that identifies a version of a scope."""
    assert state.head is not None
    return f"{state.scope} version {state.version} commit {state.head.commit}"


def _is_copy(there: State, state: State) -> bool:
    """Whether an interrupted renaming has made one from the other, and both are unchanged."""
    if there.head is None or state.head is None:
        return False
    both = (*there.datasets.values(), *state.datasets.values())
    if not all(item.is_as_committed for item in both):
        return False
    return there.head.history.get(_FROM) == _identity(state)


def _remove(state: State, history: Mapping[str, str]) -> str:
    """Remove what was copied, with a warning if Kartothek's readers may not see it yet.

    Raises a `CommitConflictError` if it was changed.
    """
    newest = resolve(state.store, state.scope)
    if (newest.version, newest.datasets) != (state.version, state.datasets):
        raise CommitConflictError(
            f"{state.scope.name} was changed meanwhile, at version {newest.version} of its log. It "
            "was not removed."
        )
    operation = f"rename {state.scope.name}"
    with ScopeTransaction(state, operation, history, unchecked, publish) as changing:
        for uuid in state.datasets:
            changing.change(DatasetChange(uuid, "remove", None))
        changing.require_base()
        return changing.commit().warning


def _take_back(plan: RenamePlan) -> str:
    """Remove a copy of an older version, or return a warning: others changed it, so it stays."""
    there, old = resolve(plan.state.store, plan.scope), plan.state.scope.name
    try:
        if there.version != plan.copied:
            raise CommitConflictError(f"Version {there.version} came first.")
        _remove(there, {"reason": "the original was changed while it was renamed"})
    except CommitConflictError:
        return (
            f"{plan.new} was changed meanwhile, too, and stays: it has the rows that {old} had "
            "and what was committed since. Remove it, or give it another name. "
        )
    except BaseException as error:
        say_committed(
            error,
            f"{old} keeps its name, and {plan.new} may still have its earlier rows. Remove "
            f"{plan.new}: {Remedy('drop_all', name=plan.new)}. Then rename {old} again.",
        )
        raise
    return ""
