"""Whether a change set can be staged, and the form in which it is."""

from __future__ import annotations

from dataclasses import replace

from ktk_engine.errors import ConfigurationError
from ktk_engine.log.change.change_set import ChangeSet
from ktk_engine.log.stage.joined_changes import computed_once
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy


def stageable(store: StagedStore, base: State, change_set: ChangeSet) -> ChangeSet:
    """Make a change set whose changes can be repeated without computing them twice.

    Raises a `ConfigurationError` if it cannot be staged, because what it does cannot be taken back.
    Its files are announced, so that clean-ups spare them.
    """
    scope = base.scope
    for what, found in (("clean-up", change_set.deleted), ("tag", change_set.tags)):
        if found:
            raise ConfigurationError(
                Message(
                    f"{scope}: a {what} cannot be part of a staged run, which may be discarded. "
                    "Nothing was committed. Run it on its own, ",
                    Remedy("unstaged"),
                    ".",
                )
            )
    removes = any(change.rebase is None for change in change_set.changes)
    if removes and base.changed_by_others:
        raise ConfigurationError(
            Message(
                f"{scope}: another program changed it, and a staged run cannot remove anything "
                "from such a scope. Nothing was committed. Take over first what was changed: ",
                Remedy("adopt", name=scope.name),
            )
        )
    store.announce(scope, change_set.write, {change.uuid for change in change_set.changes})
    return replace(change_set, changes=tuple(map(computed_once, change_set.changes)))
