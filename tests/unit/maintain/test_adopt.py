"""What other programs make of datasets: read wherever rows are known, taken over on demand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ForeignWriterError, ForeignWriterWarning
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from ktk_engine.maintain.check import check
from tests.support.committed import cube_scope, resolve, scope_of, snapshot_of, version_of
from tests.support.dataset_builder import (
    append_ours,
    build_nyc,
    build_table,
    foreign_document,
    weather,
    weather_builder,
    write_plain,
)
from tests.support.documents import document_key, load_document, render_document

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
