import os
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from ktk_engine.errors import CommitConflictError, ForeignWriterError, StoreError
from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup
from ktk_engine.maintain.remove import remove
from tests.support.changes import Retention
from tests.support.committed import (
    cube_scope,
    read_entries,
    read_history,
    resolve,
    scope_of,
    snapshot_of,
)
from tests.support.dataset_builder import (
    DbtNode,
    build_nyc,
    build_table,
    commit_change,
    weather,
    weather_builder,
    write_plain,
)
from tests.support.documents import document_key
from tests.support.stores import fail, keys, tree

CUBE = cube_scope("nyc")
PLAIN = scope_of("plain")
NOTHING = Retention(timedelta(0), 1)
STALE, ALIVE = "2020-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"


def intent(store, scope, commit_id, heartbeat):
    note = f'{{"operation": "build", "heartbeat": "{heartbeat}"}}'
    store.put(scope.intent_key(commit_id), note.encode())


def age(store, key, days):
    path = store.root / key
    then = store.now().timestamp() - days * 86400
    os.utime(path, (then, then))


def test_young_versions_are_kept(store):
    for _ in range(3):
        build_table(store)
    assert plan_cleanup(store, PLAIN, Retention()).is_empty
    assert plan_cleanup(store, PLAIN, Retention(timedelta(0), 3)).is_empty
    assert plan_cleanup(store, PLAIN, Retention(timedelta(days=1), 1)).is_empty
    found = plan_cleanup(store, PLAIN, Retention(timedelta(0), 2))
    assert (found.kept_versions, found.versions, len(found.objects)) == (2, 3, 2)


@pytest.mark.parametrize("ahead", [timedelta(seconds=1), timedelta(days=20_000)])
def test_the_newest_version_is_kept_though_a_writers_clock_is_ahead(store, monkeypatch, ahead):
    monkeypatch.setattr(store, "now", lambda: datetime.now(UTC) + ahead)
    for _ in range(3):
        build_table(store)
    monkeypatch.undo()
    run_cleanup(store, PLAIN, NOTHING)
    assert snapshot_of(store, "plain").files.num_rows == 1


def test_plan_writes_nothing(store):
    build_table(store)
    build_table(store)
    before = tree(store.root)
    assert not plan_cleanup(store, PLAIN, NOTHING).is_empty
    assert tree(store.root) == before


def test_what_is_needed_stays(store):
    build_nyc(store)
    old = weather_builder(store)
    old.commit_rebuild(weather())
    found = {info.key for info in plan_cleanup(store, CUBE, NOTHING).objects}
    done = run_cleanup(store, CUBE, NOTHING, {"command": "test"})
    assert (done.version, done.warning) == (5, "")
    assert found and not found & keys(store)
    state = resolve(store, CUBE)
    assert set(state.head.deleted) == found
    for snapshot in state.snapshots().values():
        assert {*snapshot.files["key"].to_pylist(), *snapshot.indices.values()} <= keys(store)
    assert read_history(store, "nyc")[0].deleted == len(found)
    assert run_cleanup(store, CUBE, NOTHING).version == 0  # nothing is left to do


def test_every_key_is_reachable_afterwards(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    run_cleanup(store, CUBE, NOTHING)
    entries = [entry for entry, _ in read_entries(store, CUBE, 0)]
    snapshots = {item.snapshot for item in entries[-1].datasets.values()}
    assert keys(store, ".ktk/cube/nyc/snapshots/") == snapshots
    assert not [key for key in keys(store, "nyc++weather/") if key.endswith(".parquet")]


def test_less_may_be_kept_than_an_earlier_cleanup_left(store):
    for _ in range(3):
        build_table(store)
    run_cleanup(store, PLAIN, NOTHING)
    # The kept versions' snapshots are gone, and that is known.
    assert plan_cleanup(store, PLAIN, Retention()).is_empty


def test_removed_table_keeps_nothing_but_its_age(store):
    build_table(store)
    remove(store, "plain")
    assert plan_cleanup(store, PLAIN, Retention()).is_empty
    schema = "plain/table/_common_metadata"
    age(store, schema, 8)
    found = {info.key for info in plan_cleanup(store, PLAIN, Retention(timedelta(0), 10)).objects}
    assert keys(store, "plain/") <= found
    run_cleanup(store, PLAIN, Retention(timedelta(0), 10))
    assert not keys(store, "plain/")


def test_writer_at_work_is_spared_until_it_is_dead(store):
    build_table(store)
    commit_id = "ab" * 16
    DbtNode(store, "plain").append(pa.table({"a": [1]}), commit_id)
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty  # unknown, and young
    intent(store, PLAIN, commit_id, ALIVE)
    file = next(key for key in keys(store, "plain/") if commit_id in key)
    age(store, file, 30)
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty
    intent(store, PLAIN, commit_id, STALE)
    found = plan_cleanup(store, PLAIN, NOTHING)
    assert ([info.key for info in found.objects], found.intents) == ([file], (commit_id,))
    run_cleanup(store, PLAIN, NOTHING)
    assert not store.exists(file)
    assert not store.exists(PLAIN.intent_key(commit_id))


def test_files_of_unknown_writers_grow_old_first(store):
    build_table(store)
    for name in ("mine.parquet", "cd" * 16 + ".parquet", "README"):
        store.put(f"plain/table/{name}", b"x")
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty
    for name in ("mine.parquet", "cd" * 16 + ".parquet", "README"):
        age(store, f"plain/table/{name}", 8)
    found = [info.key for info in plan_cleanup(store, PLAIN, NOTHING).objects]
    assert found == [f"plain/table/{'cd' * 16}.parquet", "plain/table/mine.parquet"]


def test_unfinished_files(store):
    build_table(store)
    path = store.root / "plain" / "table" / ".tmp-1234"
    path.write_bytes(b"half")
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty
    age(store, "plain/table/.tmp-1234", 2)
    assert len(plan_cleanup(store, PLAIN, NOTHING).unfinished) == 1
    assert run_cleanup(store, PLAIN, NOTHING).version == 0
    assert not path.exists()


def test_death_between_list_and_deletion(store):
    build_table(store)
    build_table(store)
    store.faults.append(fail("before", "delete", "plain/table"))
    with pytest.raises(StoreError):
        run_cleanup(store, PLAIN, NOTHING)
    listed = set(resolve(store, PLAIN).head.deleted)
    assert listed <= keys(store)
    run_cleanup(store, PLAIN, NOTHING)
    assert not listed & keys(store)


def test_slow_writer_loses_against_a_cleanup(store):
    build_table(store)
    base = resolve(store, PLAIN)
    commit_id = "ef" * 16
    change = DbtNode(store, "plain").append(pa.table({"a": [1]}), commit_id)
    intent(store, PLAIN, commit_id, STALE)
    run_cleanup(store, PLAIN, NOTHING)
    with pytest.raises(CommitConflictError, match="clean-up chose to delete"):
        commit_change(store, lambda _: change, base, commit_id)


def test_commit_that_needs_a_listed_file_stops_the_cleanup(store):
    build_table(store)
    commit_id = "ef" * 16
    change = DbtNode(store, "plain").append(pa.table({"a": [1]}), commit_id)
    intent(store, PLAIN, commit_id, STALE)

    def commit_meanwhile(method, key):
        if "/log/" in key:
            store.hooks.clear()
            commit_change(store, lambda _: change, None, commit_id)

    store.hooks.append(commit_meanwhile)
    with pytest.raises(CommitConflictError, match="was going to delete"):
        run_cleanup(store, PLAIN, NOTHING)
    assert snapshot_of(store, "plain").files.num_rows == 2
    assert any(commit_id in key for key in keys(store, "plain/"))


def test_unpublished_commit_is_published_before_anything_goes(store):
    build_table(store)
    store.faults.append(fail("before", "replace", "by-dataset-metadata"))
    assert build_table(store).warning
    store.faults.append(fail("before", "replace", "by-dataset-metadata"))
    before = keys(store, "plain/")
    assert run_cleanup(store, PLAIN, NOTHING).warning
    assert keys(store, "plain/") == before
    assert run_cleanup(store, PLAIN, NOTHING).warning == ""
    assert keys(store, "plain/") < before


def test_what_another_program_changed_is_not_touched(store):
    build_table(store)
    store.delete([document_key("plain")])
    with pytest.raises(ForeignWriterError):
        plan_cleanup(store, PLAIN, NOTHING)
    write_plain(store, "other", pa.table({"a": [1]}))
    assert plan_cleanup(store, scope_of("other"), NOTHING).is_empty
