"""A store in memory at one of whose calls something happens, and what lies in it."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.errors import ObjectExistsError, ObjectNotFoundError, TokenMismatchError
from tests.support.changes import Retention, WriteRequest, build
from tests.support.committed import cube_scope, resolve, scope_of
from tests.support.stores import Backoff, ObjectInfo, ObjectStore

CUBE, PLAIN = cube_scope("c"), scope_of("t")
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), buckets=2)
ENRICHMENT = WriteRequest("e", "enrichment", "c", ("x",), ("p",), buckets=2)
TABLE = WriteRequest("t")
NOTHING = Retention(timedelta(0), 1)  # keeps nothing that was superseded


def cells(*numbers, value="v", partitions=("a/%ä", "b")):
    """Rows of the cube `c`: each number in each partition."""
    rows = [{"p": p, "x": x, value: 10 * x} for p in partitions for x in numbers]
    return pa.Table.from_pylist(rows)


def rows(*numbers):
    """Rows of the table `t`."""
    return pa.table({"a": list(numbers)})


def build_small(store):
    """Commit the cube `c` of two datasets, and the table `t`."""
    build(store, cells(1, 2), SEED)
    build(store, cells(1, value="w"), ENRICHMENT)
    build(store, rows(0), TABLE)


def content(store, scope):
    """Version, rows and comments of a scope at its head."""
    state = resolve(store, scope)
    found = {}
    for uuid, snapshot in state.snapshots().items():
        files = zip(snapshot.labels, snapshot.files["key"].to_pylist(), strict=True)
        found[uuid] = (
            snapshot.comments,
            sorted(
                (label.rpartition("/")[0], repr(row))
                for label, key in files
                for row in pq.ParquetFile(store.open_read(key)).read().to_pylist()
            ),
        )
        assert all(store.exists(key) for key in snapshot.index_keys)
    return state.version, found


class InterruptingStore(ObjectStore):
    """A store that raises at its n-th call; copies of it are cheap.

    Attributes:
        objects: key -> content and time.
        at: number of the call, from 0; -1 for none.
        when: `before` the call is made, or `after` it was.
        error: what is raised.
        again: whether every later call raises as well: a second Ctrl-C, a store that is gone.
        calls: (method, key) of every call.
        days: how far its clock is ahead.
    """

    def __init__(self, objects=(), at=-1, when="before", error=KeyboardInterrupt, again=False):
        self.objects = dict(objects)
        self.at, self.when, self.error, self.again = at, when, error, again
        self.calls = []
        self.days = 0
        self._lock = threading.Lock()  # stores take one call after the other

    @property
    def url(self):
        return "memory://"

    @property
    def backoff(self):
        return Backoff(sleep=lambda seconds: None)

    def now(self):
        return datetime.now(UTC) + timedelta(days=self.days)

    def uri(self, key):
        return self.url + key

    def get(self, key):
        return self._step("get", key, lambda: self._content(key))

    def get_range(self, key, start, length):
        return self._step("get", key, lambda: self._content(key)[start : start + length])

    def get_with_token(self, key):
        data = self.get(key)
        return data, _token(data)

    def put(self, key, data):
        self._step("put", key, lambda: self._store(key, data))

    def put_if_absent(self, key, data):
        self._step("put_if_absent", key, lambda: self._store_if_absent(key, data))

    def replace(self, key, data, token):
        def swap():
            if key not in self.objects or _token(self.objects[key][0]) != token:
                raise TokenMismatchError(key)
            self._store(key, data)

        self._step("replace", key, swap)

    def exists(self, key):
        return self._step("exists", key, lambda: key in self.objects)

    def list(self, prefix=""):
        return iter(self._step("list", prefix, lambda: self._infos(prefix)))

    def list_names(self, folder="", prefix="", since="", at_most=None):
        def names():
            start = f"{folder}/" if folder else ""
            rest = [k[len(start) :].partition("/") for k in self.objects if k.startswith(start)]
            found = {name + slash for name, slash, _ in rest}
            names = sorted(name for name in found if name.startswith(prefix) and name >= since)
            return names[:at_most]

        return self._step("list_names", folder, names)

    def delete(self, keys):
        keys = list(keys)
        self._step("delete", ",".join(keys), lambda: [self.objects.pop(k, None) for k in keys])

    def open_read(self, key, size=None, ranges=()):
        return self._step("open_read", key, lambda: pa.BufferReader(self._content(key)))

    @contextmanager
    def open_write(self, key):
        sink = self._step("open_write", key, pa.BufferOutputStream)
        yield sink
        data = sink.getvalue().to_pybytes()
        self._step("close", key, lambda: self._store_if_absent(key, data))

    def _content(self, key):
        if key not in self.objects:
            raise ObjectNotFoundError(key)
        return self.objects[key][0]

    def _store(self, key, data):
        self.objects[key] = data, self.now()

    def _store_if_absent(self, key, data):
        if key in self.objects:
            raise ObjectExistsError(key)
        self._store(key, data)

    def _infos(self, prefix):
        found = sorted((k, v) for k, v in self.objects.items() if k.startswith(prefix))
        return [ObjectInfo(key, len(data), time) for key, (data, time) in found]

    def _step(self, method, key, action):
        number = len(self.calls)
        self.calls.append((method, key))
        hit = number == self.at or (self.again and 0 <= self.at < number)
        if hit and self.when == "before":
            raise self.error(f"before call {number}: {method} {key}")
        with self._lock:
            result = action()
        if hit:
            raise self.error(f"after call {number}: {method} {key}")
        return result


def _token(data):
    return hashlib.sha256(data).hexdigest()
