"""Names of versions, which clean-ups keep."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    ConsistencyError,
    DatasetNotFoundError,
    ForeignWriterError,
    VersionGoneError,
)
from ktk_engine.maintain.check import check
from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup
from ktk_engine.maintain.remove import remove
from ktk_engine.maintain.versions.tag import delete_tag, tag_state, tag_version
from tests.support.changes import Retention, WriteRequest, build
from tests.support.committed import cube_scope, resolve, scope_of, state_at, version_of
from tests.support.dataset_builder import append_as_kartothek, build_table, write_plain_nyc
from tests.support.documents import document_key
from tests.support.stores import keys

PLAIN, CUBE = scope_of("plain"), cube_scope("c")
NOTHING = Retention(timedelta(0), 1)
PLACES = ["a/b", "50%", "x=y", "größe", " "]
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",))


def number(value):
    return pa.table({"a": [value]})


def cells(value):
    return pa.table({"p": PLACES, "x": range(5), "v": [value] * 5})


def rows(store, version=None):
    table = Store(store.root).table("plain", version=version)
    return table.query().to_arrow(engine="local")["a"].to_pylist()


@pytest.fixture
def grown(store):
    """A table of the versions 1, 2 and 3, which hold their numbers."""
    for value in (1, 2, 3):
        build_table(store, table=number(value))
    return store


def test_a_tag_takes_the_place_of_a_number(grown):
    store = Store(grown.root)
    store.table("plain", version=2).tag("2026-q1")
    assert rows(grown, "2026-q1") == [2]
    assert store.table("plain").at("2026-q1").version == 2
    assert store.table("plain").tags() == {"2026-q1": 2}
    assert store.table("plain").version == 4 and rows(grown) == [3]
    assert store.relation("plain", version="2026-q1").version == 2
    assert rows(grown, "2") == [2]  # a text with a number is the number
    assert store.table("plain").restore("2026-q1").version == 5
    assert rows(grown) == [2]


def test_it_is_kept_as_long_as_it_has_the_name(grown):
    tag_version(grown, "plain", "kept", 1)
    run_cleanup(grown, PLAIN, NOTHING)
    assert rows(grown, "kept") == [1]
    with pytest.raises(VersionGoneError, match=r"left, and the tagged 1 \(kept\);"):
        rows(grown, 2)
    assert not check(grown, "plain").problems
    tag_version(grown, "plain", "also", "kept")
    delete_tag(grown, "plain", "kept")
    run_cleanup(grown, PLAIN, NOTHING)
    assert rows(grown, "also") == [1]
    delete_tag(grown, "plain", "also")
    assert not plan_cleanup(grown, PLAIN, NOTHING).is_empty
    run_cleanup(grown, PLAIN, NOTHING)
    with pytest.raises(VersionGoneError):
        rows(grown, 1)
    assert rows(grown) == [3]


def test_all_datasets_of_a_cube_and_awkward_values(store):
    build(store, cells(1), SEED)
    build(
        store, pa.table({"x": range(5), "w": PLACES}), WriteRequest("e", "enrichment", "c", ("x",))
    )
    cube = Store(store.root).cube("c").index("v")
    before = cube.query().to_arrow(engine="local")
    cube.tag("q1.final_1-x")
    build(store, cells(2), SEED)
    remove(store, "c", "e")
    run_cleanup(store, CUBE, NOTHING)
    tagged = Store(store.root).cube("c", version="q1.final_1-x")
    assert tagged.query().to_arrow(engine="local") == before
    assert tagged.query(where="v = 1").count(engine="local") == 5
    assert not check(store, "c", deep=True).problems


def test_a_removed_cube_keeps_its_tagged_versions(store):
    build(store, cells(1), SEED)
    Store(store.root).cube("c").tag("last")
    remove(store, "c", cascade=True)
    run_cleanup(store, CUBE, NOTHING)
    assert Store(store.root).cube("c", version="last").query().count(engine="local") == 5
    with pytest.raises(DatasetNotFoundError):
        tag_version(store, "c", "more")
    with pytest.raises(DatasetNotFoundError, match="nothing to tag"):
        tag_version(store, "c", "more", version_of(store, CUBE))
    assert Store(store.root).cube("c", version="last").restore("last").version > 3
    delete_tag(store, "c", "last")


@pytest.mark.parametrize(
    "name",
    ["12", "1.5", "1e5", "1_000", "inf", "nan", "Infinity", "0"],
)
def test_a_number_is_no_tag(grown, name):
    with pytest.raises(ConfigurationError, match="since versions have numbers"):
        tag_version(grown, "plain", name)
    assert version_of(grown, PLAIN) == 3


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "größe", "a'b", "a/b", "١٢", "x" * 101, 5])
def test_other_texts_are_no_tags(grown, name):
    with pytest.raises(ConfigurationError, match="cannot be a tag"):
        tag_version(grown, "plain", name)


def test_a_name_is_given_once(grown):
    assert tag_version(grown, "plain", "q1", 2).log == 4
    assert tag_version(grown, "plain", "q1", 2).log == 4  # it has it already
    with pytest.raises(ConsistencyError, match=r"names version 2.*\('plain'\).untag\('q1'\)"):
        tag_version(grown, "plain", "q1", 3)
    with pytest.raises(ConsistencyError, match="names version 2"):
        Store(grown.root).table("plain").tag("q1")


def test_what_is_unknown(grown):
    tag_version(grown, "plain", "2026-q1", 1)
    with pytest.raises(VersionGoneError, match=r"Did you mean `2026-q1`\?.*tags are 2026-q1"):
        rows(grown, "2026-q2")
    with pytest.raises(VersionGoneError, match="has no version 9"):
        tag_version(grown, "plain", "x", 9)
    with pytest.raises(VersionGoneError, match="no version 'q9'"):
        delete_tag(grown, "plain", "q9")
    with pytest.raises(VersionGoneError, match="is not a tag"):
        delete_tag(grown, "plain", "1")
    with pytest.raises(DatasetNotFoundError):
        tag_version(grown, "plane", "x")


def test_what_a_cleanup_took_cannot_be_tagged(grown):
    run_cleanup(grown, PLAIN, NOTHING)
    with pytest.raises(VersionGoneError):
        tag_version(grown, "plain", "late", 1)


def racing(store, part, action):
    """Let something happen before the first put of a key."""

    def hook(method, key):
        if part in key and method == "put_if_absent" and hook in store.hooks:
            store.hooks.remove(hook)
            action()

    store.hooks.append(hook)


def test_a_cleanup_that_comes_first_stops_the_tag(grown):
    racing(grown, "log/00000000000000000004", lambda: run_cleanup(grown, PLAIN, NOTHING))
    with pytest.raises(CommitConflictError, match="is a clean-up, which may have removed"):
        tag_version(grown, "plain", "q1", 1)
    assert not resolve(grown, PLAIN).head.tags


def test_a_tag_that_comes_first_stops_the_cleanup(grown):
    before = keys(grown, "plain/")
    racing(grown, "log/00000000000000000004", lambda: tag_version(grown, "plain", "q1", 1))
    with pytest.raises(CommitConflictError, match=r"tags a version as q1.*Nothing was deleted"):
        run_cleanup(grown, PLAIN, NOTHING)
    assert keys(grown, "plain/") == before
    run_cleanup(grown, PLAIN, NOTHING)
    assert rows(grown, "q1") == [1]


def test_a_tag_that_goes_stops_no_cleanup(grown):
    tag_version(grown, "plain", "q1", 1)
    racing(grown, "log/00000000000000000005", lambda: delete_tag(grown, "plain", "q1"))
    run_cleanup(grown, PLAIN, NOTHING)
    assert version_of(grown, PLAIN) == 6


def test_two_tags_at_once_are_fine_unless_they_are_one(grown):
    racing(grown, "log/00000000000000000004", lambda: tag_version(grown, "plain", "a", 1))
    tag_version(grown, "plain", "b", 2)
    assert resolve(grown, PLAIN).head.tags == {"a": 1, "b": 2}
    racing(grown, "log/00000000000000000006", lambda: tag_version(grown, "plain", "c", 1))
    with pytest.raises(CommitConflictError, match="Tag c was changed by version 6"):
        tag_version(grown, "plain", "c", 2)


def test_a_write_beside_it_is_no_conflict(grown):
    racing(grown, "log/00000000000000000004", lambda: tag_version(grown, "plain", "a", 1))
    build_table(grown, table=number(5))
    assert rows(grown) == [5] and rows(grown, "a") == [1]
    racing(grown, "log/00000000000000000006", lambda: build_table(grown, table=number(6)))
    tag_version(grown, "plain", "b", 5)
    assert rows(grown) == [6] and rows(grown, "b") == [5]


def test_it_is_one_commit_that_changes_nothing_else(grown):
    before = keys(grown)
    tag_version(grown, "plain", "q1", 1)
    assert keys(grown) - before == {PLAIN.entry_key(4)}
    head = resolve(grown, PLAIN).head
    assert (head.operation, head.tagged) == ("tag", ("q1",))
    assert head.history["reason"] == "q1 names version 1"
    assert state_at(resolve(grown, PLAIN), 4).snapshot("plain").rows == 1


def test_what_kartothek_wrote_becomes_a_version_first(store):
    write_plain_nyc(store)
    cube = Store(store.root).cube("nyc")
    expected = cube.query().to_arrow(engine="local")
    cube.tag("as-it-was")
    tagged = Store(store.root).cube("nyc", version="as-it-was")
    assert tagged.version == 1
    assert tagged.query().to_arrow(engine="local") == expected


def test_what_another_program_added_is_in_it(store):
    build_table(store, table=number(1))
    append_as_kartothek(store, "plain", number(7))
    table = Store(store.root).table("plain")
    table.tag("both")
    build_table(store, table=number(9))
    run_cleanup(store, PLAIN, NOTHING)
    assert rows(store, "both") == [1, 7]


def test_what_was_changed_since_it_was_opened_is_not_tagged(store):
    build_table(store, table=number(1))
    append_as_kartothek(store, "plain", number(7))
    opened = resolve(store, PLAIN)
    append_as_kartothek(store, "plain", number(8))
    with pytest.raises(CommitConflictError, match="changed since it was opened"):
        tag_state(opened, "both")
    assert version_of(store, PLAIN) == 1


def test_what_nobody_can_tell_is_not_tagged(grown):
    grown.delete([document_key("plain")])
    with pytest.raises(ForeignWriterError):
        tag_version(grown, "plain", "q1")
    assert version_of(grown, PLAIN) == 3


def test_an_interrupt_leaves_no_tag(grown):
    def stop(method, key):
        if "/log/" in key:
            raise KeyboardInterrupt

    before = keys(grown)
    grown.hooks.append(stop)
    with pytest.raises(KeyboardInterrupt):
        tag_version(grown, "plain", "q1", 1)
    grown.hooks.clear()
    assert not resolve(grown, PLAIN).head.tags and keys(grown) - before <= {
        key for key in keys(grown) if "/intent/" in key
    }


def test_history_and_info_show_tags(grown):
    tag_version(grown, "plain", "a", 2)
    tag_version(grown, "plain", "b", 2)
    table = Store(grown.root).table("plain")
    assert {entry["version"]: entry["tags"] for entry in table.history()} == {
        1: [],
        3: [],
        4: [],
        5: [],
        2: ["a", "b"],
    }
    assert table.info()["tags"] == {"a": 2, "b": 2}


def test_command(grown, ktk):
    def said(*arguments, code=0):
        return ktk(*arguments, code=code).output

    assert "plain has no tags" in said("tag", "plain")
    assert "q1 names version 3 of plain." in said("tag", "plain", "q1")
    assert "old names version 1 of plain." in said("tag", "plain", "old", "--version", "1")
    assert "newer names version 3" in said("tag", "plain", "newer", "--version", "q1")
    assert re.search(r"old +1\n", said("tag", "plain"))
    assert json.loads(said("tag", "plain", "--json")) == {"newer": 3, "old": 1, "q1": 3}
    assert "tags: newer (version 3), old (version 1), q1 (version 3)" in said("info", "plain")
    assert re.search(r"\n3 \(newer\) \(q1\) ", said("history", "plain"))
    query = ("query", "plain", "--format", "json", "--version", "old")
    assert json.loads(said(*query).splitlines()[-1]) == {"a": 1}
    assert "tag" in said("history", "plain")
    assert "old no longer names version 1 of plain." in said("tag", "plain", "old", "--delete")
    assert "has no version 'old'" in said(*query, code=1)
    said("tag", "plain", "--delete", code=2)
    said("tag", "plain", "x", "--delete", "--version", "1", code=2)


def test_versions_that_can_be_read(grown, ktk):
    Store(grown.root).table("plain", version=1).tag("old")
    run_cleanup(grown, PLAIN, NOTHING)
    found = json.loads(ktk("versions", "plain", "--json").stdout)
    assert [(entry["version"], entry["tags"]) for entry in found][-1] == (1, ["old"])
    assert 2 not in [entry["version"] for entry in found]
    for entry in found:
        assert rows(grown, entry["version"]) == [1 if entry["version"] == 1 else 3]
    assert re.search(r"\n1 \(old\) ", ktk("versions", "plain").stdout)
