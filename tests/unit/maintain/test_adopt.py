"""What other programs make of datasets: read wherever rows are known, taken over on demand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from ktk_engine import Store
from ktk_engine.errors import (
    ConsistencyError,
    ForeignWriterError,
    ForeignWriterWarning,
    FormatError,
    KtkError,
    QueryError,
    TypeClassError,
)
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from ktk_engine.maintain.check import check
from tests.support.committed import cube_scope, resolve, scope_of, snapshot_of, version_of
from tests.support.dataset_builder import (
    NYC,
    append_ours,
    build_nyc,
    build_table,
    flights,
    foreign_document,
    weather,
    weather_builder,
    write_plain,
)
from tests.support.documents import (
    build_index,
    document_key,
    flatten_index,
    load_document,
    read_index,
    render_document,
    render_index,
)

PLAIN = scope_of("plain")
CUBE = cube_scope("nyc")


def rewrite(store, uuid, **changes):
    """Write a document as a program does that keeps no metadata of ours."""
    document = replace(load_document(store, uuid), stamp=None, metadata={"creation_time": "now"})
    store.put(document_key(uuid), render_document(replace(document, **changes)))


def fork(store):
    """Version 2 has a file that the other program's document, based on version 1, lacks."""
    build_table(store)
    document = foreign_document(store, "plain")
    append_ours(store)
    store.put(document_key("plain"), render_document(document))
    return document


def test_a_document_with_the_same_files_is_the_newest_version(store):
    build_nyc(store)
    for uuid in ("nyc++flights", "nyc++weather"):
        rewrite(store, uuid)
    state = resolve(store, CUBE)
    assert not any(item.problem for item in state.datasets.values())
    assert state.snapshot("nyc++flights").rows == 4  # the log knows more than the document
    assert Store(store.root).cube("nyc").specification.dimension_columns == ("carrier", "hour")
    done = weather_builder(store).commit_rebuild(weather())
    assert done.warning == "" and done.entry.changes["nyc++flights"].operation == "adopt"
    assert load_document(store, "nyc++flights").metadata["ktk_cube_is_seed"] is True


def test_an_index_of_another_program_is_taken_over(store):
    build_nyc(store)
    indices = dict(load_document(store, "nyc++flights").indices)
    rewrite(store, "nyc++flights", indices={**indices, "delay": indices["hour"]})
    assert snapshot_of(store, "nyc++flights").indices["delay"] == indices["hour"]
    done = weather_builder(store).commit_rebuild(weather())
    assert done.warning == ""
    assert load_document(store, "nyc++flights").indices["delay"] == indices["hour"]


@pytest.mark.parametrize("way", ["fork", "gone", "damaged"])
def test_reading_goes_on_where_the_log_knows_the_rows(store, way):
    if way == "fork":
        fork(store)
    else:
        build_table(store)
        append_ours(store)
        store.delete([document_key("plain")])
    if way == "damaged":
        store.put(document_key("plain"), b"{")
    with pytest.warns(ForeignWriterWarning, match="It is read as the log has it"):
        assert snapshot_of(store, "plain").rows == 4
    with pytest.raises(ForeignWriterError, match="Nothing was written"):
        append_ours(store)
    with pytest.warns(ForeignWriterWarning):
        assert any(
            "another program" in p.reason or "damaged" in p.reason
            for p in check(store, "plain").problems
        )


def test_a_copy_without_its_log_is_a_plain_dataset(store, tmp_path):
    write_plain(store, "plain", pa.table({"a": [1]}), metadata={"ktk_base": "7:abc"})
    assert snapshot_of(store, "plain").files.num_rows == 1
    assert append_ours(store).entry.version == 1


@pytest.mark.filterwarnings("default::ktk_engine.errors.ForeignWriterWarning")
def test_a_dataset_that_only_a_document_knows_is_read_and_adopted(store):
    build_table(store)
    document = foreign_document(store, "plain")
    from ktk_engine.maintain.remove import remove

    remove(store, "plain")
    store.put(document_key("plain"), render_document(document))
    with pytest.warns(ForeignWriterWarning, match="read as that document has it"):
        assert snapshot_of(store, "plain").files.num_rows == 2
    with pytest.raises(ForeignWriterError, match="ktk adopt plain"):
        append_ours(store)
    adoption = plan_adoption(store, "plain")
    assert not adoption.loses and "plain: 2 files, 4 rows, " in str(adoption.datasets[0])
    run_adoption(adoption)
    assert append_ours(store).warning == ""


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
def test_adopting_a_fork_says_what_is_lost(store):
    document = fork(store)
    adoption = plan_adoption(store, "plain")
    (item,) = adoption.datasets
    assert (item.kept, item.gained, len(item.lost), item.lost_rows) == (1, 1, 1, 1)
    with pytest.raises(ForeignWriterError, match=r"(?s)1 are lost with 1 rows.*--force"):
        run_adoption(adoption)
    assert version_of(store, PLAIN) == 2
    done = run_adoption(adoption, force=True)
    assert (done.version, done.warning) == (3, "")
    state = resolve(store, PLAIN)
    assert state.snapshot("plain").labels == list(document.partitions)
    assert state.datasets["plain"].stamp.version == 3
    assert append_ours(store).warning == ""


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
def test_what_cannot_be_adopted(store):
    document = fork(store)
    store.delete([list(document.partitions.values())[-1]])
    with pytest.raises(ForeignWriterError, match="names 1 files that are gone"):
        plan_adoption(store, "plain")
    store.put(document_key("plain"), b"{")
    with pytest.raises(ForeignWriterError, match="nothing to take over"):
        plan_adoption(store, "plain")


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
def test_the_command(store, ktk):
    fork(store)
    said = ktk("adopt", "plain", "--dry-run").output
    assert "1 are lost with 1 rows" in said and "ktk adopt plain --force" in said
    words = ("adopt", "plain", "--write-sources", str(store.root))
    assert "Nothing was written" in ktk(*words, code=1).output
    assert not (store.root / "sources.yml").exists()
    assert "Taken over: version" in ktk("adopt", "plain", "--force").output
    assert "no other program changed it" in ktk("adopt", "plain").output


def others_schema(store, uuid, schema, table="table"):
    """Publish a schema as another program has it."""
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    key = f"{uuid}/{table}/_common_metadata"
    store.put(key, sink.getvalue().to_pybytes())
    return key


EXACT = pa.schema([("a", pa.int64()), ("d", pa.decimal128(3, 2)), ("s", pa.large_string())])
ROWS = pa.table({"a": [1], "d": pa.array([None], pa.decimal128(3, 2)), "s": ["x"]})


def test_the_schema_of_others_stays_as_it_is(store):
    """They compare types exactly when they append: digits of decimals, and large text."""
    write_plain(store, "plain", ROWS)
    key = others_schema(store, "plain", EXACT)
    before = store.get(key)
    run_adoption(plan_adoption(store, "plain"))
    assert store.get(key) == before
    table = Store(store.root).write_table("plain", ROWS, mode="append")
    assert store.get(key) == before
    table.alter(add={"n": "bigint"})
    assert pq.read_schema(pa.BufferReader(store.get(key))).field("s").type == pa.large_string()
    Store(store.root).table("plain").copy_to(store.url, "copied")
    copied = pq.read_schema(pa.BufferReader(store.get("copied/table/_common_metadata")))
    assert copied.field("d").type == pa.decimal128(3, 2)
    Store(store.root).write_table("plain", ROWS.drop_columns("d"), mode="overwrite")
    rebuilt = pq.read_schema(pa.BufferReader(store.get(key)))
    assert rebuilt.names == ["a", "s"] and rebuilt.field("s").type == pa.large_string()
    assert not check(store, "plain").problems and not check(store, "copied").problems


def write_durations(store):
    rows = pa.table({"p": [1, 2], "a": [1, 2], "t": pa.array([1, 2], pa.duration("us"))})
    (key,) = write_plain(store, "plain", rows.drop_columns("t")).partitions.values()
    pq.write_table(rows, store.root / key)
    return others_schema(store, "plain", rows.schema)


def test_columns_without_a_class_are_left_out(store, ktk):
    key = write_durations(store)
    before = store.get(key)
    table = Store(store.root).table("plain")
    assert table.query().to_arrow(engine="local").to_pydict() == {"a": [1, 2], "p": [1, 2]}
    with pytest.raises(QueryError, match=r"`t` is left out: duration\[us\] has no type class"):
        table.query(["t"]).to_arrow(engine="local")
    assert not check(store, "plain", deep=True).problems
    (item,) = plan_adoption(store, "plain").datasets
    assert any(
        "column t is left out" in note and "cannot be changed" in note for note in item.notes
    )
    ktk("adopt", "plain", "--write-sources", str(store.root))
    columns = yaml.safe_load((store.root / "sources.yml").read_text())["sources"][0]["tables"][0]
    assert [column["name"] for column in columns["columns"]] == ["a", "p"]
    assert store.get(key) == before and not check(store, "plain", deep=True).problems
    row = pa.table({"p": [3], "a": [3]})
    for refused in (
        lambda: Store(store.root).write_table("plain", row, mode="append"),
        lambda: Store(store.root).table("plain").delete("a = 1"),
        lambda: Store(store.root).table("plain").alter(drop=["a"]),
    ):
        with pytest.raises(TypeClassError, match=r"t \(duration\[us\] .*Nothing was committed"):
            refused()
    assert version_of(store, PLAIN) == 1 and store.get(key) == before
    done = Store(store.root).table("plain").copy_to(store.url, "copied")
    assert done.query().to_arrow(engine="local").num_rows == 2
    assert store.get("copied/table/_common_metadata") == before
    Store(store.root).write_table("plain", row, mode="overwrite")
    append_ours_of(store, row)
    assert pq.read_schema(pa.BufferReader(store.get(key))).names == ["a", "p"]


def append_ours_of(store, row):
    assert (
        Store(store.root)
        .write_table("plain", row, mode="append")
        .query()
        .to_arrow(engine="local")
        .num_rows
        == 2
    )


def test_a_partition_column_without_a_class_is_unsupported(store):
    write_durations(store)
    document = load_document(store, "plain")
    labels = {f"t=1/{label}": key for label, key in document.partitions.items()}
    store.put(
        document_key("plain"),
        render_document(replace(document, partition_keys=("t",), partitions=labels)),
    )
    with pytest.raises(FormatError, match=r"partitioned by t \(duration.*not supported") as refused:
        plan_adoption(store, "plain")
    assert "backup" not in str(refused.value)


def test_an_unreadable_partition_value_is_found_before_and_stops_no_other(store, ktk, tmp_path):
    write_plain(store, "good", pa.table({"a": [1]}))
    document = write_plain(store, "bad", pa.table({"p": ["1", "x"], "a": [1, 2]}), ["p"])
    others_schema(store, "bad", pa.schema([("p", pa.int64()), ("a", pa.int64())]))
    assert len(document.partitions) == 2
    for options in ((), ("--deep",)):
        assert "'x' is not a value" in ktk("check", "bad", *options, code=1).output
    words = ("adopt", "--all", "--write-sources", str(tmp_path))
    planned = ktk(*words, "--dry-run", code=1).output
    assert (
        "'x' is not a value" in planned and "1 cube or table would be taken over, 1 not" in planned
    )
    said = ktk(*words, code=1).output
    assert "'x' is not a value" in said and "Nothing was written" in said
    tables = yaml.safe_load((tmp_path / "sources.yml").read_text())["sources"][0]["tables"]
    assert [table["name"] for table in tables] == ["good"]
    assert version_of(store, scope_of("good")) == 1 and version_of(store, scope_of("bad")) == 0
    assert Store(store.root).table("bad").query(["a"]).to_arrow(engine="local").num_rows == 2


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
def test_what_is_refused_while_it_runs_is_left_out_of_the_sources(store, ktk, tmp_path):
    fork(store)
    write_plain(store, "good", pa.table({"a": [1]}))
    said = ktk("adopt", "--all", "--write-sources", str(tmp_path), code=1).output
    assert "1 are lost" in said and "Wrote" in said
    tables = yaml.safe_load((tmp_path / "sources.yml").read_text())["sources"][0]["tables"]
    assert [table["name"] for table in tables] == ["good"]


# Which values of text a file has, footers do not tell: bounds may be cut.
@pytest.mark.parametrize(
    ("indexed", "way"),
    [("a", "file"), ("s", "file"), ("a", "values"), ("a", "damaged"), ("s", "damaged")],
)
def test_a_stale_index_is_said_and_built_anew(store, ktk, indexed, way):
    """As Kartothek before 3.19 left some: queries by the column miss rows."""
    rows = pa.table({"p": [1, 1, 2], "a": [1, 5, 2], "s": ["x", "y", "z"]})
    document = write_plain(store, "plain", rows, ["p"], indexes=["a", "s"])
    key = document.indices[indexed]
    index = flatten_index(read_index(store.get(key)))
    if way == "file":
        index = index.filter(pc.match_substring(index["label"], "p=2"))
    elif way == "values":
        index = index.filter(pc.not_equal(index["value"], 5))
    data = render_index(indexed, build_index(index["value"], index["label"]))
    store.put(key, data if way != "damaged" else b"PAR1")
    said = ktk("adopt", "plain", "--dry-run").output
    assert f"its index on {indexed} misses values of" in said and "it is rebuilt" in said
    assert ktk("adopt", "plain", "--dry-run").output == said
    ktk("adopt", "plain")
    table = Store(store.root).table("plain")
    for where, count in (("a = 5", 1), ("s = 'x'", 1), ("s = 'z'", 1), ("a < 9", 3)):
        assert table.query(where=where).to_arrow(engine="local").num_rows == count
    assert not check(store, "plain", deep=True).problems
    assert "no other program changed it" in ktk("adopt", "plain").output


def test_indices_that_name_all_values_stay_as_they_are(store):
    nulls = pa.table({"p": [1, 2], "a": pa.array([None, 2], pa.int64()), "s": ["x", None]})
    document = write_plain(store, "plain", nulls, ["p"], indexes=["a", "s"])
    (item,) = plan_adoption(store, "plain").datasets
    assert item.stale == () and item.notes == ()
    run_adoption(plan_adoption(store, "plain"))
    assert snapshot_of(store, "plain").indices == document.indices


def cube_of_others(store, **datasets):
    """Write a cube as another program does: the first dataset is the seed dataset."""
    for name, rows in datasets.items():
        metadata = NYC.metadata(name)
        index = ["carrier", "hour"] if name == "flights" else []
        write_plain(store, f"nyc++{name}", rows, ("origin",), metadata, index)


NUMBERS = pa.table({"origin": ["EWR"], "carrier": [1], "v": [1]})
PAYLOAD = pa.table({"origin": ["EWR"], "carrier": ["UA"], "delay": [1]})
LONELY = pa.table({"origin": ["EWR"], "v": [1]})


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        (NUMBERS, "Column `carrier` is signed integer in extra, but string in flights"),
        (PAYLOAD, "Payload column `delay` is in several datasets"),
        (LONELY, "has none of the cube's dimension columns"),
    ],
    ids=["classes", "payload", "lonely"],
)
def test_an_inconsistent_cube_of_others_is_refused(store, ktk, extra, match):
    cube_of_others(store, flights=flights(), extra=extra)
    for words in (("query", "nyc"), ("adopt", "nyc", "--dry-run")):
        assert match in " ".join(ktk(*words, code=1).output.split())
    with pytest.raises(ConsistencyError, match=match):
        Store(store.root).cube("nyc").query().to_arrow(engine="local")


def test_a_missing_index_keeps_nobody_from_reading(store):
    write_plain(store, "nyc++flights", flights(), ("origin",), NYC.metadata("flights"))
    assert Store(store.root).cube("nyc").query().to_arrow(engine="local").num_rows == 4


def test_what_cannot_be_written_any_more_is_said(store):
    write_plain(store, "alike", pa.table({"x": [1], "X": [2]}))
    (item,) = plan_adoption(store, "alike").datasets
    assert any("its rows cannot be changed" in note for note in item.notes)
    with pytest.raises(KtkError):
        Store(store.root).write_table("alike", pa.table({"x": [1], "X": [2]}), mode="append")
    write_plain(store, "fine", pa.table({"x": [1]}))
    assert plan_adoption(store, "fine").datasets[0].notes == ()


@pytest.mark.parametrize("zone", ["Etc/UTC", "+00:00", "Z", "Zulu"])
def test_other_names_of_utc(store, zone):
    at = pa.array([0, 1], pa.timestamp("us", "UTC"))
    write_plain(store, "plain", pa.table({"at": at, "x": [1, 2]}), indexes=["at"])
    key = others_schema(
        store, "plain", pa.schema([("at", pa.timestamp("us", zone)), ("x", pa.int64())])
    )
    before = store.get(key)
    run_adoption(plan_adoption(store, "plain"))
    table = Store(store.root).write_table("plain", pa.table({"at": at, "x": [3, 4]}), mode="append")
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    found = table.query(where="at = timestamp '1970-01-01 00:00:00+00:00'").to_arrow(engine="local")
    assert sorted(found["x"].to_pylist()) == [1, 3]
    assert store.get(key) == before


def test_a_dataset_without_files_whose_partition_column_has_no_class_yet(store, ktk):
    document = write_plain(store, "plain", pa.table({"p": ["a"], "x": [1]}), ["p"])
    store.put(document_key("plain"), render_document(replace(document, partitions={})))
    others_schema(store, "plain", pa.schema([("p", pa.null()), ("x", pa.int64())]))
    assert Store(store.root).table("plain").query().to_arrow(engine="local").num_rows == 0
    assert not check(store, "plain").problems
    ktk("adopt", "plain")
    rows = pa.table({"p": ["a"], "x": [1]})
    table = Store(store.root).write_table("plain", rows, mode="append")
    assert table.query(where="p = 'a'").to_arrow(engine="local").num_rows == 1


def test_a_named_index_of_pandas_is_no_column(store):
    import pandas as pd

    document = write_plain(store, "plain", pa.table({"a": [1, 2]}))
    (key,) = document.partitions.values()
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="mine"))
    pq.write_table(pa.Table.from_pandas(frame), store.root / key)
    assert not check(store, "plain", deep=True).problems
    run_adoption(plan_adoption(store, "plain"))
    assert not check(store, "plain", deep=True).problems


def test_files_that_no_footer_has_described_are_compacted_by_their_own_types(store):
    write_plain(store, "plain", pa.table({"a": pa.array([1], pa.int32()), "s": ["x"]}))
    table = Store(store.root).write_table("plain", pa.table({"a": [2], "s": ["y"]}), mode="append")
    found = table.compact().query().to_arrow(engine="local")
    assert sorted(found.to_pylist(), key=repr) == [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]
    assert not check(store, "plain", deep=True).problems
