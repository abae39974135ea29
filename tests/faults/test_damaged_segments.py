"""A damaged root or segment: an error that names it, or the right answer; no commit mends it wrong.

A bit is flipped, an end is cut off, or the file is missing. What is asked and committed over it is
the right thing, or an error that names the file; a commit that fails leaves the store as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from random import Random

import pytest

from ktk_engine import Store
from tests.faults.answer import Answer, answered, names_file
from tests.faults.child import outcome_of
from tests.faults.content import (
    ARROW_VERBS,
    TABLE,
    Content,
    Verb,
    choose_verb,
)
from tests.faults.damage import Damage, damaged
from tests.faults.invariants import Broken, verify
from tests.faults.questions import subject
from tests.faults.report import Tally
from tests.faults.scale import cases
from tests.faults.verbs import run
from tests.faults.victim import KEYS, build_segmented, segment_kinds
from tests.support.committed import check, list_contents
from tests.support.stores import LocalStore
from tests.support.tiny_bounds import tiny_bounds

COPIES = 4  # commits over one damage
LOOKED_UP = 6  # values of an index


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with tiny_bounds():
        yield


def test_damaged_segments(request, tmp_path):
    store, content = build_segmented(tmp_path / "s")
    verify(store, (content,))
    kinds = segment_kinds(store)
    assert set(kinds) == {"a root", "a file segment", "an index segment"}
    known = {name: _asked(store, name) for name in ("t", "c")}
    assert not [answer for name in known for answer in known[name].values() if answer.error]
    tallies = {kind: Tally(f"damage of {kind}") for kind in kinds}
    for case, random in cases("segment", 8, 400):
        kind = random.choice(sorted(kinds))
        key, damage = random.choice(kinds[kind]), random.choice(("flipped", "flipped", "cut"))
        damage = "missing" if random.random() < 0.05 else damage
        with damaged(store.root / key, damage, random) as place:
            about = f"{case}: {key}, {place}"
            _judge_answers(tallies[kind], about, key, known[subject(key)], store)
        _commit_over(tallies[kind], about, key, damage, random, store, content, tmp_path / "copy")
    for tally in tallies.values():
        tally.report(request)
    for tally in tallies.values():
        tally.require_whole()


def _asked(store: LocalStore, name: str) -> Mapping[str, Answer]:
    """All that one may ask of a table or cube, each by a reader who knows nothing yet."""
    column = "k" if name == TABLE else "v"

    def query(where: str) -> list[object]:
        opened = Store(store.root)
        found = (opened.table(name) if name == TABLE else opened.cube(name)).query(where=where)
        return sorted(map(repr, found.to_arrow().to_pylist()))

    values = range(0, KEYS, KEYS // LOOKED_UP) if name == TABLE else range(0, 10**6, 10**5)
    conditions = [
        f"{column} = {value}" if name == TABLE else f"{column} < {value}" for value in values
    ]
    questions = {
        where: lambda where=where: query(where) for where in [*conditions, "P = 'a'", "true"]
    }
    return {
        **{text: answered(ask) for text, ask in questions.items()},
        "info": answered(lambda: list_contents(store)),
    }


def _judge_answers(
    tally: Tally, case: str, key: str, right: Mapping[str, Answer], store: LocalStore
) -> None:
    given, file = _asked(store, subject(key)), PurePosixPath(key).name
    checked = answered(lambda: [str(item) for item in check(store, subject(key)).problems])
    for name, answer in given.items():
        if answer.error:
            if not answer.ours or not names_file(answer.error, file):
                tally.bad(case, f"{name}: {answer.error[:600]}")
                return
        elif answer != right[name] and not names_file(str(answer.value), file):
            tally.bad(case, f"{name}: silently wrong")
            return
    found = checked.error or " ".join(checked.value)
    if not checked.ours or not names_file(found, file):
        tally.bad(case, f"check says {found[:600]!r}")
    elif any(answer.error for answer in given.values()):
        tally.good("an error names the file")
    else:
        tally.good("right, and check names the file")


def _commit_over(
    tally: Tally,
    case: str,
    key: str,
    damage: Damage,
    random: Random,
    store: LocalStore,
    content: Content,
    folder: Path,
) -> None:
    """Commit over the damage; then the file is as it was, and all has to be right."""
    for _ in range(COPIES):
        verb = _verb(random, content, subject(key))
        copy = LocalStore(Path(shutil.copytree(store.root, folder)))
        with damaged(copy.root / key, damage, random):
            outcome = outcome_of(lambda verb=verb, copy=copy: run(copy, verb))
        after = verb.after(content)
        allowed = (after,) if outcome.end == "done" else (content,)
        try:
            verify(copy, allowed)
        except Broken as error:
            tally.bad(case, f"{verb}: {outcome.end} {outcome.message[:300]}; then {error}")
        else:
            named = names_file(outcome.message, PurePosixPath(key).name)
            if outcome.end == "done":
                tally.good("a commit is right")
            elif outcome.end == "refused" and named:
                tally.good("a commit names the file")
            else:
                tally.bad(case, f"{verb}: {outcome.end} {outcome.message[:600]}")
        shutil.rmtree(folder)


def _verb(random: Random, content: Content, name: str) -> Verb:
    """An operation on the table, or on the cube."""
    verbs = {u: v for u, v in ARROW_VERBS.items() if (u == TABLE) == (name == TABLE)}
    verbs = {u: tuple(v for v in names if v != "publish") for u, names in verbs.items()}
    return choose_verb(random, content, verbs)
