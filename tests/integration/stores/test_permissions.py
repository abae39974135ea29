"""Stores that several users share: the umask and the folder's group decide, nothing else."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import traceback
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from ktk_engine.errors import StoreError
from ktk_engine.store.local.local_store import LOCK_KEY, LocalStore
from tests.support.changes import Retention, WriteRequest, build, comment_on, run_cleanup
from tests.support.committed import resolve, scope_of, snapshot_of, version_of
from tests.support.documents import Comments

OWNER, MATE, STRANGER = 3001, 3002, 3003
GROUP = 4000
TABLE = WriteRequest("t", indexes=("a",))
ROWS = pa.table({"a": [1, 2]})


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "mode"), [(0o002, 0o664), (0o022, 0o644), (0o077, 0o600)])
def test_the_umask_decides(tmp_path, mask, mode):
    store = LocalStore(tmp_path / "s")
    with umask(mask):
        store.put("a/b", b"")
        store.put_if_absent("a/c", b"")
        with store.open_write("a/d") as sink:
            sink.write(b"")
        build(store, ROWS, TABLE)
    for path in store.root.rglob("*"):
        found = stat.S_IMODE(path.stat().st_mode)
        assert found == (mode | 0o111 & ~mask if path.is_dir() else mode), path


@pytest.fixture
def shared():
    """A folder of a group, whose files belong to the group, no matter who makes them."""
    if os.getuid() != 0:
        pytest.skip("only root can act as several users")
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, OWNER, GROUP)
    folder.chmod(0o2775)
    yield folder
    shutil.rmtree(folder)


def as_user(uid, action, mask=0o002):
    """Run an action as another user, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([GROUP] if uid != STRANGER else [])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(mask)
            action()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_group_mates_read_and_write(shared):
    store = LocalStore(shared / "s")

    def extend():
        build(store, ROWS, TABLE, mode="append")
        comment_on(store, "t", Comments("what it is"))
        build(store, ROWS, TABLE)
        run_cleanup(store, scope_of("t"), Retention(timedelta(0), 1))

    as_user(OWNER, lambda: build(store, ROWS, TABLE))
    as_user(MATE, extend)
    as_user(OWNER, extend)
    assert version_of(store, scope_of("t")) == 8
    for path in store.root.rglob("*"):
        status = path.stat()
        assert status.st_gid == GROUP
        assert status.st_mode & 0o060 == 0o060
        assert not path.is_dir() or status.st_mode & stat.S_ISGID


def test_a_lock_that_may_only_be_read_is_taken(shared):
    store = LocalStore(shared / "s")
    as_user(OWNER, lambda: build(store, ROWS, TABLE))
    (store.root / LOCK_KEY).chmod(0o640)
    as_user(MATE, lambda: build(store, ROWS, TABLE, mode="append"))


def test_a_lock_that_may_not_be_read_is_named(shared):
    store = LocalStore(shared / "s")
    as_user(OWNER, lambda: build(store, ROWS, TABLE))
    (store.root / LOCK_KEY).chmod(0o600)

    def write():
        with pytest.raises(StoreError, match=r"lock '\.ktk/lock' in file://.*chmod g\+rw"):
            build(store, ROWS, TABLE, mode="append")

    as_user(MATE, write)


def test_strangers_read_but_are_refused_to_write(shared):
    store = LocalStore(shared / "s")
    as_user(OWNER, lambda: build(store, ROWS, TABLE))

    def try_it():
        assert snapshot_of(store, "t").rows == 2
        for write in (
            lambda: build(store, ROWS, TABLE),
            lambda: comment_on(store, "t", Comments("mine")),
        ):
            with pytest.raises(StoreError, match="Permission denied") as caught:
                write()
            assert "user can read and write. Nothing was committed." in str(caught.value)

    as_user(STRANGER, try_it)
    shared.chmod(0o2770)

    def look():
        with pytest.raises(StoreError, match=r"Permission denied\. A store must be a folder"):
            resolve(store, scope_of("t"))

    as_user(STRANGER, look)
