import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ktk_engine.errors import ObjectExistsError, ObjectNotFoundError, TokenMismatchError
from ktk_engine.store.local.local_store import LocalStore

pytestmark = pytest.mark.usefixtures("synced")

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def race(count, work):
    """Run work(0), work(1), ... in threads that start together."""
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def try_put(store, key, data):
    try:
        store.put_if_absent(key, data)
    except ObjectExistsError:
        return False
    return True


def test_one_thread_wins(store):
    for n in range(10):
        won = race(8, lambda i, n=n: try_put(store, f"log/{n}", b"%d" % i))
        assert won.count(True) == 1
        assert store.get(f"log/{n}") == b"%d" % won.index(True)
    assert list(store.list_unfinished()) == []


def _put_many(store, name, results):
    results.put((name, [n for n in range(50) if try_put(store, f"log/{n}", name)]))


def test_one_process_wins(store):
    results = FORK.Queue()
    workers = [FORK.Process(target=_put_many, args=(store, b"%d" % i, results)) for i in range(4)]
    for worker in workers:
        worker.start()
    won = dict(results.get(timeout=30) for _ in workers)
    for worker in workers:
        worker.join(30)
    assert sorted(n for numbers in won.values() for n in numbers) == list(range(50))
    assert all(store.get(f"log/{n}") == name for name, ns in won.items() for n in ns)


def test_one_swap_wins(store):
    store.put("a", b"0")
    _, token = store.get_with_token("a")

    def swap(number):
        try:
            store.replace("a", b"%d" % (number + 1), token)
        except TokenMismatchError:
            return False
        return True

    won = race(8, swap)
    assert won.count(True) == 1
    assert store.get("a") == b"%d" % (won.index(True) + 1)


def test_counting_by_compare_and_swap_loses_nothing(store):
    store.put("n", b"0")

    def count(_):
        done = 0
        while done < 5:
            data, token = store.get_with_token("n")
            try:
                store.replace("n", b"%d" % (int(data) + 1), token)
            except TokenMismatchError:
                continue
            done += 1

    race(4, count)
    assert store.get("n") == b"20"


def test_reads_are_never_torn(store):
    contents = {bytes([c]) * size for c, size in ((65, 100_000), (66, 50_000), (67, 1))}
    store.put("a", b"C")
    stop = threading.Event()

    def read(_):
        seen = set()
        while not stop.is_set():
            seen.add(store.get("a"))
            with store.open_read("a") as file:
                seen.add(file.read())
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, i) for i in range(2)]
        for _ in range(10):
            for content in contents:
                store.put("a", content)
        stop.set()
        assert set().union(*(reader.result() for reader in readers)) <= contents


def test_writers_survive_that_empty_folders_are_removed(store):
    """Kartothek removes folders that a deletion left empty, at any moment."""
    store.put_if_absent("keep", b"")

    def work(number):
        for n in range(30):
            key = f"a/b/{number}-{n}"
            store.put_if_absent(key, b"x")
            assert store.get(key) == b"x"
            store.delete([key])

    race(4, work)
    assert sorted(os.listdir(store.root)) == ["keep"]


def _die_while_writing(store, ready):
    with store.open_write("data/file") as sink:
        sink.write(b"half")
        sink.flush()
        ready.set()
        signal.pause()


def test_a_killed_writer_leaves_no_object(store):
    ready = FORK.Event()
    worker = FORK.Process(target=_die_while_writing, args=(store, ready))
    worker.start()
    assert ready.wait(30)
    worker.kill()
    worker.join(30)
    assert list(store.list()) == []
    with pytest.raises(ObjectNotFoundError):
        store.get("data/file")
    (left,) = store.list_unfinished()
    assert left.size == 4
    store.put_if_absent("data/file", b"whole")
    store.delete([left.key])
    assert sorted(os.listdir(store.root / "data")) == ["file"]


def _hold_the_lock(store, ready):
    with store._lock():
        ready.set()
        signal.pause()


def test_the_lock_of_a_killed_process_is_free(store):
    ready = FORK.Event()
    worker = FORK.Process(target=_hold_the_lock, args=(store, ready))
    worker.start()
    assert ready.wait(30)
    worker.kill()
    worker.join(30)
    store.put("a", b"1")
