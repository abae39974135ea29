"""Errors of starting and stopping to publish say what is committed."""

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import PublishError, StoreError
from ktk_engine.publish.publish_datasets import follow_setting
from tests.support.changes import check_publishing
from tests.support.committed import snapshot_of
from tests.support.stores import refuse

RECORDS = {"delta": "_delta_log", "iceberg": "iceberg/metadata/"}


@pytest.fixture
def table(store):
    return Store.of(store).write_table("t", pa.table({"x": [1, 2], "s": ["a", "b"]}))


@pytest.mark.parametrize("format_", RECORDS)
def test_what_cannot_be_published_after_its_commit_is_committed(store, table, format_):
    refuse(store, "put_if_absent", RECORDS[format_])
    with pytest.raises(StoreError, match="gave up") as caught:
        table.publish(format_)
    assert caught.value.committed
    assert "is committed and stays so" in caught.value.__notes__[-1]
    assert "Run it again to finish" in caught.value.__notes__[-1]
    assert snapshot_of(store, "t").published_as == {format_}
    with pytest.raises(StoreError) as again:  # nothing is left to commit
        table.publish(format_)
    assert not again.value.committed
    store.hooks.clear()
    table.publish(format_)
    assert [found.problem for found in check_publishing(store, "t")] == [""]


@pytest.mark.parametrize("format_", RECORDS)
def test_what_cannot_be_deleted_after_its_commit_is_committed(store, table, format_):
    table.publish(format_)
    refuse(store, "delete", RECORDS[format_])
    with pytest.raises(StoreError, match="gave up") as caught:
        table.publish(None)
    assert caught.value.committed
    assert snapshot_of(store, "t").published_as == set()
    store.hooks.clear()
    table.publish(None)
    assert store.list_names(f"t/{RECORDS[format_].rstrip('/')}") == []


def test_a_configured_format_that_is_refused_ends_no_other(store):
    times = pa.array([1], pa.time64("us"))
    Store.of(store).write_table("u", pa.table({"x": times}))
    Store.of(store).table("u").publish("iceberg")
    before = Store.of(store).table("u").version
    with pytest.raises(PublishError, match="Delta") as caught:
        follow_setting(store, "u", ("delta",))
    assert not caught.value.committed
    assert Store.of(store).table("u").version == before
    assert snapshot_of(store, "u").published_as == {"iceberg"}


def test_a_configured_change_of_formats_that_fails_halfway_is_committed(store, table):
    table.publish("iceberg")
    refuse(store, "delete", RECORDS["iceberg"])
    with pytest.raises(StoreError) as caught:
        follow_setting(store, "t", ("delta",))
    assert caught.value.committed
