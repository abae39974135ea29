"""Arguments of the wrong type are refused in a sentence, not by a traceback."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConditionError, ConfigurationError, KtkError, QueryError


@pytest.mark.parametrize("address", [None, 5, b"store", ["store"]])
def test_an_address_is_text_or_a_path(address):
    with pytest.raises(ConfigurationError, match="must be a path or a URL"):
        Store(address)


@pytest.mark.parametrize("options", ["text", 5, ["key"]])
def test_options_are_a_mapping_and_are_not_shown(tmp_path, options):
    with pytest.raises(ConfigurationError, match="storage_options must be a mapping") as caught:
        Store(tmp_path, options)
    assert str(options) not in str(caught.value)


@pytest.mark.parametrize("layout", ["partition_by", "indexes", "dimension_columns"])
def test_names_of_columns_are_text(tmp_path, layout):
    store, rows = Store(tmp_path), pa.table({"a": [1], "b": [1]})
    for wrong in (5, [5], b"a", object()):
        with pytest.raises(ConfigurationError, match=f"{layout} must be column names, but is"):
            store.build("c", rows, **{"dimension_columns": ["a"], layout: wrong})
    built = store.build("c", rows, dimension_columns="a", partition_by=None, indexes=None)
    assert built.query().count() == 1


@pytest.mark.parametrize("name", [None, 5, b"t", ("t",)])
def test_a_name_is_text(tmp_path, name):
    store = Store(tmp_path)
    for ask in (
        store.table,
        store.cube,
        store.relation,
        store.drop,
        lambda name: store.write_table(name, pa.table({"a": [1]})),
        lambda name: store.build(name, {"s": pa.table({"a": [1]})}, dimension_columns=["a"]),
    ):
        with pytest.raises(KtkError, match="must be text"):
            ask(name)


def test_a_date_is_the_moment_at_which_it_begins(tmp_path):
    table = Store(tmp_path).write_table("t", pa.table({"a": [1]}))
    tomorrow = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1)
    assert table.at(timestamp=tomorrow).version == 1
    assert table.at(timestamp=tomorrow.isoformat()).version == 1
    with pytest.raises(KtkError, match="2001-02-03T00:00:00"):
        table.at(timestamp=dt.date(2001, 2, 3))
    for wrong in (5, 1.5, dt.time(3), b"2026-11-01"):
        with pytest.raises(QueryError, match="is not a date or time"):
            table.at(timestamp=wrong)


@pytest.mark.parametrize("where", ["", "  ", "-- nothing", "/* nothing */"])
def test_an_empty_condition_is_called_empty(tmp_path, where):
    table = Store(tmp_path).write_table("t", pa.table({"a": [1]}))
    for ask in (lambda: table.query(where=where).to_arrow(), lambda: table.delete(where)):
        with pytest.raises(ConditionError, match="it is empty"):
            ask()
    assert table.at().version == 1


@pytest.mark.parametrize("limit", ["x", -1, 1.5])
def test_a_limit_of_history_is_a_number(tmp_path, limit):
    table = Store(tmp_path).write_table("t", pa.table({"a": [1]}))
    with pytest.raises(QueryError, match="limit must be a number of commits"):
        table.history(limit)


@pytest.mark.parametrize("layout", [["a"], "a", 5])
def test_a_layout_is_a_mapping(tmp_path, layout):
    rows = {"seed": pa.table({"a": [1], "b": [1]})}
    with pytest.raises(ConfigurationError, match="partition_on must be a mapping"):
        Store(tmp_path).build("c", rows, dimension_columns=["b"], partition_on=layout)
