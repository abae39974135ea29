"""What datasets were computed from, and what of it has changed since."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from ktk_engine.log.computed import Computed, versions_read, write_computed  # deep: the note
from tests.support.changes import Read, Reads, WriteRequest, build, delete_tag, remove, tag_version
from tests.support.committed import resolve, scope_of
from tests.support.dataset_builder import append_as_kartothek
from tests.support.stores import LocalStore

ROWS = pa.table({"x": [1]})


@pytest.fixture
def noted(store):
    """Table `t` was computed from `own`, a version of it by tag, and `far` in another schema."""
    beside = LocalStore(store.root.parent / "other")
    for place, uuid in ((store, "own"), (beside, "far"), (store, "t")):
        build(place, ROWS, WriteRequest(uuid))
    tag_version(store, "own", "q1", 1)
    own, far = resolve(store, scope_of("own")), resolve(beside, scope_of("far"))
    reads = Reads(
        (Read(own, "own"), Read(own, "own", moment="version as of 'q1'"), Read(far, "far"))
    )
    head = resolve(store, scope_of("t")).head
    time = datetime(2026, 11, 28, tzinfo=UTC)
    note = Computed(
        1, head.commit, time, {"code": "a"}, versions_read(store, [reads]), {"f": "line 2"}
    )
    write_computed(store, scope_of("t"), "t", note)
    return store, beside


def said(store, *words):
    done = CliRunner().invoke(main, ["--store", str(store.root), "why", "t", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_nothing_has_changed(noted):
    store, _ = noted
    text = said(store)
    assert "t: version 1, computed 2026-11-28 00:00:00 UTC\n" in text
    for line in ("own version 1", "own version as of 'q1'", "other.far version 1"):
        assert f"  reads {line}: unchanged\n" in text
    assert "  reads f (line 2): unknown\n  depends on: code\n" in text


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda store, beside: build(store, ROWS, WriteRequest("own"), mode="append"),
         "own version 1: changed in version 3"),
        (lambda store, beside: append_as_kartothek(store, "own", ROWS),
         "own version 1: gone, or not ours"),
        (lambda store, beside: remove(beside, "far"), "other.far version 1: gone, or not ours"),
        (lambda store, beside: build(store, ROWS, WriteRequest("t"), mode="append"),
         "its rows may have changed since (version 2)"),
    ],
)  # fmt: skip
def test_what_has_changed(noted, change, line):
    change(*noted)
    assert line in said(noted[0])


def test_a_tag_that_moved(noted):
    store, _ = noted
    build(store, ROWS, WriteRequest("own"), mode="append")
    assert "own version as of 'q1': unchanged" in said(store)
    delete_tag(store, "own", "q1")
    assert "own version as of 'q1': " in said(store)
    assert "has no version 'q1'" in said(store)


def test_history_ends_with_it(noted):
    done = CliRunner().invoke(main, ["--store", str(noted[0].root), "history", "t"])
    last = done.output.splitlines()[-1]
    assert last == (
        "t: version 1 was computed 2026-11-28 00:00:00 UTC from own version 1, "
        "own version as of 'q1', other.far version 1"
    )


def test_as_json(noted):
    (found,) = json.loads(said(noted[0], "--json"))
    assert found["dataset"] == "t"
    assert [item["changed"] for item in found["read"]] == [None, None, None]
    assert found["note"]["work"] == {"code": "a"}


def test_without_a_note(store):
    build(store, ROWS, WriteRequest("t"))
    assert said(store).endswith("t: no note says what it was computed from\n")
