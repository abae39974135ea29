"""The system refuses a call: full disk, no permission, no files left, a server that is gone."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import CommitStateUnknownError, KtkError, StoreError
from tests.support.changes import WriteRequest, build
from tests.support.committed import cube_scope, snapshot_of
from tests.support.stores import FaultyStore, keys

SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), buckets=2)
CUBE = cube_scope("c")
CALLS = ("open", "write", "mkdir", "link", "rename", "fsync", "scandir", "stat", "pread")
FULL = ("write", "mkdir", "link", "rename", "fsync")
ERRNOS = (
    errno.ENOSPC,
    errno.EACCES,
    errno.EMFILE,
    errno.EIO,
    errno.ESTALE,
    errno.ENAMETOOLONG,
    errno.EROFS,
)
# A data file is written by Arrow, whose calls these are not.
ADVICE = (
    "Free some space",
    "A store must be a folder",
    "ulimit -n",
    "failed: see",
    "shorter",
    "another",
)


def table(*numbers):
    return pa.table({"p": ["a"] * len(numbers), "x": list(numbers), "v": [0.5] * len(numbers)})


@contextmanager
def refusing(monkeypatch, calls, at, number, again=False):
    """Refuse the n-th of some of the system's calls; gives what was called so far."""
    made = []

    def wrapped(name):
        plain = getattr(os, name)

        def call(*args, **kwargs):
            if "ktk_engine/store" not in sys._getframe(1).f_code.co_filename:
                return plain(*args, **kwargs)
            made.append(name)
            if len(made) - 1 == at or (again and at < len(made)):
                raise OSError(number, os.strerror(number), args[0])
            return plain(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in calls:
            patch.setattr(os, name, wrapped(name))
        yield made


def append(store):
    build(store, table(7), SEED, mode="append")


def rows(store):
    files = snapshot_of(store, "c++s").files["key"].to_pylist()
    return sorted(
        x for key in files for x in pq.ParquetFile(store.root / key).read()["x"].to_pylist()
    )


def started(tmp_path, name):
    store = FaultyStore(tmp_path / name)
    build(store, table(1, 2), SEED)
    return store


@pytest.mark.parametrize("again", [False, True], ids=["once", "for good"])
def test_every_refusal_is_an_error_that_says_what_and_leaves_nothing(tmp_path, monkeypatch, again):
    calls = FULL if again else CALLS
    with refusing(monkeypatch, calls, -1, 0) as made:
        append(started(tmp_path, "counted"))
    first = len(made)
    store = started(tmp_path, "s")
    with refusing(monkeypatch, calls, -1, 0) as made:
        append(store)
    assert first > len(made) > 20
    step = 1 if "KTK_EXAMPLES" in os.environ else 4
    done = refused = unknown = 0
    for at in range(0, len(made), step):
        number = errno.ENOSPC if again else ERRNOS[at // step % len(ERRNOS)]
        before, held = rows(store), keys(store)
        with refusing(monkeypatch, calls, at, number, again):
            try:
                append(store)
                error = None
            except KtkError as caught:
                error = caught
        if error is None:  # while publishing, which is a warning, or repeated
            assert rows(store) == sorted([*before, 7])
            done += 1
        elif isinstance(error, CommitStateUnknownError):
            assert rows(store) in (before, sorted([*before, 7]))
            unknown += 1
        else:
            assert rows(store) == before
            assert type(error) is StoreError
            assert os.strerror(number) in str(error)
            assert store.url in str(error)
            assert any(text in str(error) for text in ADVICE)
            left = keys(store) - held
            assert not left or any("/intent/" in key for key in left)
            refused += 1
    print(f"{done} committed, {refused} refused, {unknown} unknown")
    assert refused > 5
    assert unknown == 0 if again else True
    append(store)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_a_link_without_an_answer_may_have_been_made(tmp_path, monkeypatch, number):
    store = FaultyStore(tmp_path / "s")
    plain = os.link

    def link(*args, **kwargs):
        plain(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(StoreError) as caught:
            store.put_if_absent("a", b"1")
    assert not caught.value.nothing_written
    assert store.get("a") == b"1"


def test_a_folder_that_cannot_be_synced_has_the_file(tmp_path, monkeypatch):
    store = FaultyStore(tmp_path / "s")
    store.put_if_absent("b", b"")
    with refusing(monkeypatch, ["fsync"], 1, errno.EIO), pytest.raises(StoreError) as caught:
        store.put_if_absent("a", b"1")
    assert not caught.value.nothing_written
    assert store.get("a") == b"1"


@pytest.mark.parametrize("call", ["open", "write", "link"])
def test_a_refused_write_is_known_to_have_done_nothing(tmp_path, monkeypatch, call):
    store = FaultyStore(tmp_path / "s")
    with refusing(monkeypatch, [call], 0, errno.ENOSPC), pytest.raises(StoreError) as caught:
        store.put_if_absent("a", b"1")
    assert caught.value.nothing_written
    assert "Free some space" in str(caught.value)


def test_errors_name_the_very_file(store, monkeypatch):
    store.put("a/b", b"1")
    with (
        refusing(monkeypatch, ["unlink"], 0, errno.EACCES),
        pytest.raises(StoreError, match=r"cannot delete 'a/b' in file://.*Permission denied"),
    ):
        store.delete(["a/b"])
    lock = store.root / ".ktk/lock"
    lock.unlink()
    lock.symlink_to("elsewhere")
    for call in (lambda: store.put("a/b", b"2"), lambda: store.delete(["a/b"])):
        with pytest.raises(StoreError, match=r"lock '\.ktk/lock' in .*symbolic link"):
            call()
