"""The reference model: what rows a store should have, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

Row = tuple[str, int, int]  # a partition's value, a key, a payload
Content = Mapping[str, tuple[Row, ...]]  # dataset -> rows; a dataset that is not there is missing

TABLE, SEED, ENRICHMENT = "t", "c++s", "c++e"
PLACES = ("a", "b/%=", "ü ", "")


@dataclass(frozen=True)
class Verb:
    """One operation on one dataset.

    Attributes:
        name: build, append, overwrite, merge, delete+insert, replace_where, compact, comment,
            remove, cleanup or publish; of Python's interface write merge, delete, update and
            transaction.
        uuid: the dataset.
        rows: the new rows; for `publish` those of a commit that is to be published.
        number: tells one comment from another; rows whose payload is below it are deleted.
    """

    name: str
    uuid: str
    rows: tuple[Row, ...] = ()
    number: int = 0

    def after(self, content: Content) -> Content:
        """What the store has when the operation is done."""
        if self.name == "remove":
            return {uuid: rows for uuid, rows in content.items() if uuid != self.uuid}
        change = _CHANGES.get(self.name)
        if change is None:
            return content
        return {**content, self.uuid: _once(self.uuid, change(content.get(self.uuid, ()), self))}


def _once(uuid: str, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Of a cube's cell the last row counts."""
    if uuid == TABLE:
        return tuple(sorted(rows))
    return tuple(sorted({row[:2]: row for row in rows}.values()))


def _overwritten(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    places = {row[0] for row in verb.rows}
    return (*(row for row in old if row[0] not in places), *verb.rows)


def _merged(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    """By the key; all columns are updated, so each matching old row becomes the new one."""
    new = {row[1]: row for row in verb.rows}
    matched = {row[1] for row in old}
    kept = tuple(new.get(row[1], row) for row in old)
    return (*kept, *(row for row in verb.rows if row[1] not in matched))


def _delete_inserted(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    keys = {row[1] for row in verb.rows}
    return (*(row for row in old if row[1] not in keys), *verb.rows)


def _deleted(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    return tuple(row for row in old if row[2] >= verb.number)


def _appended_and_deleted(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    """What a newer row has replaced does not come back when that is deleted."""
    return _deleted(_once(verb.uuid, (*old, *verb.rows)), verb)


def _replaced(old: tuple[Row, ...], verb: Verb) -> tuple[Row, ...]:
    """Rows with a negative payload are replaced; the new ones all have one."""
    return (*(row for row in old if row[2] >= 0), *verb.rows)


_CHANGES: Mapping[str, Callable[[tuple[Row, ...], Verb], tuple[Row, ...]]] = {
    "build": lambda old, verb: verb.rows,
    "append": lambda old, verb: (*old, *verb.rows),
    "publish": lambda old, verb: (*old, *verb.rows),
    "overwrite": _overwritten,
    "merge": _merged,
    "delete+insert": _delete_inserted,
    "replace_where": _replaced,
    "write merge": _delete_inserted,
    "delete": _deleted,
    "update": _overwritten,
    "transaction": _appended_and_deleted,
}

ARROW_VERBS = {
    TABLE: (
        *("build", "append", "overwrite", "merge", "delete+insert", "compact"),
        *("comment", "remove", "cleanup", "publish", "write merge", "delete"),
    ),
    SEED: (
        *("build", "append", "overwrite", "compact", "comment", "cleanup", "publish"),
        *("delete", "update", "transaction"),
    ),
    ENRICHMENT: (
        *("build", "append", "overwrite", "compact", "comment", "remove", "cleanup", "publish"),
        *("delete", "update", "transaction"),
    ),
}
SPARK_VERBS = {
    TABLE: ("build", "append", "overwrite", "merge", "delete+insert", "replace_where", "compact"),
    SEED: ("build", "append", "overwrite", "compact"),
    ENRICHMENT: ("build", "append", "overwrite", "compact"),
}
_NEEDS_DATASET = {"compact", "comment", "remove", "publish", "cleanup", "delete"}


def choose_verb(random: Random, content: Content, verbs: Mapping[str, tuple[str, ...]]) -> Verb:
    """Choose an operation that can be done."""
    present = [uuid for uuid in verbs if uuid in content]
    uuid = random.choice(list(verbs))
    if SEED not in content and uuid == ENRICHMENT:
        uuid = SEED
    if uuid not in present:
        return Verb("build", uuid, choose_rows(random, uuid))
    name = random.choice(verbs[uuid])
    rows = () if name in _NEEDS_DATASET - {"publish"} else choose_rows(random, uuid)
    if name == "replace_where":
        rows = tuple((place, key, -1 - payload) for place, key, payload in rows)
    if name in ("merge", "delete+insert", "write merge"):
        rows = tuple({row[1]: row for row in rows}.values())
    limit = 10**6 if name in ("delete", "transaction") else 10**9
    return Verb(name, uuid, rows, random.randrange(limit))


def choose_rows(random: Random, uuid: str) -> tuple[Row, ...]:
    """One to eight rows; in a cube each cell once."""
    rows = [
        (random.choice(PLACES), random.randrange(12), random.randrange(10**6))
        for _ in range(random.randint(1, 8))
    ]
    return _once(uuid, tuple(rows))


def first_content(random: Random) -> tuple[Content, list[Verb]]:
    """A store with a table and a cube, each written in two commits, and how it came about."""
    content: Content = {}
    verbs = []
    for uuid in (TABLE, SEED, ENRICHMENT):
        for name in ("build", "append"):
            verb = replace(Verb(name, uuid), rows=choose_rows(random, uuid))
            content = verb.after(content)
            verbs.append(verb)
    return content, verbs
