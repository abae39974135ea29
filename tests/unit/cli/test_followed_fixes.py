"""What messages of the command and of Python say to do, done literally."""

from __future__ import annotations

import datetime as dt
import re
import shlex

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    ConditionError,
    ConfigurationError,
    DataError,
    DatasetNotFoundError,
    TypeClassError,
)
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


@pytest.mark.parametrize(
    "rows",
    [{"k": [2], "v": [2], "more": [1]}, {"k": [2]}],
)
def test_a_column_comes_to_a_dataset_of_a_cube_or_leaves_it(tmp_path, rows):
    """In a cube, `alter` needs the dataset's id, and the fix names it."""
    store, table = Store(tmp_path / "s"), pa.table(rows)
    cube = store.build("c", {"s": pa.table({"k": [1], "v": [1]})}, seed="s", dimension_columns="k")
    with pytest.raises(TypeClassError) as error:
        cube.append({"s": table})
    fix = re.search(r"first: (\.alter\(.*?\)+) +\|", str(error.value))[1]
    cube = eval(f"cube{fix}", {"cube": cube, "pa": pa})
    assert cube.append({"s": table}).query().count() == 2


@pytest.mark.parametrize(
    ("where", "fixed"),
    [
        ("day = 2024-05-01", "day = '2024-05-01'"),
        ("day in (2024-5-1, 2020-01-01)", "day in ('2024-05-01', 2020-01-01)"),
        ("v = None", "v is null"),
        ("v <> None", "v is null"),
        ("s = None", "s is null"),
    ],
)
def test_a_literal_of_python(tmp_path, where, fixed):
    """A date without quotes would be a subtraction, and None a column."""
    store = Store(tmp_path / "s")
    days = pa.array([dt.date(2024, 5, 1), None])
    table = store.write_table("t", pa.table({"day": days, "v": [None, 1], "s": [None, "a"]}))
    with pytest.raises(ConditionError) as error:
        table.query(where=where)
    wanted = re.search(r"'2024-05-01'|is null", fixed)[0]
    assert wanted in re.search(r"; (.*)", str(error.value))[1]
    if "in (" not in where:
        assert table.query(where=fixed).count() == 1


def test_a_seed_dataset_of_another_name(tmp_path):
    store, rows = Store(tmp_path / "s"), {"a": pa.table({"k": [1]})}
    with pytest.raises(ConfigurationError) as error:
        store.build("c", rows, dimension_columns=["k"])
    named = re.search(r"seed='a'", str(error.value))[0]
    assert eval(f"store.build('c', rows, dimension_columns=['k'], {named})").datasets == ["a"]


def test_a_store_above_the_schemas(tmp_path):
    """In a dbt project, the stores are the folders of the schemas."""
    for schema in ("analytics", "raw"):
        Store(tmp_path / schema).write_table(f"t_{schema}", pa.table({"a": [1]}))
    with pytest.raises(DatasetNotFoundError) as error:
        Store(tmp_path).table("t_raw")
    *_, path = re.search(r"open (\S+) or (\S+)\.$", str(error.value)).groups()
    assert Store(path).table("t_raw").rows == 1


def test_a_dataset_of_several_cubes(store, ktk):
    for cube in ("b", "a"):
        rows = {"s": pa.table({"k": [1]})}
        Store(store.root).build(cube, rows, seed="s", dimension_columns="k")
    said = ktk("query", "s", code=1).stderr
    for cube in re.search(r"the cube's name, (\w+) or (\w+)\.", said).groups():
        assert ktk("query", cube).stdout


def test_rows_that_cannot_change_a_class_break_no_enrichment(tmp_path):
    """Who appends is not told to drop datasets: the class stays in any case."""
    store = Store(tmp_path / "s")
    rows = {"s": pa.table({"k": [1]}), "e": pa.table({"k": [1], "v": [1]})}
    cube = store.build("c", rows, seed="s", dimension_columns="k")
    with pytest.raises(TypeClassError) as error:
        cube.append({"s": pa.table({"k": ["2"]})})
    assert "Cube.drop" not in str(error.value)
