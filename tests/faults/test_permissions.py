"""Folders that may only be read, files that may not, and files of somebody else.

As root these tests run their children as a user without rights, whom permissions stop.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.faults.answer import Answer, names_file
from tests.faults.content import ARROW_VERBS, Verb, choose_rows, first_content
from tests.faults.invariants import digests, verify
from tests.faults.nobody import NOBODY, Nobody, refused
from tests.faults.questions_without_spark import ask_without_spark
from tests.faults.report import Tally
from tests.faults.scale import LARGE
from tests.faults.verbs import run
from tests.support.committed import scope_of
from tests.support.stores import LocalStore

# The choice of files and verbs is the same in each run.
_WRITES = [
    Verb(
        name, uuid, choose_rows(Random(1), uuid) if name not in ("compact", "remove") else (), 10**6
    )
    for uuid, names in ARROW_VERBS.items()
    for name in names
    if name not in ("publish", "cleanup")
]


@pytest.fixture
def store() -> Iterator[LocalStore]:
    """A store that anybody may read; pytest's own folders are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="ktk-faults-"))
    folder.chmod(0o755)
    store = LocalStore(folder / "s")
    for verb in first_content(Random(11))[1]:
        run(store, verb)
    for path in (store.root, *store.root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield store
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def nobody() -> Iterator[Nobody]:
    other = Nobody()
    yield other
    other.end()


def test_read_only_store(request, store, nobody):
    """Everything can be read; every write is refused, with the place, and changes nothing."""
    right = ask_without_spark(store)
    folders = [store.root, *(path for path in store.root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    tally = Tally("a store that may only be read: questions and writes")
    for name, answer in nobody.call(ask_without_spark, store).items():
        if answer == right[name]:
            tally.good("answered")
        else:
            tally.bad(name, f"{answer}")
    before = digests(store)
    for verb in _WRITES:
        error = nobody.call(refused, store, verb)
        if "Permission denied" in error and store.url in error:
            tally.good("refused with the place")
        elif error or verb.name != "compact":  # which may have nothing to do
            tally.bad(str(verb), f"refused with {error!r}")
    for folder in folders:
        folder.chmod(0o755)
    assert digests(store) == before
    assert not list(store.list_unfinished())
    tally.finish(request)


def test_unreadable_files_and_folders(request, store, nobody):
    """What cannot be read is named; it is never taken for something that is not there."""
    right = ask_without_spark(store)
    tally = Tally("a file or folder that may not be read")
    paths = sorted(path for path in store.root.rglob("*") if path.name not in ("lock",))
    for path in paths if LARGE else Random(5).sample(paths, 25):
        with _closed(path):
            answers = nobody.call(ask_without_spark, store)
        for name, answer in answers.items():
            case = f"{path.relative_to(store.root)}, {name}"
            if complaint := _complaint(answer, right[name], path):
                tally.bad(case, complaint)
        tally.good("named or not needed")
    tally.finish(request)


def test_folders_of_somebody_else(request, store, nobody):
    """A writer who may not write one folder changes nothing, and leaves nothing elsewhere."""
    tally = Tally("a write where one folder belongs to somebody else")
    found = verify(store, (first_content(Random(11))[0],))
    for path in (store.root, *store.root.rglob("*")):
        _give_away(path)
    folders = sorted(path for path in store.root.rglob("*") if path.is_dir())
    for folder in folders if LARGE else Random(6).sample(folders, 10):
        folder.chmod(0o555)
        if os.geteuid() == 0:
            os.chown(folder, 0, 0)
        verb = _write_into(folder.relative_to(store.root).parts)
        error = nobody.call(refused, store, verb)
        folder.chmod(0o755)
        _give_away(folder)
        after = verb.after(found)
        try:
            found = verify(store, (found,) if error else (after,))
        except Exception as error:  # noqa: BLE001 - any means that something is broken
            tally.bad(f"{folder}, {verb}", str(error))
            break
        if error and "Permission denied" not in error:
            tally.bad(f"{folder}, {verb}", error)
        tally.good("refused" if error else "done without it")
    assert not list(store.list_unfinished())
    tally.finish(request)


def _write_into(folder: tuple[str, ...]) -> Verb:
    """An operation on the dataset that a folder belongs to, as far as it belongs to one."""
    writes = [verb for verb in _WRITES if verb.name != "remove"]
    near = [verb for verb in writes if verb.uuid in folder or scope_of(verb.uuid).name in folder]
    return Random("/".join(folder)).choice(near or writes)


def _complaint(answer: Answer, right: Answer, path: Path) -> str:
    """What is wrong with an answer where a path cannot be read."""
    if not answer.error:
        # A list says about each cube why it cannot be read.
        return (
            ""
            if answer == right or names_file(str(answer.value), path.name)
            else f"another answer: {answer.value}"
        )
    if not answer.ours:
        return f"a raw error: {answer.error}"
    if not names_file(answer.error, path.name):
        return f"the path is not named: {answer.error}"
    return ""


@contextmanager
def _closed(path: Path) -> Iterator[None]:
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(mode)


def _give_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
