"""What belongs to a dataset and not to its rows outlives a rebuild."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tests.support.changes import WriteRequest, build, comment_on
from tests.support.dataset_builder import write_plain
from tests.support.documents import Comments, load_document

ROWS = pa.table({"p": [1, 2], "a": [1, 2]})
NOTES = {"owner": "us", "nested": {"x": [1]}, "creation_time": "2001-01-01T00:00:00"}


def test_what_others_noted_in_the_document_stays(store):
    write_plain(store, "plain", ROWS, ("p",), NOTES)
    target = WriteRequest("plain", partition_by=("p",))
    for mode in (None, "append", None):
        build(store, ROWS, target, mode=mode)
        metadata = load_document(store, "plain").metadata
        assert {key: metadata[key] for key in ("owner", "nested")} == {
            key: NOTES[key] for key in ("owner", "nested")
        }
    assert metadata["creation_time"] != NOTES["creation_time"]


def test_marks_of_a_cube_are_those_of_the_build(store):
    write_plain(store, "c++s", ROWS, (), {**NOTES, "ktk_cube_dimension_columns": ["p"]})
    seed = WriteRequest("s", "seed", "c", ("a",))
    build(store, ROWS, seed, full_refresh=True)
    comment_on(store, "c++s", Comments("All of it"))
    build(store, ROWS, replace(seed, suppress_index_on=("a",)), full_refresh=True)
    metadata = load_document(store, "c++s").metadata
    assert metadata["ktk_cube_dimension_columns"] == ["a"]
    assert metadata["ktk_cube_suppress_index_on"] == ["a"]
    assert (metadata["owner"], metadata["ktk_comment"]) == ("us", "All of it")


def test_a_table_of_another_name_keeps_it(store):
    """Kartothek's old datasets have a table of any name, which its readers ask for."""
    write_plain(store, "plain", ROWS, ("p",), table="core")
    target = WriteRequest("plain", partition_by=("p",))
    for mode in ("append", None):
        build(store, ROWS, target, mode=mode)
        assert load_document(store, "plain").table == "core"
