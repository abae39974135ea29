"""What messages of the command and of Python say to do, done literally."""

from __future__ import annotations

import re
import shlex

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConditionError, DataError
from tests.support.dataset_builder import build_nyc


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        (pa.array([1, None]), [1, -1]),
        (pa.array([1, None], pa.uint8()), [1, 0]),
        (pa.array(["x", None]), ["x", "unknown"]),
        (pa.array([1.5, None]), None),
    ],
)
def test_a_null_in_a_key(tmp_path, values, filled):
    """The value that is proposed is of the column's class; where none is usual, none is."""
    store, table = Store(tmp_path / "s"), pa.table({"k": values, "v": [1, 2]})
    with pytest.raises(DataError) as error:
        store.build("c", table, dimension_columns=["k"])
    found = re.search(r"give them a value: (pc\.fill_null\(.*?\))\.", str(error.value))
    if filled is None:
        assert found is None
        assert "Filter these rows, or give them a value." in str(error.value)
        return
    fixed = eval(found[1], {"pc": pc, "table": table})
    store.build("c", table.set_column(0, "k", fixed), dimension_columns=["k"])
    assert sorted(store.cube("c").query(["k"]).to_arrow()["k"].to_pylist()) == sorted(filled)


def test_text_without_quotes(tmp_path):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"sensor": ["a", "b"]}))
    with pytest.raises(ConditionError, match=r"if it is text, it needs quotes: ('a')") as error:
        store.table("t").query(where="sensor = a")
    text = re.search("quotes: ('a')", str(error.value))[1]
    assert store.table("t").query(where=f"sensor = {text}").count() == 1


def test_a_column_of_another_name_is_not_proposed(tmp_path):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"amount": [1]}))
    with pytest.raises(ConditionError) as error:
        store.table("t").query(where="country = 'DE'")
    assert str(error.value) == "Unknown column `country` in the condition"


def test_where_as_an_option(store, ktk):
    build_nyc(store)
    question = ("query", "nyc", "--columns", "hour,gust", "--format", "csv")
    assert ktk(*question, "--where", "gust > 30").stdout == ktk(*question, "gust > 30").stdout
    assert "Give one condition" in ktk(*question, "x", "--where", "y", code=2).stderr


def test_a_dataset_of_a_cube_by_its_full_name(store, ktk):
    build_nyc(store)
    said = ktk("query", "nyc++weather", code=1).stderr
    cube = re.search("Name the cube to query it, (\\w+), and both, (.*), where", said)
    assert ktk("query", cube[1]).stdout
    ktk("drop", *cube[2].split(), "--yes")
    assert "weather" not in Store(store.root).cube("nyc").datasets


def test_each_dropped_dataset_comes_back(store, ktk):
    build_nyc(store)
    before = ktk("query", "nyc", "--format", "csv").stdout
    said = ktk("drop", "nyc", "--cascade", "--yes").stdout
    commands = [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("  ktk ")]
    assert len(commands) > 1
    for command in commands:
        ktk(*command)
    assert ktk("query", "nyc", "--format", "csv").stdout == before


def test_a_cleanup_says_what_it_deleted(store, ktk):
    for _ in range(3):
        Store(store.root).write_table("t", pa.table({"a": [1]}))
    everything = ("cleanup", "--older-than", "0d", "--keep-versions", "1")
    assert "Nothing was deleted. To delete, add --delete." in ktk(*everything).stdout
    assert re.search(r"Deleted \d+ files, [\d.]+ kB\.", ktk(*everything, "--delete").stdout)
    assert "There was nothing to delete." in ktk(*everything, "--delete").stdout
