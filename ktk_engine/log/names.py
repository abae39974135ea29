"""Claims on the names of cubes and tables, and notes of the names that datasets have in SQL.

Names of cubes and tables must differ in more than letter case. Each has its own log, so commits of
two of them do not meet. The names of a cube's datasets in SQL are noted, so that a look-up reads
no other log. See docs/design/files-and-commits.md, Names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from ktk_engine.errors import ConsistencyError, ObjectExistsError, TokenMismatchError
from ktk_engine.format.stamp import digest
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.intent import read_intents
from ktk_engine.log.scope import FOLDER, LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

_NOTES = join_key(FOLDER, "relation")
_NOTED = join_key(_NOTES, "noted")  # names of the cubes all of whose names are noted


def claim_name(head: State, commit_id: str) -> None:
    """Claim the name of a scope that gets its first dataset; one request where it is free.

    A claim counts while its scope has a dataset, or a writer that is alive. Raises a
    `ConsistencyError` if one counts whose name differs only in letter case.
    """
    store, scope = head.store, head.scope
    claim = f"{scope} {commit_id}".encode()
    with suppress(ObjectExistsError):
        return store.put_if_absent(scope.name_key, claim)
    while True:
        found, token = store.get_with_token(scope.name_key)
        kind, _, name = found.decode(errors="replace").partition(" ")[0].partition("/")
        other = LogScope(kind, name)
        if name != scope.name and other.name_key == scope.name_key and _is_taken(head, other):
            raise ConsistencyError(
                f"{scope.name} and {name} of {store.url}: the names differ only in letter case, "
                "which SQL ignores. Nothing was committed. Give one of them another name. If "
                f"there is no {name}, its writer is at work, or was killed within a day."
            )
        with suppress(TokenMismatchError):
            # Also for an own claim: another writer must not take it over by an old token.
            return store.replace(scope.name_key, claim, token)


def _is_taken(head: State, scope: LogScope) -> bool:
    """Whether a scope exists or is being made; a writer that ends in between has committed."""
    store = head.store
    comes = any(intent.is_alive(store.now()) for intent in read_intents(store, scope))
    return comes or bool(resolve(store, scope).datasets)


def note_names(head: State, datasets: Mapping[str, DatasetEntry]) -> None:
    """Note the names that a commit gives to datasets of a cube, before it is made.

    A note stays when its dataset goes: a look-up then reads a log in vain.
    """
    store, scope = head.store, head.scope
    if not scope.cube:
        return
    known = {uuid: item.entry for uuid, item in head.datasets.items() if item.entry}
    names, before = (
        {item.relation or scope.dataset_id(uuid) for uuid, item in entries.items()}
        for entries in (datasets, known)
    )
    if names <= before:
        return
    mark = join_key(_NOTED, scope.cube)
    is_noted = store.exists(mark)  # else it is new, or an earlier version wrote it
    for name in sorted(names - before if is_noted else names):
        store.put(join_key(_folder(name), scope.cube), str(scope).encode())
    if not is_noted:
        store.put(mark, str(scope).encode())


def cubes_of_name(store: ObjectStore, name: str, cubes: Iterable[str]) -> list[str] | None:
    """The cubes that may have a dataset of a name in any letter case; None if only logs tell."""
    wanted = list(cubes)
    # The marks first: a cube is marked after its notes.
    if wanted and not set(wanted) <= set(store.list_names(_NOTED)):
        return None
    noted = set(store.list_names(_folder(name)) if wanted else ())
    return [cube for cube in wanted if cube in noted]


def _folder(name: str) -> str:
    """The folder with the notes of a name; a digest, since names may hold any character."""
    return join_key(_NOTES, digest(name.lower().encode(errors="replace")))
