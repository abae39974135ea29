"""The executor-side writer: layout, statistics, index values, and what it refuses."""

from __future__ import annotations

import datetime as dt
import io
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ktk_engine.errors import ConfigurationError, DataError, StoreError, TypeClassError
from ktk_engine.spark.compatibility import collect_table
from tests.support.changes import WriteRequest, build
from tests.support.committed import cube_scope, resolve, snapshot_of
from tests.support.documents import stored_index
from tests.support.stores import LocalStore, tree

SEED = WriteRequest("seed", "seed", "c", ("L",), ("P",), indexes=("k",), buckets=4)


def rows(spark: SparkSession, where: str = "true"):
    return (
        spark.range(1000)
        .selectExpr("id % 7 as P", "id as L", "id * 2 as v", "cast(id % 50 as int) as k")
        .where(where)
    )


@pytest.mark.parametrize("few", [True, False])
def test_a_union_of_many_small_queries_is_as_many_files_as_cores(spark, store, few):
    """Each query would have a file of its own; the tasks of large ones stay."""
    row = "id as a" if few else "id as a, repeat(id, 1000) as b"
    selects = [f"select {row} from range({i}, {i + 1 if few else 4 * 10**6})" for i in range(60)]
    if not few:
        selects = [f"{text} where id < {i + 1}" for i, text in enumerate(selects[:5])]
    written = build(store, spark.sql(" union all ".join(selects)), WriteRequest("t"))
    assert written.rows == len(selects)
    cores = spark.sparkContext.defaultParallelism
    assert written.files == (cores if few else len(selects))


def test_a_failure_of_the_store_in_a_worker_is_one_message(spark, store):
    store.put_if_absent("c++seed/table", b"a file in the folder's place")
    with pytest.raises(StoreError) as caught:
        build(store, rows(spark), SEED)
    message = str(caught.value)
    assert message.startswith("cannot write 'c++seed/table/P=")
    assert "'table' is a file" in message and message.endswith("Nothing was committed.")
    assert [info.key for info in store.list()] == ["c++seed/table"]


def test_files_statistics_and_index_describe_the_rows(spark, store):
    written = build(store, rows(spark), SEED)
    snapshot = snapshot_of(store, "c++seed")
    assert (written.rows, written.files) == (1000, 7)
    assert snapshot.rows == 1000
    assert snapshot.bytes == sum(
        (store.root / key).stat().st_size for key in snapshot.files["key"].to_pylist()
    )
    for file in snapshot.files.to_pylist():
        table = pq.read_table(store.root / file["key"], partitioning=None)
        assert "P" not in table.column_names
        assert table["L"].to_pylist() == sorted(table["L"].to_pylist())
        assert file["rows"] == table.num_rows
        assert file["min.L"] == min(table["L"].to_pylist())
        assert file["max.v"] == max(table["v"].to_pylist())
        assert file["nulls.v"] == 0
        assert {value % 7 for value in table["L"].to_pylist()} == {file["partition.P"]}
    index = stored_index(store, snapshot.indices["k"])
    pairs = set(zip(index["value"].to_pylist(), index["label"].to_pylist(), strict=True))
    labels = dict(
        zip(
            snapshot.files["partition.P"].to_pylist(),
            snapshot.files["label"].to_pylist(),
            strict=True,
        )
    )
    assert pairs == {(i % 50, labels[i % 7]) for i in range(1000)}


def test_payload_keeps_its_width_and_the_schema_its_class(spark, store):
    build(store, rows(spark), SEED)
    snapshot = snapshot_of(store, "c++seed")
    file = pq.read_schema(store.root / snapshot.files["key"][0].as_py())
    assert file.field("k").type == pa.int32()
    assert snapshot.schema.field("k").type == pa.int64()


@pytest.mark.parametrize("bucket_by", [(), ("L",)])
def test_buckets_split_a_partition_into_files_of_disjoint_cells(spark, store, bucket_by):
    build(store, rows(spark), replace(SEED, bucket_by=bucket_by, num_buckets=3))
    files = snapshot_of(store, "c++seed").files
    cells = Counter()
    for place in files.select(["partition.P", "key"]).to_pylist():
        values = pq.read_table(store.root / place["key"], partitioning=None)["L"].to_pylist()
        assert values == sorted(values)
        cells.update((place["partition.P"], value) for value in values)
    assert max(cells.values()) == 1
    assert cells.total() == rows(spark).count()
    assert len(set(files["partition.P"])) < files.num_rows <= 3 * len(set(files["partition.P"]))


def test_buckets_find_equal_cells(spark, store):
    twice = rows(spark).unionAll(rows(spark).where("L = 3"))
    with pytest.raises(DataError, match="repeats a cell"):
        build(store, twice, replace(SEED, num_buckets=3))


def test_buckets_by_a_column_that_is_no_dimension_are_refused():
    with pytest.raises(ConfigurationError, match="bucket_by names k"):
        replace(SEED, bucket_by=("k",), num_buckets=2)
    with pytest.raises(ConfigurationError, match="go together"):
        replace(SEED, bucket_by=("L",))
    with pytest.raises(ConfigurationError, match="go together"):
        WriteRequest("t", num_buckets=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("union all select * from rows where L = 5", "each cell (`P`, `L`) may occur only once"),
        ("union all select P, null, v, k from rows where L = 5", "no value in `L`"),
        ("union all select null, L + 5000, v, k from rows where L = 5", "no value in `P`"),
        ("union all select P, L + 5000, v, null from rows where L = 5", "no value in `k`"),
    ],
)
def test_findings_while_writing_leave_the_store_as_it_was(spark, store, change, message):
    build(store, rows(spark), SEED)
    before = tree(store.root)
    rows(spark).createOrReplaceTempView("rows")
    with pytest.raises(DataError, match="nothing was committed") as error:
        build(store, spark.sql(f"select * from rows {change}"), SEED)
    assert message in str(error.value)
    assert "Example:" in str(error.value)
    assert tree(store.root) == before


def test_a_refused_first_write_leaves_nothing(spark, store):
    with pytest.raises(DataError):
        build(store, rows(spark).union(rows(spark)), SEED)
    assert tree(store.root) == {}


def test_a_failing_query_leaves_the_store_as_it_was(spark, store):
    build(store, rows(spark), SEED)
    before = tree(store.root)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        build(
            store,
            rows(spark).selectExpr("P", "L", "1 / (L - 999) as v", "k"),
            SEED,
            full_refresh=True,
        )
    assert tree(store.root) == before


def test_duplicates_across_batches_are_found(spark, store):
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
    frame = session.range(20).selectExpr("0 as P", "id div 4 as L", "id as v", "1 as k")
    with pytest.raises(DataError, match="15 rows repeat a cell"):
        build(store, frame, SEED)


def test_many_row_groups_of_the_asked_size(spark, store):
    target = WriteRequest("t", row_group_rows=100)
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "37")
    build(store, session.range(1000).coalesce(1), target)
    snapshot = snapshot_of(store, "t")
    metadata = pq.read_metadata(store.root / snapshot.files["key"][0].as_py())
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [100] * 10


def test_an_empty_frame_is_a_dataset_without_files(spark, store):
    written = build(store, rows(spark, "false"), SEED)
    assert (written.rows, written.files, written.bytes) == (0, 0, 0)
    assert snapshot_of(store, "c++seed").files.num_rows == 0


def test_types_that_no_dataset_can_hold_are_refused_before_writing(spark, store):
    frame = spark.sql("select 1 as P, 1 as L, 1 as k, interval '1' day as v")
    with pytest.raises(TypeClassError, match="v"):
        build(store, frame, SEED)
    assert tree(store.root) == {}


def test_columns_that_differ_in_letter_case_are_refused(spark, store):
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(TypeClassError, match="letter case"):
        build(store, session.sql("select 1 P, 1 L, 1 k, 1 v, 2 V"), SEED)
    assert tree(store.root) == {}


VALUES = {
    "string": ["a", "J P/ü", "", " ", "x=y", "100%", "..", "ж"],
    "bigint": [-5, 0, 2**62],
    "boolean": [True, False],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "timestamp_ntz": [dt.datetime(2020, 1, 1), dt.datetime(1999, 12, 31, 23, 59, 59, 123456)],
    "double": [-0.5, 0.1, 1e20],
}


@pytest.mark.parametrize("kind", VALUES)
def test_partition_values_of_every_kind_come_back(spark, sql, store, kind):
    values = VALUES[kind]
    frame = spark.createDataFrame(
        [(value, i) for i, value in enumerate(values)], f"P {kind}, L bigint"
    )
    build(store, frame, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    found = sql.sql("select P, L from an.seed order by L").collect()
    assert [row.P for row in found] == values
    for i, value in enumerate(values):
        literal = frame.where(f"L = {i}").selectExpr("P")
        literal.createOrReplaceTempView("wanted")
        assert value == spark.table("wanted").first().P


def test_payload_of_every_kind_comes_back(spark, sql, store):
    sql_row = (
        "select cast(1 as tinyint) a, 1.5f b, cast(2.25 as decimal(10,2)) c, 'ü' d, X'00ff' e, "
        "date'2020-01-01' f, timestamp'2020-01-01 10:00:00' g, timestamp_ntz'2020-01-01' h, "
        "array(1, null) i, named_struct('x', 1, 'y', 'z') j, map('k', 1) k, true o, "
        "cast(null as int) m, cast('NaN' as double) n, 0 as L, 0 as P"
    )
    build(store, spark.sql(sql_row), WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    row = sql.sql("select * from an.seed").first().asDict(recursive=True)
    assert row.pop("n") != row.get("n")
    assert row == {
        "a": 1,
        "b": 1.5,
        "c": Decimal("2.25"),
        "d": "ü",
        "e": bytearray(b"\x00\xff"),
        "f": dt.date(2020, 1, 1),
        "g": dt.datetime(2020, 1, 1, 10),
        "h": dt.datetime(2020, 1, 1),
        "i": [1, None],
        "j": {"x": 1, "y": "z"},
        "k": {"k": 1},
        "o": True,
        "m": None,
        "L": 0,
        "P": 0,
    }


def test_the_commit_is_one_entry_and_names_its_node(spark, store: LocalStore, tmp_path: Path):
    build(store, rows(spark), SEED, history={"node": "model.p.seed"})
    build(store, rows(spark).limit(1), SEED, history={"node": "model.p.seed"})
    state = resolve(store, cube_scope("c"))
    assert state.version == 2
    assert state.head is not None and state.head.history == {"node": "model.p.seed"}


def test_clustered_rows_are_sorted_in_each_file(spark, sql, store):
    rows = spark.range(1000).selectExpr("id % 2 as P", "(id * 7919) % 1000 as k", "id as v")
    for target in (
        WriteRequest("flat", clustered_by=("k",)),
        WriteRequest("parted", partition_by=("P",), clustered_by=("k", "v")),
    ):
        build(store, rows, target)
        build(store, collect_table(rows), target, mode="append")
        snapshot = snapshot_of(store, target.uuid)
        for key in snapshot.files["key"].to_pylist():
            found = pq.read_table(io.BytesIO(store.get(key)), partitioning=None)["k"].to_pylist()
            assert found == sorted(found)
    with pytest.raises(ConfigurationError, match="clustered_by names X, which the rows lack"):
        build(store, rows, WriteRequest("wrong", clustered_by=("X",)))
    with pytest.raises(ConfigurationError, match="clustered_by is for plain tables"):
        WriteRequest("s", "seed", "c", ("k",), clustered_by=("v",))
