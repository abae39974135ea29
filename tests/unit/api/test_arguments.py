"""Arguments of Python's verbs that are not what they should be: never another meaning, no crash."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConditionError, ConfigurationError, LocalEngineError, SessionError
from ktk_engine.extras import need  # deep: what a missing package raises

CELLS = pa.table({"origin": ["JFK", "EWR"], "flight": [1, 2], "dest": ["SFO", "LAX"]})


@pytest.fixture
def opened(store):
    return Store(store.root)


@pytest.fixture
def cube(opened):
    return opened.build(
        "trips", CELLS, dimension_columns="flight", partition_by="origin", indexes="dest"
    )


def test_a_text_is_one_name_and_not_its_letters(cube):
    assert cube.specification.dimension_columns == ("flight",)
    assert cube.specification.partition_columns == ("origin",)
    assert cube.specification.index_columns == {"dest"}
    extra = pa.table({"flight": [1, 2], "kind": ["a", "b"], "n": [1, 2]})
    cube = cube.extend({"more": extra}, partition_on={"more": "kind"}, indexes="n")
    more = cube._loaded.snapshots["more"]
    assert (more.partition_keys, list(more.indices)) == (("kind",), ["n"])
    assert cube.delete("flight = 1", "more").query(["n"]).to_arrow()["n"].to_pylist() == [None, 2]
    assert cube.remove_partitions("origin = 'JFK'", "seed").query().count() == 1


def test_none_does_not_delete_all_rows(opened, cube):
    """A variable that happens to be None."""
    table = opened.write_table("fares", CELLS)
    with cube.transaction() as changes, pytest.raises(ConditionError):
        changes.delete(None)
    for relation in (cube, table):
        with pytest.raises(ConditionError, match="a deletion needs a condition"):
            relation.delete(None)
    assert (opened.cube("trips").version, opened.table("fares").rows) == (1, 2)
    assert cube.delete("true").query().count() == 0


@pytest.mark.parametrize("where", [5, ["a = 1"], {"flight": 1}, [("flight", "==", 1)]])
def test_what_is_no_condition_is_refused(opened, cube, where):
    with pytest.raises(ConditionError, match="where must be SQL text"):
        cube.query(where=where).count()
    with pytest.raises(ConditionError, match="where must be SQL text"):
        opened.write_table("fares", CELLS).query(where=where).count()
    with pytest.raises(ConditionError, match="where must be SQL text"):
        cube.delete(where)


def test_a_memory_limit_may_have_a_unit(cube):
    assert cube.query().to_arrow(memory_limit="1GB").num_rows == 2
    with pytest.raises(ConfigurationError, match="'lots' is not a size"):
        cube.query().count(memory_limit="lots")
    with pytest.raises(LocalEngineError, match="more than the limit"):
        cube.query().to_arrow(engine="local", memory_limit="1B")


def test_what_helps_beyond_a_memory_limit_comes_first(cube, monkeypatch):
    def without_spark(*_args):
        need("spark", "Spark", "no_such_package", error=SessionError)

    monkeypatch.setattr("ktk_engine.api.opened_store.OpenedStore._scanner", without_spark)
    with pytest.raises(SessionError) as caught:
        cube.query().to_arrow(memory_limit="1B")
    said = str(caught.value)
    assert said.startswith("The query takes ")
    assert said.index("set a larger memory_limit") < said.index("pip install")


def test_an_age_has_a_unit(opened, cube):
    assert not opened.cleanup("trips", timedelta(0)).objects
    with pytest.raises(ConfigurationError, match="older_than must be a timedelta"):
        opened.cleanup("trips", 7)
