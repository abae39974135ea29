import ctypes
import errno
import fcntl
import os

import pyarrow as pa
import pytest

from ktk_engine.errors import (
    InvalidKeyError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
)
from ktk_engine.store.local import folder, temporary_file
from ktk_engine.store.local.local_store import LOCK_KEY, LocalStore
from tests.support.stores import AWKWARD

pytestmark = pytest.mark.usefixtures("synced")


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def keys(store, prefix=""):
    return [info.key for info in store.list(prefix)]


def files_on_disk(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.mark.parametrize("key", AWKWARD)
def test_an_object_is_the_file_of_its_name(store, key):
    store.put_if_absent(key, b"abc")
    assert (store.root / key).read_bytes() == b"abc"
    store.delete([key])
    assert files_on_disk(store.root) == []


def test_a_put_leaves_no_temporary_file(store):
    store.put("a/b", b"1")
    store.put("a/b", b"22")
    assert files_on_disk(store.root) == [".ktk", ".ktk/lock", "a", "a/b"]


def test_a_lost_put_leaves_no_temporary_file(store):
    store.put_if_absent("a", b"1")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"2")
    assert files_on_disk(store.root) == ["a"]


def test_a_missing_root_is_an_empty_store(store):
    assert keys(store) == []
    assert store.list_names() == []
    assert not store.exists("a")
    store.delete(["a", "b/c"])
    for read in (store.get, store.open_read, store.get_with_token):
        with pytest.raises(ObjectNotFoundError):
            read("a")
    assert not store.root.exists()


def test_folders_are_no_objects(store):
    store.put_if_absent("a/b", b"")
    assert not store.exists("a")
    with pytest.raises(ObjectNotFoundError):
        store.get("a")
    # Nothing lies below an object: a store would say "not found".
    with pytest.raises(ObjectNotFoundError):
        store.get("a/b/c")
    assert keys(store, "a/b/") == []
    assert store.list_names("a/b") == []
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StoreError, match="is a file"):
            write("a/b/c", b"")
    with pytest.raises(StoreError, match="folder"):
        store.put_if_absent("a", b"")
    with pytest.raises(StoreError):
        store.put("a", b"")
    store.delete(["a"])
    assert keys(store) == ["a/b"]


def test_reserved_names_are_refused(store):
    for key in [LOCK_KEY, ".tmp-1", "a/.tmp-x"]:
        for write in (store.put, store.put_if_absent):
            with pytest.raises(InvalidKeyError):
                write(key, b"")
    store.put("a", b"")
    store.delete([LOCK_KEY])
    assert (store.root / LOCK_KEY).exists()


def test_symbolic_links_are_neither_followed_nor_objects_nor_deleted(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    store.put_if_absent("d/real", b"")
    (store.root / "folder").symlink_to(outside)
    (store.root / "d" / "file").symlink_to(outside / "secret")
    (store.root / "dangling").symlink_to(tmp_path / "nowhere")
    assert keys(store) == ["d/real"]
    assert store.list_names() == ["d/", "dangling", "folder"]  # nobody takes them for gone
    for key in ["folder/secret", "folder/new", "d/file", "dangling"]:
        for call in (
            store.get,
            store.exists,
            store.open_read,
            lambda key: store.delete([key]),
            lambda key: store.put(key, b"x"),
            lambda key: store.put_if_absent(key, b"x"),
        ):
            with pytest.raises(StoreError, match="symbolic link") as caught:
                call(key)
            assert type(caught.value) is StoreError
        with pytest.raises(StoreError, match="symbolic link"), store.open_write(key) as sink:
            sink.write(b"x")
    with pytest.raises(StoreError, match="symbolic link"):
        list(store.list("folder/"))
    assert files_on_disk(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (tmp_path / "nowhere").exists()
    assert (store.root / "folder").is_symlink()


def test_a_linked_root_is_the_operators_business(store, tmp_path):
    store.put_if_absent("a", b"1")
    (tmp_path / "link").symlink_to(store.root)
    assert LocalStore(tmp_path / "link").get("a") == b"1"


def test_a_pipe_is_no_object(store):
    store.put_if_absent("a", b"")
    os.mkfifo(store.root / "pipe")
    assert keys(store) == ["a"]
    with pytest.raises(StoreError, match="'pipe' is a pipe") as caught:
        store.get("pipe")
    assert type(caught.value) is StoreError  # it is not missing


def test_a_refusal_of_the_system_is_not_not_found(store, monkeypatch):
    store.put_if_absent("a", b"")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folder.os, "open", refuse)
    for call in (
        lambda: store.get("a"),
        lambda: store.exists("a"),
        lambda: list(store.list()),
        lambda: store.list_names(),
        lambda: store.put_if_absent("b", b""),
    ):
        with pytest.raises(StoreError, match="Permission denied") as caught:
            call()
        assert type(caught.value) is StoreError


def test_a_file_as_root(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for call in (lambda s: s.get("a"), lambda s: list(s.list()), lambda s: s.put("a", b"")):
        with pytest.raises(StoreError) as caught:
            call(LocalStore(tmp_path / "file"))
        assert type(caught.value) is StoreError


@pytest.mark.parametrize("seconds", [1e12, -1e12])
def test_a_clock_beyond_all_dates(store, seconds):
    store.put_if_absent("a", b"")
    os.utime(store.root / "a", (seconds, seconds))
    assert keys(store) == ["a"]


def test_a_path_that_is_no_text(tmp_path):
    store = LocalStore(str(tmp_path) + os.fsdecode(b"/\xff"))
    store.put_if_absent("a", b"")
    assert store.uri("a") == f"file://{tmp_path}/%FF/a"


def test_names_that_are_no_keys_are_not_listed(store):
    store.put_if_absent("a", b"")
    (store.root / "new\nline").write_bytes(b"")
    (store.root / "back\\slash").mkdir()
    (store.root / os.fsdecode(b"\xff")).write_bytes(b"")
    assert keys(store) == ["a"]
    assert store.list_names() == ["a"]


def test_delete_removes_empty_folders_up_to_the_root(store):
    for key in ["a/b/c/1", "a/b/c/2", "a/x"]:
        store.put_if_absent(key, b"")
    store.delete(iter(["a/b/c/1", "missing/1", "a/b/c/1"]))
    assert keys(store) == ["a/b/c/2", "a/x"]
    store.delete(["a/b/c/2"])
    assert files_on_disk(store.root) == ["a", "a/x"]
    store.delete(["a/x"])
    assert files_on_disk(store.root) == []
    assert store.root.is_dir()


def test_open_write_publishes_at_the_end(store):
    with store.open_write("a/b") as sink:
        sink.write(b"123")
        assert keys(store) == []
        assert [info.key.startswith("a/.tmp-") for info in store.list_unfinished()] == [True]
        assert store.list_names("a") == []
        sink.write(b"45")
    assert store.get("a/b") == b"12345"
    assert list(store.list_unfinished()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_open_write_leaves_nothing_when_the_block_raises(store, error):
    store.put_if_absent("x", b"")
    with pytest.raises(error), store.open_write("a/b/c") as sink:
        sink.write(b"123")
        raise error
    assert files_on_disk(store.root) == ["x"]


def test_open_write_does_not_replace(store):
    with pytest.raises(ObjectExistsError), store.open_write("a") as sink:
        sink.write(b"mine")
        store.put_if_absent("a", b"theirs")
    assert store.get("a") == b"theirs"
    assert files_on_disk(store.root) == ["a"]


def test_open_write_of_a_file_that_was_collected_is_an_error(store):
    with pytest.raises(StoreError), store.open_write("a/b") as sink:
        sink.write(b"mine")
        store.delete([info.key for info in store.list_unfinished()])
    assert files_on_disk(store.root) == []


def test_without_dev_fd(store, monkeypatch):
    def missing(*args):
        raise FileNotFoundError(2, "no /dev/fd here")

    monkeypatch.setattr(pa, "OSFile", missing)
    with store.open_write("a") as sink:
        sink.write(b"123")
    with store.open_read("a") as source:
        assert source.read() == b"123"


def test_without_hard_links(store, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(temporary_file.os, "link", refuse)
    store.put_if_absent("a", b"1")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"2")
    assert store.get("a") == b"1"

    def unsupported(*args):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(temporary_file, "_rename_noreplace", unsupported)
    with pytest.raises(StoreError, match="hard links"):
        store.put_if_absent("b", b"2")
    assert files_on_disk(store.root) == ["a"]


def test_everything_new_is_synced(store, monkeypatch):
    synced = []
    fsync = os.fsync

    def record(descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append(os.path.relpath(path, store.root.parent))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    store.put_if_absent("a/b/c", b"")
    assert synced[:3] == [".", "store", "store/a"]
    assert synced[3].startswith("store/a/b/.tmp-")
    assert synced[4:] == ["store/a/b"]
    synced.clear()
    store.put_if_absent("a/b/d", b"")
    assert synced[1:] == ["store/a/b"]


def test_uris(tmp_path):
    store = LocalStore(tmp_path / "sto re%")
    assert store.url == f"file://{tmp_path}/sto%20re%25"
    uri = store.uri("geo++s/table/p=U%20K/ü#?.parquet")
    assert uri == store.url + "/geo++s/table/p=U%2520K/%C3%BC%23%3F.parquet"
    assert LocalStore("/").uri("a") == "file:///a"


@pytest.mark.parametrize(("command", "fsyncs"), [(fcntl.F_GETFD, False), (-1, True), (None, True)])
def test_files_reach_the_disk_where_fsync_does_not_do_it(tmp_path, monkeypatch, command, fsyncs):
    """macOS has a call of its own, which some of its file systems refuse; Linux has none."""
    called = []
    if command is not None:
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", command, raising=False)
    monkeypatch.setattr(os, "fsync", called.append)
    LocalStore(tmp_path / "s").put("a/b", b"x")
    assert bool(called) == fsyncs
    assert LocalStore(tmp_path / "s").get("a/b") == b"x"


def test_put_if_absent_without_hard_links_and_renameat2(tmp_path, monkeypatch):
    """As on a disk that macOS has formatted for cameras: refused, and nothing is left."""

    def refused(*_, **__):
        raise OSError(errno.ENOTSUP, "no links")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    store = LocalStore(tmp_path / "s")
    with pytest.raises(StoreError, match="neither hard links nor a rename that never replaces"):
        store.put_if_absent("a/b", b"x")
    assert list(store.list()) == list(store.list_unfinished()) == []
