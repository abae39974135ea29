import pyarrow as pa
import pytest

from ktk_engine.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    ForeignWriterError,
    ForeignWriterWarning,
)
from ktk_engine.format.comments import comments_of  # deep: as stored
from ktk_engine.maintain.change_metadata import comment_on
from ktk_engine.maintain.remove import remove
from tests.support.changes import WriteRequest, build
from tests.support.committed import (
    cube_scope,
    read_entries,
    resolve,
    scope_of,
    snapshot_of,
)
from tests.support.dataset_builder import (
    DbtNode,
    append_as_kartothek,
    build_nyc,
    build_table,
    commit_change,
    write_plain,
)
from tests.support.documents import COLUMNS_KEY, RELATION_KEY, Comments, document_key, load_document
from tests.support.stores import keys

PLAIN = scope_of("plain")
TEXT = """ It's "quoted": 100 %, {{ jinja }} {% raw %} \\ $$ -- /* */
Zweite Zeile: größer als ∞ 🚀\t\0"""
COMMENTS = Comments(TEXT, {"a": TEXT, "ä b": "odd name"})


def comments(store, uuid="plain"):
    return snapshot_of(store, uuid).comments


def operations(store, scope=PLAIN):
    return [entry.operation for entry, _ in read_entries(store, scope, 0)]


def test_any_text_is_stored_in_one_commit_that_adds_no_file(store):
    build_table(store, table=pa.table({"a": [1], "ä b": [2]}))
    before = keys(store, "plain/")
    assert comment_on(store, "plain", COMMENTS, {"node": "model.x"})
    assert comments(store) == COMMENTS
    assert keys(store, "plain/") == before
    state = resolve(store, PLAIN)
    assert (state.head.operation, state.head.history) == ("comment", {"node": "model.x"})
    assert state.datasets["plain"].stamp.version == 2
    assert comments_of(load_document(store, "plain").metadata) == COMMENTS
    assert not [key for key in keys(store) if "/intent/" in key]


def test_what_is_there_is_not_committed_again(store):
    build_table(store)
    assert not comment_on(store, "plain", Comments())
    assert comment_on(store, "plain", COMMENTS)  # one of its columns is unknown here
    assert not comment_on(store, "plain", COMMENTS)
    assert comments(store) == Comments(TEXT, {"a": TEXT})
    assert comment_on(store, "plain", Comments())
    assert operations(store) == ["rebuild", "comment", "comment"]
    metadata = load_document(store, "plain").metadata
    assert RELATION_KEY not in metadata and COLUMNS_KEY not in metadata


def test_a_cube_keeps_its_specification_and_roles(store):
    build_nyc(store)
    scope = cube_scope("nyc")
    before = resolve(store, scope)
    comment_on(store, "nyc++flights", Comments("All flights", {"delay": "minutes"}))
    state = resolve(store, scope)
    assert {u: item.entry.role for u, item in state.datasets.items()} == {
        u: item.entry.role for u, item in before.datasets.items()
    }
    entry, old = (s.datasets["nyc++flights"].entry for s in (state, before))
    assert (entry.rows, entry.files, entry.specified) == (old.rows, old.files, old.specified)
    assert comments(store, "nyc++weather") == Comments()


@pytest.mark.parametrize("mode", [None, "append", "partitions"])
def test_builds_keep_them_as_far_as_columns_stay(store, mode):
    target = WriteRequest("plain", on_schema_change="sync_all_columns")
    build(store, pa.table({"a": [1], "b": [2]}), target)
    comment_on(store, "plain", Comments("text", {"a": "1st", "b": "2nd"}))
    build(store, pa.table({"a": [1]}), target, mode=mode)
    assert comments(store) == Comments("text", {"a": "1st"})


@pytest.mark.parametrize("write", [DbtNode.rebuild, DbtNode.append])
def test_a_comment_in_between_is_no_conflict_for_others(store, write):
    build_table(store)
    base = resolve(store, PLAIN)
    comment_on(store, "plain", Comments("first"))
    table = pa.table({"a": [7]})
    commit_change(store, lambda c: write(DbtNode(store, "plain"), table, c), base)
    assert operations(store) == ["rebuild", "comment", write.__name__]


def test_a_comment_goes_on_top_of_what_came_in_between(store, monkeypatch):
    build_table(store)
    old = resolve(store, PLAIN)
    monkeypatch.setattr("ktk_engine.maintain.change_metadata.resolve", lambda *_: old)
    build(store, pa.table({"a": [1], "b": [2]}), WriteRequest("plain", on_schema_change="ignore"))
    comment_on(store, "plain", Comments("text", {"a": "1st"}))
    assert comments(store) == Comments("text", {"a": "1st"})
    remove(store, "plain")
    with pytest.raises(CommitConflictError, match="was removed"):
        comment_on(store, "plain", Comments("other"))
    assert not [key for key in keys(store) if "/intent/" in key]


def test_what_cannot_be_commented_on(store):
    with pytest.raises(DatasetNotFoundError, match="has no dataset plain"):
        comment_on(store, "plain", COMMENTS)
    build_table(store)
    store.delete([document_key("plain")])
    with (
        pytest.warns(ForeignWriterWarning, match="read as the log has it"),
        pytest.raises(ForeignWriterError, match="removed by another program"),
    ):
        comment_on(store, "plain", COMMENTS)


def test_another_programs_dataset(store):
    """The commit takes it over; and what that program writes later keeps the comments."""
    write_plain(store, "plain", pa.table({"a": [1]}), metadata={"mine": 1})
    comment_on(store, "plain", Comments("text", {"a": "1st"}))
    assert load_document(store, "plain").metadata["mine"] == 1
    append_as_kartothek(store, "plain")
    assert comments(store) == Comments("text", {"a": "1st"})


@pytest.mark.parametrize("metadata", [{RELATION_KEY: 5, COLUMNS_KEY: [1]}, {COLUMNS_KEY: {"a": 1}}])
def test_another_programs_idea_of_a_comment_is_none(store, metadata):
    write_plain(store, "plain", pa.table({"a": [1]}), metadata=metadata)
    assert comments(store) == Comments()
