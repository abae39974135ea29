"""What may be asked of a store without a JVM, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.log.garbage import find_garbage  # deep: asked by a thread
from ktk_engine.publish.published_forms import owned_by_form  # deep: given by clean-ups
from tests.faults.answer import Answer, answered
from tests.faults.content import ENRICHMENT, SEED, TABLE
from tests.faults.read import rows_of
from tests.support.changes import Retention
from tests.support.committed import (
    check,
    describe,
    list_contents,
    read_history,
    scope_of,
    snapshot_of,
)
from tests.support.stores import LocalStore, ObjectStore

OURS = (TABLE, SEED, ENRICHMENT)


def ask_without_spark(store: LocalStore, uuids: tuple[str, ...] = OURS) -> dict[str, Answer]:
    """Ask everything about some datasets, and the cubes and tables that they belong to."""
    return {name: answered(ask) for name, ask in _questions(store, uuids).items()}


def _questions(store: LocalStore, uuids: tuple[str, ...]) -> Mapping[str, Callable[[], Any]]:
    questions: dict[str, Callable[[], Any]] = {
        "contents": lambda: list_contents(store),
        "cubes": lambda: Store(store.root).cubes(),
        "plan": lambda: (
            Store(store.root).cube("c").query(where="v = 5").plan.datasets[0].files.to_pylist()
        ),
    }
    for uuid in uuids:
        questions[f"rows of {uuid}"] = lambda uuid=uuid: _rows(store, uuid)
    for scope in dict.fromkeys(scope_of(uuid) for uuid in uuids):
        name = scope.name
        questions[f"history of {name}"] = lambda name=name: [
            entry.as_dict() for entry in read_history(store, name)
        ]
        questions[f"description of {name}"] = lambda name=name: describe(store, name)
        questions[f"check of {name}"] = lambda name=name: _problems(store, name)
        questions[f"garbage of {name}"] = lambda scope=scope: [
            info.key
            for info in find_garbage(store, scope, Retention(versions=1), owned_by_form).objects
        ]
    return questions


def _rows(store: ObjectStore, uuid: str) -> Any:
    return rows_of(store, snapshot_of(store, uuid))


def _problems(store: ObjectStore, name: str) -> Any:
    """A problem that was found is as good as an error."""
    problems = check(store, name).problems
    if problems:
        raise KtkError(f"check found: {[str(problem) for problem in problems]}")
    return ()
