"""A flipped bit in a data file or an index is an error that names the file, never other rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.errors import FormatError, ObjectNotFoundError
from tests.support.changes import WriteRequest, build
from tests.support.committed import snapshot_of
from tests.support.queries import MetadataCache, comparison, prune, read_rows

ROWS = pa.table(
    {
        "k": pa.array(range(500), pa.int64()),
        "text": [f"value {n % 13}" for n in range(500)],
        "number": [n / 7 for n in range(500)],
        "list": [[n, n + 1] if n % 3 else [] for n in range(500)],
    }
)


def flips(data, count):
    """Copies of some bytes with one flipped bit each, spread over all of them."""
    bits = 8 * len(data)
    for bit in range(0, bits, max(bits // count, 1)):
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << (bit % 8)
        yield bytes(copy)


@pytest.fixture
def snapshot(store):
    build(store, ROWS, WriteRequest("t", indexes=("k", "text")))
    return snapshot_of(store, "t")


def outcome(action, good, key):
    """Whether an action gave the right answer or an error that names the file."""
    try:
        return action().equals(good)
    except FormatError as error:
        return key in str(error) and "Restore it from a backup" in str(error)


@pytest.mark.parametrize("columns", [["k", "text", "number"], ["text"], ["list"]])
def test_no_flip_in_a_data_file_gives_other_rows(store, snapshot, columns):
    key = snapshot.files["key"][0].as_py()
    data = (store.root / key).read_bytes()

    def read():
        return read_rows(store, snapshot, snapshot.files, columns)

    good = read()
    for damaged in flips(data, 151):
        (store.root / key).write_bytes(damaged)
        assert outcome(read, good, key)


@pytest.mark.parametrize("operator", ["=", ">="], ids=["groups", "all"])
@pytest.mark.parametrize("digests", [True, False], ids=["digests", "checksums"])
def test_no_flip_in_an_index_loses_files(store, snapshot, operator, digests):
    """Without a digest, as in indexes of other writers, structure and counts are looked at."""
    key = snapshot.indices["k"]
    data = (store.root / key).read_bytes()
    condition = comparison("k", pa.int64(), operator, 123)
    known = snapshot.index_digests[key]
    digest = known if digests else None
    # A damaged footer that nobody can verify may end the process within Arrow.
    pages, tail = (data, b"") if digests else (data[: -known.tail], data[-known.tail :])

    def read():
        return MetadataCache().indices.read(store, key, "k", condition, digest)

    good = read()
    for damaged in flips(pages, 301):
        (store.root / key).write_bytes(damaged + tail)
        assert outcome(read, good, key)


def test_planning_names_the_damaged_index(store, snapshot):
    key = snapshot.indices["text"]
    data = bytearray((store.root / key).read_bytes())
    data[60] ^= 4
    (store.root / key).write_bytes(data)
    with pytest.raises(FormatError, match=key):
        prune(
            store,
            snapshot,
            [comparison("text", pa.string(), "=", "value 3")],
            None,
            MetadataCache(),
        )
    with pytest.raises(FormatError, match=key):
        build(store, ROWS, WriteRequest("t", indexes=("k", "text")), mode="append")


def test_a_missing_file_is_named(store, snapshot):
    file, index = snapshot.files["key"][0].as_py(), snapshot.indices["k"]
    for key in (file, index):
        (store.root / key).unlink()
    with pytest.raises(ObjectNotFoundError, match=file):
        read_rows(store, snapshot, snapshot.files, ["k"])
    with pytest.raises(ObjectNotFoundError, match=index):
        prune(store, snapshot, [comparison("k", pa.int64(), "=", 3)], None, MetadataCache())
