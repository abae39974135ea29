"""Notes of the names that a cube's datasets have in SQL, so that a look-up reads no other log.

See docs/design/files-and-commits.md, Names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ktk_engine.log.entry import DatasetEntry, digest
from ktk_engine.log.scope import FOLDER
from ktk_engine.log.state import State
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

_NOTES = join_key(FOLDER, "relation")
_NOTED = join_key(_NOTES, "noted")  # names of the cubes all of whose names are noted


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
