"""A cube or table as an earlier commit left it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import DatasetNotFoundError, FormatError, QueryError, VersionGoneError
from ktk_engine.log.garbage import Retention
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.log.version import oldest_version, state_at
from tests.support.changes import WriteRequest, build, remove, run_cleanup
from tests.support.committed import scope_of
from tests.support.dataset_builder import append_as_kartothek, build_table

CUBE = cube_scope("c")
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), indexes=("v",))
OTHER = WriteRequest("e", "enrichment", "c", ("x",))


def cells(*numbers):
    return pa.table({"p": ["a"] * len(numbers), "x": numbers, "v": [n * 10 for n in numbers]})


@pytest.fixture
def grown(store):
    """Versions: 1 and 2 cells, an enrichment, 3 cells, the enrichment removed."""
    build(store, cells(1), SEED)
    build(store, cells(2), SEED, mode="append")
    build(store, pa.table({"x": [1, 2], "w": [5, 6]}), OTHER)
    build(store, cells(1, 2, 3), SEED)
    remove(store, "c", "e")
    return store


def values(cube):
    return cube.query().to_arrow(engine="local").to_pydict()


def test_each_version_has_its_own_rows_and_columns(grown):
    cube = Store(grown.root).cube("c")
    assert [values(cube.at(version=n))["x"] for n in range(1, 6)] == [
        *([1], [1, 2], [1, 2], [1, 2, 3], [1, 2, 3]),
    ]
    assert values(cube.at(version=4))["w"] == [5, 6, None]
    assert [cube.at(version=n).datasets for n in (2, 3, 5)] == [["s"], ["s", "e"], ["s"]]
    assert repr(cube.at(version=3)) == "Cube('c', version=3)"
    assert cube.at(version=5).version == cube.version == 5
    assert cube.at(version=4).query(["w"], "x = 2").to_arrow(engine="local").to_pydict() == {
        "w": [6]
    }


def test_a_moment_means_the_last_commit_until_then(grown):
    state = resolve(grown, CUBE)
    times = [state_at(state, n).head.time for n in range(1, 6)]
    cube = Store(grown.root).cube("c")
    for number, moment in enumerate(times, start=1):
        assert cube.at(timestamp=moment).version == max(
            n for n, other in enumerate(times, start=1) if other <= moment
        )
        assert cube.at(timestamp=moment.isoformat()).version >= number
    assert cube.at(timestamp=times[-1] + timedelta(days=1)).version == 5
    with pytest.raises(VersionGoneError, match="its first commit was at"):
        cube.at(timestamp=times[0] - timedelta(seconds=1))


def test_a_version_that_never_was_is_an_error_with_those_that_are(grown):
    for number in (0, -1, 6):
        with pytest.raises(VersionGoneError, match=f"no version {number}: its versions are 1 to 5"):
            Store(grown.root).cube("c").at(version=number)


def test_a_cleaned_version_is_an_error_with_the_oldest_one_left(grown):
    run_cleanup(grown, CUBE, Retention(timedelta(0), 2))
    cube = Store(grown.root).cube("c")
    assert cube.version == 6
    assert oldest_version(cube._loaded.state) == 4
    assert values(cube.at(version=4))["w"] == [5, 6, None]
    with pytest.raises(VersionGoneError, match="removed version 2"):
        cube.at(version=2)


def test_an_exchanged_entry_is_seen(grown):
    entry = grown.root / CUBE.entry_key(2)
    entry.write_bytes((grown.root / CUBE.entry_key(3)).read_bytes())
    with pytest.raises(FormatError):
        Store(grown.root).cube("c").at(version=2)


def test_an_older_object_finds_newer_versions(grown):
    old = Store(grown.root).cube("c").at(version=2)
    build(grown, cells(9), SEED)
    assert old.at().version == 6
    assert values(old.at(version=6))["x"] == [9]


def test_a_removed_cube_has_its_versions(grown):
    remove(grown, "c", "s")
    with pytest.raises(DatasetNotFoundError, match="was removed"):
        Store(grown.root).cube("c")
    assert values(Store(grown.root).cube("c", version=4))["w"] == [5, 6, None]
    with pytest.raises(DatasetNotFoundError, match="no cube c"):
        Store(grown.root).cube("c", version=6)


def test_one_of_version_and_timestamp(grown):
    with pytest.raises(QueryError, match="not both"):
        Store(grown.root).cube("c").at(version=1, timestamp="2026-11-01")
    with pytest.raises(QueryError, match="is not a date or time"):
        Store(grown.root).cube("c").at(timestamp="yesterday")


def test_what_another_program_wrote_since_belongs_to_no_version(store):
    build_table(store, table=pa.table({"a": [1]}))
    committed_at = state_at(resolve(store, scope_of("plain")), 1).head.time
    append_as_kartothek(store, "plain", pa.table({"a": [7]}))
    table = Store(store.root).table("plain")

    def rows(opened):
        return sorted(opened.query().to_arrow()["a"].to_pylist())

    assert (table.version, rows(table)) == (1, [1, 7])
    for earlier in (table.at(1), table.at("1"), table.at(timestamp=committed_at)):
        assert (earlier.version, rows(earlier)) == (1, [1])
    assert rows(table.at()) == [1, 7]
    with pytest.raises(VersionGoneError):
        table.at(2)
