from dataclasses import replace
from datetime import UTC, datetime, timedelta
from os import utime

import pyarrow as pa
import pytest

from ktk_engine.describe.last_change import changed_at, confirmed_at, last_change
from ktk_engine.errors import DatasetNotFoundError, ForeignWriterError, ForeignWriterWarning
from tests.support.changes import DatasetChange, comment_on
from tests.support.committed import Computed, cube_scope, resolve, scope_of, write_computed
from tests.support.dataset_builder import (
    DbtNode,
    append_as_kartothek,
    build_nyc,
    build_table,
    commit_change,
    write_plain,
)
from tests.support.documents import Comments, document_key

PLAIN = scope_of("plain")
LONG_AGO = datetime(2020, 2, 29, 12, 30, tzinfo=UTC)


def compact(store):
    """A commit that says that it only compacted; the files do not matter here."""

    def rebased(base, attempt):
        return replace(base, properties={**base.properties, "x": attempt})

    change = DatasetChange("plain", "compact", rebased, frozenset())
    commit_change(store, lambda commit_id: change)


def age(store, uuid):
    """Let a document look as if it was written long ago."""
    utime(store.root / document_key(uuid), (LONG_AGO.timestamp(),) * 2)


def test_what_leaves_the_rows_alone_does_not_count(store):
    first = build_table(store).entry
    comment_on(store, "plain", Comments("text"))
    compact(store)
    comment_on(store, "plain", Comments("another"))
    state = resolve(store, PLAIN)
    assert state.version == 4
    assert last_change(state, "plain") == first
    assert changed_at(state, "plain") == first.time
    later = DbtNode(store, "plain").commit_append(pa.table({"a": [1]}))
    assert last_change(resolve(store, PLAIN), "plain") == later.entry


def test_rows_that_were_found_to_be_the_same_are_as_fresh_as_that(store):
    entry = build_table(store).entry
    later = entry.time + timedelta(days=3)
    note = Computed(entry.version, entry.commit, later, unchanged=True)
    assert confirmed_at(resolve(store, PLAIN), "plain") == entry.time
    write_computed(store, PLAIN, "plain", note)
    compact(store)
    assert confirmed_at(resolve(store, PLAIN), "plain") == later
    other = DbtNode(store, "plain").commit_append(pa.table({"a": [1]})).entry
    assert confirmed_at(resolve(store, PLAIN), "plain") == other.time


def test_a_dataset_of_a_cube_has_its_own_time(store):
    build_nyc(store)
    state = resolve(store, cube_scope("nyc"))
    found = {uuid: last_change(state, uuid).version for uuid in state.datasets}
    assert found == {"nyc++flights": 1, "nyc++weather": 2, "nyc++airlines": 3}


def test_the_oldest_entry_counts_where_older_ones_are_gone(store):
    build_table(store)
    comment_on(store, "plain", Comments("text"))
    compact(store)
    store.delete([PLAIN.entry_key(1)])
    assert last_change(resolve(store, PLAIN), "plain").version == 2


def test_another_programs_dataset_changed_with_its_document(store):
    write_plain(store, "plain", pa.table({"a": [1]}))
    age(store, "plain")
    state = resolve(store, PLAIN)
    assert last_change(state, "plain") is None
    assert changed_at(state, "plain") == LONG_AGO


def test_what_another_program_wrote_on_top_of_ours(store):
    build_table(store)
    append_as_kartothek(store, "plain")
    age(store, "plain")
    assert changed_at(resolve(store, PLAIN), "plain") == LONG_AGO


def test_nobody_can_tell(store):
    with pytest.raises(DatasetNotFoundError, match="has no dataset plain"):
        changed_at(resolve(store, PLAIN), "plain")
    write_plain(store, "plain", pa.table({"a": [1]}))
    store.put(document_key("plain"), b"{")
    with pytest.raises(ForeignWriterError, match="is damaged"):
        changed_at(resolve(store, PLAIN), "plain")


def test_the_log_tells_where_another_program_removed_the_document(store):
    done = build_table(store)
    store.delete([document_key("plain")])
    with pytest.warns(ForeignWriterWarning, match="removed by another program"):
        assert changed_at(resolve(store, PLAIN), "plain") == done.entry.time
