"""A table that is published for other engines, and writers of it that are killed at each call."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.support.changes import check_publishing, publish_datasets, remove
from tests.support.interrupting_store import InterruptingStore

ROWS = pa.table({"x": [1, 2], "s": ["a", "é"]})
VERBS = ("append", "overwrite", "publish", "remove")


def published(store, *formats: str, rows: pa.Table = ROWS, **layout: object) -> Store:
    """Write and publish the table; gives the library's face of the store."""
    face = Store.of(store)
    face.write_table("t", rows, **layout)
    publish_datasets(store, "t", formats=formats)
    return face


def url_of(store) -> str:
    return str(store.root / "t")


def append(face: Store, value: int) -> None:
    face.write_table("t", pa.table({"x": [value], "s": ["z"]}))


def problem(store) -> str:
    """What a check finds wrong with what is published."""
    [found] = check_publishing(store, "t")
    return found.problem


def killed(verb: str, format_: str) -> Iterator[tuple[InterruptingStore, tuple[int, ...]]]:
    """Stores in which a verb was killed before or after one of its calls, then repaired.

    Each comes with the versions that may be published; 0 is none. Once it was looked at, the next
    commit has to bring it up to date.
    """
    started = InterruptingStore()
    if verb == "publish":
        Store.of(started).write_table("t", ROWS)
    else:
        published(started, format_)
    before = Store.of(started).table("t").version
    whole = InterruptingStore(started.objects)
    _run(verb, whole, format_)
    for when in ("before", "after"):
        for at in range(len(whole.calls)):
            store = InterruptingStore(started.objects, at, when, again=True)
            with pytest.raises(KeyboardInterrupt):
                _run(verb, store, format_)
            store.at = -1
            yield store, (0, before, before + 1)
            Store.of(store).write_table("t", ROWS)
            publish_datasets(store, "t", formats=(format_,))
            assert problem(store) == ""


def _run(verb: str, store: InterruptingStore, format_: str) -> None:
    face = Store.of(store)
    if verb == "append":
        append(face, 3)
    elif verb == "overwrite":
        face.write_table("t", ROWS.slice(1), "overwrite")
    elif verb == "publish":
        publish_datasets(store, "t", formats=(format_,))
    else:
        remove(store, "t")
