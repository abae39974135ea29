import pytest

from ktk_engine.errors import StoreError
from ktk_engine.log.intent import read_intents, write_intent
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import resolve
from ktk_engine.publish.publish import publish_head
from tests.support.changes import remove
from tests.support.dataset_builder import (
    NYC,
    airlines,
    airlines_builder,
    build_nyc,
    build_table,
    flights,
    flights_builder,
    weather,
    weather_builder,
)
from tests.support.documents import document_key, list_documents, load_document
from tests.support.stores import fail, keys

CUBE = LogScope("cube", "nyc")


def test_seed_is_published_last(store):
    weather_builder(store).commit_rebuild(weather())
    airlines_builder(store).commit_rebuild(airlines())
    assert list_documents(store) == []
    store.calls.clear()
    flights_builder(store).commit_rebuild(flights())
    order = [key for _, key in store.calls if "by-dataset-metadata" in key]
    assert order == [document_key(f"nyc++{name}") for name in ("airlines", "weather", "flights")]
    for name in ("airlines", "weather", "flights"):
        schema = store.calls.index(("put", f"nyc++{name}/table/_common_metadata"))
        document = store.calls.index(("put_if_absent", document_key(f"nyc++{name}")))
        assert schema < document


def test_enrichment_before_its_seed_gets_the_specification_of_the_seed(store):
    own = {**NYC.metadata("weather"), "ktk_cube_dimension_columns": ["hour"]}
    own |= {"ktk_cube_partition_columns": []}
    weather_builder(store, own).commit_rebuild(weather())
    state = resolve(store, CUBE)
    assert not state.datasets["nyc++weather"].problem
    assert state.snapshot("nyc++weather").rows == 4
    flights_builder(store).commit_rebuild(flights())
    metadata = load_document(store, "nyc++weather").metadata
    expected = NYC.metadata("weather")
    assert {key: metadata[key] for key in expected} == expected


def test_changed_specification_is_published_with_all_datasets(store):
    build_nyc(store)
    builder = flights_builder(store)
    builder.metadata["ktk_cube_suppress_index_on"] = ["hour"]
    builder.commit_rebuild(flights())
    for name in ("airlines", "flights", "weather"):
        document = load_document(store, f"nyc++{name}")
        assert document.metadata["ktk_cube_suppress_index_on"] == ["hour"]
        assert document.stamp.version == 4


def test_unchanged_datasets_are_not_published_again(store):
    build_nyc(store)
    store.calls.clear()
    weather_builder(store).commit_rebuild(weather())
    written = [key for _, key in store.calls if "by-dataset-metadata" in key]
    assert written == [document_key("nyc++weather")]


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("part", ["_common_metadata", "by-dataset-metadata", "/published/"])
def test_failed_publishing_is_a_warning_that_the_next_commit_mends(store, kind, part):
    method = "put" if part != "by-dataset-metadata" else "put_if_absent"
    store.faults.append(fail(kind, method, part))
    done = build_table(store)
    assert done.entry.version == 1
    assert "not published for Kartothek readers yet" in done.warning
    state = resolve(store, LogScope("dataset", "plain"))
    assert not state.datasets["plain"].problem
    assert state.snapshot("plain").rows == 3
    assert build_table(store).warning == ""
    assert load_document(store, "plain").stamp.version == 2


def test_bug_in_publishing_is_a_warning_with_a_traceback(store, monkeypatch, caplog):
    from ktk_engine.publish import publish as module

    def break_down(*arguments):
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(module, "render_common_metadata", break_down)
        done = build_table(store)
    assert "not published for Kartothek readers yet: ZeroDivisionError('a bug')" in done.warning
    assert "break_down" in caplog.text
    assert build_table(store).warning == ""


@pytest.mark.parametrize("part", ["snapshots_except", "forms_of", "drop_forms"])
@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), StoreError("down")])
def test_no_bug_and_no_failure_stops_a_commit_or_a_clean_up(
    store, monkeypatch, caplog, part, error
):
    def break_down(*arguments):
        raise error

    build_table(store)
    with monkeypatch.context() as patch:
        where = {
            "snapshots_except": "ktk_engine.log.state.State.snapshots_except",
            "forms_of": "ktk_engine.publish.published_forms.forms_of",
            "drop_forms": "ktk_engine.publish.publish.drop_forms",
        }
        patch.setattr(where[part], break_down)
        warning = publish_head(store, LogScope("dataset", "plain")).warning
        if part != "snapshots_except":  # which a commit needs before
            assert build_table(store).entry.version == 2
    assert str(error) in warning
    assert str(error) in caplog.text
    assert ("break_down" in caplog.text) == isinstance(error, ZeroDivisionError)
    assert build_table(store).warning == ""
    assert publish_head(store, LogScope("dataset", "plain")).warning == ""


def test_document_never_goes_backwards(store):
    scope = LogScope("dataset", "plain")
    build_table(store)
    old = resolve(store, scope)
    build_table(store)
    newest = store.get(document_key("plain"))

    from ktk_engine.publish.publish import _publish_dataset

    _publish_dataset(old, "plain")  # a slow publisher of version 1
    assert store.get(document_key("plain")) == newest
    assert publish_head(store, scope).warning == ""
    assert store.get(document_key("plain")) == newest


def test_slow_publisher_of_a_removal_brings_a_new_dataset_back(store):
    scope = LogScope("dataset", "plain")
    build_table(store)
    store.faults.append(fail("before", "delete", "by-dataset-metadata"))
    assert remove(store, "plain").warning
    assert resolve(store, scope).unpublished_removals == ("plain",)

    def build_meanwhile(method, key):
        if method == "delete" and "by-dataset-metadata" in key:
            store.hooks.clear()
            build_table(store)

    store.hooks.append(build_meanwhile)
    assert publish_head(store, scope).warning == ""
    state = resolve(store, scope)
    assert state.datasets["plain"].stamp.version == 3
    assert state.snapshot("plain").rows == 3


def test_intent_lives_as_long_as_its_block(store):
    with write_intent(store, CUBE, PendingCommit("c" * 32), "build"):
        assert [intent.commit for intent in read_intents(store, CUBE)] == ["c" * 32]
    assert keys(store) == set()
    store.faults.append(fail("before", "delete", "/intent/"))
    with write_intent(store, CUBE, PendingCommit("c" * 32), "build"):
        pass  # what was committed stays committed
    assert len(read_intents(store, CUBE)) == 1


def test_a_new_document_that_a_slow_publisher_of_a_removal_deletes_comes_back(store):
    """The slow one deletes it, and looks, before the mark of the new one is there."""
    scope = LogScope("dataset", "plain")
    build_table(store)
    store.faults.append(fail("before", "delete", "by-dataset-metadata"))
    remove(store, "plain")

    def publish_removal(method, key):
        if method == "put" and key == scope.published_key("plain"):
            store.hooks.clear()
            store.delete([document_key("plain"), key])

    store.hooks.append(publish_removal)
    build_table(store)
    state = resolve(store, scope)
    assert not state.datasets["plain"].problem
    assert state.datasets["plain"].stamp.version == 3


def as_it_commits(store, change):
    """Let another program change something while an entry is put, so before it is published."""

    def hook(method, key):
        if method == "put_if_absent" and "/log/" in key:
            store.hooks.clear()
            change()

    store.hooks.append(hook)


def test_what_a_commit_leaves_behind_is_published_without_another_look(store, monkeypatch):
    build_nyc(store)
    monkeypatch.delattr("ktk_engine.publish.publish.resolve")
    monkeypatch.delattr("ktk_engine.publish.published_forms.resolve")
    done = weather_builder(store).commit_rebuild(weather())
    assert done.warning == ""
    assert load_document(store, "nyc++weather").stamp.version == done.entry.version


def test_the_state_after_a_commit_is_what_is_resolved(store):
    build_nyc(store)
    done = weather_builder(store).commit_rebuild(weather())
    newest = resolve(store, CUBE)
    assert done.state.head == newest.head and done.state.head_sha256 == newest.head_sha256
    assert done.state.datasets == newest.datasets
    assert done.state.snapshot("nyc++weather").labels == newest.snapshot("nyc++weather").labels


def test_what_another_program_deletes_right_after_a_commit_stays_deleted(store):
    build_table(store)
    as_it_commits(store, lambda: store.delete([document_key("plain")]))
    done = build_table(store)
    assert "another program changed plain" in done.warning
    assert not store.exists(document_key("plain"))
    assert resolve(store, LogScope("dataset", "plain")).datasets["plain"].problem


def test_what_another_program_writes_right_after_a_commit_stays(store):
    build_table(store)
    theirs = store.get(document_key("plain")).replace(b'"ktk_commit"', b'"theirs"')
    as_it_commits(store, lambda: store.put(document_key("plain"), theirs))
    build_table(store)
    assert store.get(document_key("plain")) == theirs


def write_anew(store):
    remove(store, "plain")
    build_table(store)


def damage(store):
    store.put(document_key("plain"), store.get(document_key("plain"))[:-40])


@pytest.mark.parametrize("change", [build_table, write_anew, damage])
def test_what_happens_before_the_document_is_swapped_is_looked_at_again(store, change):
    """Another of our writers commits, or removes and rebuilds; a disk spoils the document."""
    build_table(store)

    def meanwhile(method, key):
        if method == "replace" and key == document_key("plain"):
            store.hooks.clear()
            change(store)

    store.hooks.append(meanwhile)
    done = build_table(store)
    state = resolve(store, LogScope("dataset", "plain"))
    assert state.version >= done.entry.version
    assert done.warning == "" and not state.datasets["plain"].problem
    assert load_document(store, "plain").stamp.version == state.version
    assert done.state.datasets == state.datasets
