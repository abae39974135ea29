"""Sound documents that are not supported, here or yet: they are called so, and they stay."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import ForeignWriterError, KtkError, UnsupportedFormatError
from ktk_engine.maintain.check import check
from ktk_engine.maintain.remove import plan_removal, remove
from tests.support.changes import DatasetChange, Retention, run_cleanup, undrop
from tests.support.committed import cube_scope, read_snapshot, resolve, scope_of
from tests.support.dataset_builder import (
    NYC,
    append_ours,
    build_nyc,
    build_table,
    commit_change,
    foreign_document,
    weather,
    write_plain,
    write_plain_nyc,
)
from tests.support.documents import (
    ViewDocument,
    document_key,
    parse_view,
    render_document,
    render_view,
)
from tests.support.stores import grow_old, tree

PLAIN, NOTHING = scope_of("plain"), Retention(timedelta(0), 1)
ROWS = pa.table({"a": [1, 2]})
BLAME = re.compile(r"damaged|\.drop\(|backup|drop the dataset|rebuild", re.IGNORECASE)


def edit(store, uuid, change):
    """Rewrite a document without our stamp, as another program does."""
    content = json.loads(store.get(document_key(uuid)))
    content.pop("ktk_commit", None)
    change(content)
    store.put(document_key(uuid), json.dumps(content).encode())


def two_tables(content):
    for label, entry in content["partitions"].items():
        entry["files"]["side"] = f"{content['dataset_uuid']}/side/{label}.parquet"


def elsewhere(content):
    """As a copy of Kartothek's under another name, which goes on naming the original's files."""
    for entry in content["partitions"].values():
        entry["files"] = {"table": entry["files"]["table"].replace("plain", "original")}


UNSUPPORTED = {
    "two tables": (two_tables, "several tables"),
    "version 3": (lambda content: content.update(dataset_metadata_version=3), "version 3"),
    "version 5": (lambda content: content.update(dataset_metadata_version=5), "version 5"),
    "copied": (lambda content: content.update(dataset_uuid="original"), "original"),
    "elsewhere": (elsewhere, "original"),
}


@pytest.fixture(params=UNSUPPORTED)
def kind(request):
    return UNSUPPORTED[request.param]


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
@pytest.mark.parametrize("ours", [False, True], ids=["theirs", "ours"])
def test_an_unsupported_document_is_called_that_and_stays(store, ktk, kind, ours):
    change, reason = kind
    build_table(store) if ours else write_plain(store, "plain", ROWS)
    edit(store, "plain", change)
    grow_old(store)
    before = tree(store.root)
    words = ["query plain", "info plain", "drop plain --yes", "cleanup plain --delete"]
    words += ["cleanup --delete", "check plain", "adopt plain", "stats plain", "drop plain"]
    for command in words:
        if ours and command.split()[0] in ("query", "info", "stats"):
            continue  # the log knows what it has, and says so with a warning
        done = ktk(*command.split(), code=None)
        said = done.output
        assert done.exit_code or command in ("info plain", "cleanup --delete"), command
        assert reason in said and "not supported" in said, (command, said)
        assert not BLAME.search(said), (command, said)
    for way in (lambda: remove(store, "plain"), lambda: Store(store.root).drop("plain")):
        with pytest.raises(UnsupportedFormatError, match="Nothing was removed"):
            way()
    assert tree(store.root) == before
    with pytest.raises(UnsupportedFormatError, match="not supported"):
        append_ours(store)


@pytest.mark.parametrize("document", [b"{", b"[]", b'{"dataset_metadata_version": 4}'])
def test_what_nobody_can_read_stays_unless_the_log_has_it(store, ktk, document):
    write_plain(store, "plain", ROWS)
    store.put(document_key("plain"), document)
    with pytest.raises(ForeignWriterError, match=r"damaged.*Nothing was removed"):
        plan_removal(store, "plain")
    said = ktk("query", "plain", code=1).output
    assert "damaged" in said and ".drop(" not in said
    assert store.get(document_key("plain")) == document


@pytest.mark.parametrize(
    "lost", ["plain/table/_common_metadata", None], ids=["schema", "partition value"]
)
def test_a_dataset_whose_snapshot_cannot_be_made_is_not_removed(store, lost):
    write_plain(store, "plain", pa.table({"p": [1], "a": [1]}), ["p"])
    if lost:
        store.delete([lost])
    else:
        edit(store, "plain", lambda c: c.update(partition_keys=["q"]))
    before = tree(store.root)
    with pytest.raises(KtkError, match="Nothing was removed"):
        remove(store, "plain")
    assert tree(store.root) == before


def test_a_dataset_of_a_cube_keeps_the_others_from_nothing(store):
    write_plain_nyc(store)
    edit(store, "nyc++weather", two_tables)
    before = tree(store.root)
    for words in (("weather",), ("flights",)):
        with pytest.raises(UnsupportedFormatError, match="Nothing was removed"):
            remove(store, "nyc", *words, cascade=True)
    assert tree(store.root) == before


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
def test_undrop_brings_back_what_another_program_wrote_over_ours(store):
    build_table(store)
    fork = foreign_document(store, "plain")
    append_ours(store)
    store.put(document_key("plain"), render_document(fork))
    remove(store, "plain")
    assert resolve(store, scope_of("plain")).datasets == {}
    undrop(store, "plain")
    state = resolve(store, scope_of("plain"))
    assert state.snapshot("plain").labels == list(fork.partitions)
    assert Store(store.root).table("plain", version=2).query().to_arrow(engine="local").num_rows


@pytest.mark.parametrize("version", [5, "5", None])
def test_files_that_an_unknown_document_may_name_are_no_garbage(store, version):
    """A future form may name its files elsewhere, those of another cube among them."""
    build_nyc(store)
    write_plain(store, "other", ROWS)
    edit(
        store,
        "other",
        lambda c: c.update(dataset_metadata_version=version, partitions={}, segments=["?"]),
    )
    left = "nyc++weather/table/of_others.parquet"
    store.put(left, b"")
    grow_old(store)
    run_cleanup(store, cube_scope("nyc"), NOTHING)
    assert store.exists(left)


def test_a_document_with_a_name_of_no_dataset_protects_what_it_names(store):
    build_nyc(store)
    left = "nyc++weather/table/of_others.parquet"
    store.put(left, b"")
    document = {"partitions": {"a": {"files": {"table": left}}}}
    store.put("a b.by-dataset-metadata.json", json.dumps(document).encode())
    grow_old(store)
    run_cleanup(store, cube_scope("nyc"), NOTHING)
    assert store.exists(left)


def with_new_checksum(data, **changes):
    """A document of ours with other values, and the digest that goes with them."""
    document = {**json.loads(data), **changes}
    document.pop("sha256", None)
    body = json.dumps(document, indent=1).encode()
    digest = hashlib.sha256(body).hexdigest().encode()
    return b'{\n "sha256": "' + digest + b'",' + body[1:]


BEFORE = r"format 7, which only versions before the first release wrote"
LATER = r"format 99.*Upgrade"
NEEDS = r"does not know: branches.*Upgrade"
UNKNOWN = [
    ({"format": 7}, BEFORE),
    ({"format": 99}, LATER),
    ({"format": 99, "datasets": 3, "parent": None}, LATER),
    ({"needs": ["branches"]}, NEEDS),
]


@pytest.mark.parametrize(("change", "why"), UNKNOWN)
def test_a_log_entry_of_another_release_is_not_called_damaged(store, ktk, change, why):
    build_table(store)
    append_ours(store)
    key = scope_of("plain").entry_key(2)
    store.put(key, with_new_checksum(store.get(key), **change))
    grow_old(store)
    before = tree(store.root)
    for command in ("query", "info", "check", "history", "cleanup --delete", "drop --yes"):
        name, *options = command.split()
        said = ktk(name, "plain", *options, code=1).output
        assert re.search(why, " ".join(said.split())), (command, said)
        assert not BLAME.search(said), (command, said)
    assert tree(store.root) == before
    with pytest.raises(UnsupportedFormatError, match=why):
        append_ours(store)


@pytest.mark.parametrize(("change", "why"), UNKNOWN)
def test_nor_a_view_or_a_snapshot(store, change, why):
    data = with_new_checksum(render_view(ViewDocument("v", "view", sql="select 1")), **change)
    with pytest.raises(UnsupportedFormatError, match=why):
        parse_view(data, "v.json")
    build_table(store)
    key = resolve(store, PLAIN).datasets["plain"].entry.snapshot
    table = pq.ParquetFile(store.root / key).read()
    document = json.loads(table.schema.metadata[b"ktk"]) | change
    path = store.root / "other.parquet"
    pq.write_table(table.replace_schema_metadata({"ktk": json.dumps(document)}), path)
    with pytest.raises(UnsupportedFormatError, match=why):
        read_snapshot(store, "other.parquet")


@pytest.mark.parametrize("grow", [append_ours, build_table])
def test_what_later_releases_say_is_kept(store, grow):
    build_table(store)
    later = {"branches": {"main": 1}}

    def noted(base, attempt):
        return replace(base, others=later)

    commit_change(store, lambda _: DatasetChange("plain", "properties", noted, frozenset()))
    key, before = PLAIN.entry_key(2), json.loads(store.get(PLAIN.entry_key(2)))
    before["datasets"]["plain"] |= later
    store.put(key, with_new_checksum(store.get(key), datasets=before["datasets"], **later))
    grow(store)
    after = json.loads(store.get(PLAIN.entry_key(3)))
    assert after["branches"] == after["datasets"]["plain"]["branches"] == later["branches"]
    state = resolve(store, PLAIN)
    assert (state.head.others, state.snapshot("plain").others) == (later, later)


def test_what_later_releases_say_of_a_view_is_kept():
    view = ViewDocument("v", "view", sql="select 1", others={"branches": 1})
    assert parse_view(render_view(view), "v.json") == view


def test_one_before_the_newest_neither(store, ktk):
    build_table(store)
    append_ours(store)
    key = scope_of("plain").entry_key(1)
    store.put(key, with_new_checksum(store.get(key), format=99))
    for words in (("history", "plain"), ("check", "plain")):
        said = ktk(*words, code=1).output
        assert "format 99" in said and not BLAME.search(said), said


def test_without_the_checksum_that_we_know_neither(store):
    build_table(store)
    key = scope_of("plain").entry_key(1)
    store.put(key, json.dumps({"format": 99, "signature": "?"}).encode())
    with pytest.raises(UnsupportedFormatError, match=r"format 99.*Upgrade"):
        resolve(store, scope_of("plain"))


def test_a_flipped_bit_in_the_number_is_still_damage(store):
    build_table(store)
    key = scope_of("plain").entry_key(1)
    data = store.get(key)
    flipped = re.sub(rb'"format": \d', b'"format": 9', data)
    assert flipped != data
    store.put(key, flipped)
    with pytest.raises(KtkError, match="damaged") as refused:
        resolve(store, scope_of("plain"))
    assert not isinstance(refused.value, UnsupportedFormatError)


def test_check_calls_nothing_damaged_that_is_sound(store):
    write_plain(store, "nyc++weather", weather(), ("origin",), NYC.metadata("weather"))
    edit(store, "nyc++weather", two_tables)
    (problem,) = check(store, "nyc").problems
    assert "not supported" in problem.reason and not BLAME.search(problem.reason)
