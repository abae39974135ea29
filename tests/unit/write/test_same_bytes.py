"""Writes of the bytes that are there: files stay, and without a change there is no version."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, ForeignWriterError
from ktk_engine.log.dbt_node import Owner  # deep: who builds it
from ktk_engine.write.equal_files import equal_files
from tests.support.changes import (
    StagedStore,
    WriteRequest,
    build,
    build_module,
    comment_on,
    publish_stages,
    remove,
    staged,
    undrop,
)
from tests.support.committed import DbtNode, check, resolve, snapshot_of, version_of
from tests.support.dataset_builder import append_as_kartothek
from tests.support.documents import Comments, load_document, stored_index
from tests.support.interrupting_store import InterruptingStore
from tests.support.stores import keys

TABLE = WriteRequest("t", partition_by=("p",), indexes=("k",))
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), indexes=("v",))
OTHER = WriteRequest("e", "enrichment", "c", ("x",))
ROWS = pa.table({"p": [1, 1, 2, 3], "k": ["a", "b", "a", None], "n": [1.5, None, 2.5, 0.0]})
CELLS = pa.table({"p": [1, 1, 2], "x": [1, 2, 1], "v": [10, 20, 30]})


def other(table, column, place, value):
    """The rows with another value at one place."""
    values = table[column].to_pylist()
    values[place] = value
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(values, table.schema.field(column).type))


def versions(store, uuid):
    """The dataset's version, and the commits whose files it has, by partition."""
    files = snapshot_of(store, uuid).files
    parts, commits = files["partition.p"].to_pylist(), files["commit"].to_pylist()
    known = list(dict.fromkeys(commits))
    return {p: known.index(c) for p, c in sorted(zip(parts, commits, strict=True))}


def index_pairs(store, uuid):
    """Each index of a dataset as pairs of a value and the number of its file."""
    snapshot = snapshot_of(store, uuid)
    at = {label: position for position, label in enumerate(snapshot.labels)}
    return {
        name: sorted(
            (pair["value"], at[pair["label"]]) for pair in stored_index(store, key).to_pylist()
        )
        for name, key in snapshot.indices.items()
    }


@pytest.mark.parametrize("mode", [None, "nothing", "partitions"])
@pytest.mark.parametrize(
    ("target", "rows"),
    [
        (TABLE, ROWS),
        (WriteRequest("t"), ROWS),
        (WriteRequest("t", clustered_by=("k",)), ROWS),
        (WriteRequest("t"), ROWS.slice(0, 0)),
        (SEED, CELLS),
        (SEED, CELLS.slice(0, 0)),
        (replace(TABLE, metadata={"note": {"of": ["us"]}}), ROWS),
    ],
)
def test_a_write_of_what_is_there_makes_no_version(store, target, rows, mode):
    first = build(store, rows, target)
    before = keys(store)
    assert not first.unchanged
    for _ in range(2):
        done = build(store, rows, target, mode)
        assert (done.version, done.unchanged) == (1, True)
        assert "unchanged since version 1" in str(done)
        assert keys(store) == before
    assert check(store, target.cube or "t").problems == ()


def test_an_enrichment_in_the_same_cube_does_not_count(store):
    build(store, CELLS, SEED)
    enriched = pa.table({"x": [1, 2], "w": [5, 6]})
    build(store, enriched, OTHER)
    done = build(store, CELLS, SEED)
    assert (done.version, done.unchanged, version_of(store, SEED.scope)) == (1, True, 2)
    done = build(store, other(enriched, "w", 0, 7), OTHER)
    assert (done.version, done.unchanged) == (3, False)
    assert build(store, CELLS, SEED).version == 1


@pytest.mark.parametrize(("target", "rows"), [(TABLE, ROWS), (SEED, CELLS)])
@pytest.mark.parametrize("mode", [None, "nothing", "partitions"])
def test_partitions_without_a_change_keep_their_files(store, target, rows, mode):
    build(store, rows, target)
    key = "k" if target is TABLE else "v"
    value = "new" if target is TABLE else 99
    changed = other(rows, key, 0, value)
    done = build(store, changed, target, mode)
    assert (done.version, done.unchanged) == (2, False)
    partitions = versions(store, target.uuid)
    assert {p for p, commit in partitions.items() if commit != partitions[2]} == {1}
    named = {*snapshot_of(store, target.uuid).file_column("key").to_pylist()}
    commit = resolve(store, target.scope).head.commit
    assert {k for k in keys(store) if commit in k and "/p=" in k} <= named
    fresh = replace(target, dataset=f"{target.dataset}2", cube=target.cube and "c2")
    build(store, changed, fresh)
    pairs, wanted = index_pairs(store, target.uuid), index_pairs(store, fresh.uuid)
    found = snapshot_of(store, target.uuid).file_column("partition.p").to_pylist()
    order = snapshot_of(store, fresh.uuid).file_column("partition.p").to_pylist()
    assert {
        name: sorted((str(value), found[at]) for value, at in items)
        for name, items in pairs.items()
    } == {
        name: sorted((str(value), order[at]) for value, at in items)
        for name, items in wanted.items()
    }
    assert check(store, target.cube or "t").problems == ()


def test_lists_count_and_not_sets(store):
    """A partition that had a file twice is not the one that has it once."""
    one = WriteRequest("t")
    build(store, ROWS, one)
    build(store, ROWS, one, mode="append")
    assert snapshot_of(store, "t").rows == 8
    done = build(store, ROWS, one)
    assert (done.unchanged, snapshot_of(store, "t").rows) == (False, 4)


def test_an_append_adds_also_what_is_there(store):
    build(store, ROWS, TABLE)
    for number in (2, 3):
        done = build(store, ROWS, TABLE, mode="append")
        assert (done.version, done.unchanged) == (number, False)
    assert snapshot_of(store, "t").rows == 12
    assert build(store, ROWS.slice(0, 0), TABLE, mode="append").unchanged


def test_a_first_write_without_rows_makes_the_table(store):
    assert not build(store, ROWS.slice(0, 0), TABLE).unchanged
    assert resolve(store, TABLE.scope).version == 1


OWNER = Owner(DbtNode("model.p.t", "p"), None)


@pytest.mark.parametrize(
    "target",
    [
        replace(TABLE, indexes=()),
        replace(TABLE, indexes=("k", "n")),
        replace(TABLE, relation="T"),
        replace(TABLE, owner=OWNER),
        replace(TABLE, clustered_by=("k",)),
        replace(TABLE, metadata={"note": 1}),
        replace(TABLE, compression="snappy"),
        replace(TABLE, row_group_rows=1),
        replace(TABLE, partition_by=()),
    ],
)
def test_everything_else_that_is_said_counts(store, target):
    build(store, ROWS, TABLE)
    done = build(store, ROWS, target, full_refresh=True)
    assert (done.version, done.unchanged) == (2, False)
    done = build(store, ROWS, target)
    assert (done.version, done.unchanged) == (2, True)
    assert check(store, "t").problems == ()


def test_columns_count(store):
    build(store, ROWS, TABLE)
    for rows in (
        ROWS.select(["p", "k"]),
        ROWS.select(["k", "p", "n"]),
        ROWS.rename_columns(["p", "k", "N"]),
        ROWS.set_column(2, "n", ROWS["n"].cast("float32")),
        other(ROWS, "n", 3, -0.0),
    ):
        assert not build(store, rows, TABLE, full_refresh=True).unchanged
        assert build(store, rows, TABLE).unchanged


def test_a_life_of_its_own_is_a_version_of_its_own(store):
    build(store, ROWS, TABLE)
    remove(store, "t")
    assert not build(store, ROWS, TABLE).unchanged
    remove(store, "t")
    undrop(store, "t")
    assert build(store, ROWS, TABLE).version == version_of(store, TABLE.scope)


def test_comments_stay_without_a_version(store):
    build(store, ROWS, TABLE)
    comment_on(store, "t", Comments("All of it"))
    done = build(store, ROWS, TABLE)
    assert (done.version, done.unchanged) == (2, True)
    assert snapshot_of(store, "t").comments.relation == "All of it"


# Partitions stay plain: an old file among new ones would make each reader compare cells.


def overlaid(store, uuid):
    """Partitions with files of several commits."""
    files = snapshot_of(store, uuid).files
    found = {}
    for p, commit in zip(
        *(files[name].to_pylist() for name in ("partition.p", "commit")), strict=True
    ):
        found.setdefault(p, set()).add(commit)
    return {p for p, commits in found.items() if len(commits) > 1}


def files(*rows):
    """A table of files: the partition, the digest and the commit of each."""
    digests = pa.array([digest and digest.encode() for _, digest, _ in rows], pa.binary())
    return pa.table(
        {
            "key": pa.array([f"c++s/{number}" for number, _ in enumerate(rows)]),
            "partition.p": pa.array([p for p, _, _ in rows], pa.int64()),
            "bytes": pa.array([9] * len(rows), pa.int64()),
            "tail": pa.array([4] * len(rows), pa.int64()),
            "tail_digest": digests,
            "digest": digests,
            "commit": pa.array([commit for _, _, commit in rows], pa.string()),
        }
    )


@pytest.mark.parametrize(
    ("gone", "came", "table", "cube"),
    [
        ([(1, "a", "A"), (1, "b", "A")], [(1, "a", "N"), (1, "b", "N")], "11", "11"),
        ([(1, "a", "A"), (1, "b", "A")], [(1, "b", "N"), (1, "a", "N")], "11", "00"),
        ([(1, "a", "A"), (1, "b", "A")], [(1, "a", "N"), (1, "c", "N")], "10", "00"),
        ([(1, "a", "A"), (1, "b", "A")], [(1, "a", "N")], "10", "00"),
        ([(1, "a", "A")], [(1, "a", "N"), (1, "a", "N")], "1", "0"),
        ([(1, "a", "A"), (1, "a", "B")], [(1, "a", "N")], "10", "00"),
        ([(1, "a", "A"), (1, "b", "B")], [(1, "a", "N"), (1, "b", "N")], "11", "00"),
        ([(1, None, "A")], [(1, None, "N")], "0", "0"),
        ([(1, "a", None), (1, "b", None)], [(1, "a", "N"), (1, "b", "N")], "11", "00"),
        ([(1, "a", "A"), (2, "b", "A")], [(1, "b", "N"), (2, "b", "N")], "01", "01"),
        ([(None, "a", "A"), (2, "b", "A")], [(2, "b", "N"), (None, "a", "N")], "11", "11"),
        ([(1, "a", "A"), (2, "b", "B")], [(1, "a", "N")], "10", "10"),
        ([], [(1, "a", "N")], "", ""),
        ([(1, "a", "A")], [], "0", "0"),
    ],
)
def test_which_files_are_equal(store, gone, came, table, cube, monkeypatch):
    """Single ones of a table; in a cube, an old file among new ones would be overlaid."""
    monkeypatch.setattr("ktk_engine.write.equal_files.verify_whole", lambda *_: None)

    def stays(base, **how):
        found, needless = equal_files(store, base, files(*gone), files(*came), **how)
        assert found.true_count == needless.true_count
        return "".join(str(int(item)) for item in found.to_pylist())

    build(store, CELLS, SEED)
    build(store, ROWS, TABLE)
    seed, plain = snapshot_of(store, "c++s"), snapshot_of(store, "t")
    assert stays(plain, whole=False) == table
    assert stays(seed, whole=True) == stays(seed, whole=False) == cube


@pytest.mark.parametrize("damage", ["gone", "shorter", "other bytes"])
@pytest.mark.parametrize(("target", "rows"), [(TABLE, ROWS), (SEED, CELLS)])
@pytest.mark.parametrize("mode", [None, "partitions"])
def test_the_same_rows_mend_a_damaged_file(store, target, rows, mode, damage):
    """A new file takes its place, and those of other partitions stay."""
    build(store, rows, target)
    before = snapshot_of(store, target.uuid).files
    path = store.root / before["key"][0].as_py()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data[:-1] if damage == "shorter" else data)
    if damage == "gone":
        path.unlink()
    build(store, rows, target, mode=mode)
    after = snapshot_of(store, target.uuid).files
    assert before["key"][0] not in after["key"].combine_chunks()
    kept = set(before["key"].to_pylist()) & set(after["key"].to_pylist())
    assert len(kept) == before.num_rows - 1
    assert check(store, "c" if target.cube else "t", deep=True).problems == ()


def test_an_overlaid_partition_becomes_plain_and_stays_so(store):
    build(store, CELLS.slice(0, 1), SEED)
    build(store, CELLS.slice(1), SEED, mode="append")
    assert overlaid(store, "c++s") == {1}
    assert not build(store, CELLS, SEED).unchanged
    assert overlaid(store, "c++s") == set()
    assert build(store, CELLS, SEED).unchanged


def test_twenty_partial_rebuilds_leave_a_plain_cube(store):
    cells = pa.table({"p": [p for p in range(5) for _ in range(4)], "x": list(range(4)) * 5})
    cells = cells.append_column("v", pa.array([0] * 20))
    for number in range(20):
        cells = other(cells, "v", number, number + 1)
        build(store, cells, SEED, "partitions" if number % 2 else None)
        assert overlaid(store, "c++s") == set()
    assert snapshot_of(store, "c++s").file_table.num_rows == 5
    assert Store(store.root).cube("c").query().to_arrow().num_rows == 20


# Python's verbs.


def test_verbs_of_tables_without_a_change(store):
    face = Store(store.root)
    face.write_table("t", ROWS, partition_by=["p"], indexes=["k"])
    before = keys(store)
    face.write_table("t", ROWS, "overwrite")
    face.write_table("t", ROWS.slice(0, 3), "merge", key=["k", "p"])
    face.table("t").delete("n > 100")
    face.table("t").delete("n > 2 and k = 'zzz'")
    assert (version_of(store, TABLE.scope), keys(store)) == (1, before)


def test_a_transaction_commits_what_has_changed(store):
    enriched = pa.table({"x": [1, 2], "w": [5, 6]})
    face = Store(store.root)
    build(store, CELLS, SEED)
    build(store, enriched, OTHER)
    with staged(resolve(store, SEED.scope), "both") as staging:
        for target, rows in ((SEED, CELLS), (OTHER, other(enriched, "w", 1, 7))):
            write = build_module.check_write(rows.schema, target, staging.state)
            staging.write(write, rows)
    assert [(item.version, item.unchanged) for item in staging.results] == [(1, True), (3, False)]
    head = resolve(store, SEED.scope).head
    assert set(head.changes) == {"c++e"}
    assert face.cube("c").query().to_arrow().num_rows == 3


# A write without a change is decided as a commit is.


def test_it_is_decided_on_the_newest_head(store):
    build(store, CELLS, SEED)
    build(store, pa.table({"x": [1], "w": [1]}), OTHER)
    state = resolve(store, SEED.scope)
    build(store, pa.table({"x": [1], "w": [2]}), OTHER)
    done = build(store, CELLS, SEED, state=state)
    assert (done.version, done.unchanged, version_of(store, SEED.scope)) == (1, True, 3)
    build(store, CELLS, SEED, mode="append", state=resolve(store, SEED.scope))
    with pytest.raises(CommitConflictError, match="this run would undo that"):
        build(store, CELLS, SEED, state=state)
    with pytest.raises(CommitConflictError, match="both touch partition"):
        build(store, CELLS, SEED, mode="partitions", state=state)


def test_what_others_wrote_is_not_passed_over(store):
    build(store, ROWS, TABLE)
    append_as_kartothek(store, "t", ROWS.slice(3), ("p",))
    assert not build(store, ROWS, TABLE).unchanged
    document = load_document(store, "t")
    state = resolve(store, TABLE.scope)
    append_as_kartothek(store, "t", ROWS.slice(3), ("p",))
    with pytest.raises(ForeignWriterError):
        build(store, ROWS, TABLE, state=state)
    assert len(load_document(store, "t").partitions) > len(document.partitions)


def test_forms_that_lag_are_published(store):
    build(store, ROWS, TABLE)
    published = keys(store)
    store.delete(["t.by-dataset-metadata.json", TABLE.scope.published_key("t")])
    done = build(store, ROWS, TABLE)
    assert done.unchanged
    assert keys(store) == published


# Staged runs.


def test_a_staged_run_without_a_change_publishes_nothing(store):
    build(store, ROWS, TABLE)
    before = keys(store)
    stage = StagedStore(store)
    build(stage, ROWS, TABLE)
    build(stage, ROWS, TABLE)
    done = publish_stages([stage])
    assert [item.is_new for item in done] == [False]
    assert (version_of(store, TABLE.scope), keys(store)) == (1, before)


def test_a_staged_run_is_decided_when_it_is_published(store):
    build(store, ROWS, TABLE)
    stage = StagedStore(store)
    build(stage, ROWS, TABLE, mode="partitions")
    build(store, ROWS.slice(3), replace(TABLE, metadata={"note": 1}), mode="append")
    with pytest.raises(CommitConflictError):
        publish_stages([stage])
    stage = StagedStore(store)
    build(stage, other(ROWS, "k", 0, "new"), TABLE)
    publish_stages([stage])
    assert snapshot_of(store, "t").rows == 4
    assert check(store, "t").problems == ()


# What it leaves behind.


@pytest.mark.parametrize("value", ["a", "new"])
def test_an_interrupt_at_any_call_leaves_one_of_both(value):
    """Also between the commit and the deletion of files that equal ones replace."""
    first = InterruptingStore()
    build(first, ROWS, TABLE)
    changed = other(ROWS, "k", 0, value)
    whole = InterruptingStore(first.objects)
    build(whole, changed, TABLE)
    for at in range(len(whole.calls)):
        for when in ("before", "after"):
            store = InterruptingStore(first.objects, at, when)
            with pytest.raises(KeyboardInterrupt):
                build(store, changed, TABLE)
            store.at = -1
            version = version_of(store, TABLE.scope)
            assert version in ((1,) if value == "a" else (1, 2))
            done = build(store, changed, TABLE)
            assert done.unchanged == (value == "a" or version == 2)
            assert (done.warning, check(store, "t").problems) == ("", ())
