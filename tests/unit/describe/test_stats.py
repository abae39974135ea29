"""Sizes of datasets, of files of ours and of Kartothek's."""

from __future__ import annotations

import json
import re
import shutil

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.describe.stats import DatasetStats
from ktk_engine.errors import DatasetNotFoundError
from tests.support.dataset_builder import (
    DbtNode,
    build_nyc,
    build_table,
    flights,
    flights_builder,
    write_plain,
    write_plain_nyc,
)

AWKWARD = ["a/b", "50%", "x=y", "größe", " "]


def sizes(store, uuid):
    return sum(info.size for info in store.list(uuid + "/table/") if info.key.endswith(".parquet"))


@pytest.mark.parametrize("write", [build_nyc, write_plain_nyc], ids=["ours", "kartothek"])
def test_each_dataset_has_its_size(store, write):
    write(store)
    cube = Store(store.root).cube("nyc")
    found = cube.stats()
    assert list(found) == cube.datasets
    assert found["flights"] == DatasetStats(4, 2, sizes(store, "nyc++flights"), 2)
    assert found["weather"] == DatasetStats(4, 2, sizes(store, "nyc++weather"), 2)
    assert list(cube.stats("weather")) == ["weather"]
    assert list(cube.stats(["weather", "flights"])) == ["weather", "flights"]
    with pytest.raises(DatasetNotFoundError, match="no dataset wether"):
        cube.stats(["wether"])


def test_no_data_file_of_ours_is_opened(store):
    build_nyc(store)
    shutil.rmtree(store.root / "nyc++flights" / "table")
    cube = Store(store.root).cube("nyc")
    assert cube.stats()["flights"].rows == 4


def test_an_earlier_version_has_its_own(store):
    build_nyc(store)
    builder = flights_builder(store)
    builder.commit_append(flights(("JFK",), 50))
    cube = Store(store.root).cube("nyc")
    newest, older = cube.stats()["flights"], cube.at(3).stats()["flights"]
    assert (newest.rows, newest.files, newest.partitions) == (6, 3, 2)
    assert (older.rows, older.files, older.partitions) == (4, 2, 2)


@pytest.mark.parametrize("ours", [True, False])
def test_partitions_of_awkward_values(store, ours):
    rows = pa.table({"p": AWKWARD, "q": [True, False] * 2 + [True], "v": range(5)})
    if ours:
        build = DbtNode(store, "t", ("p", "q"))
        build.commit_rebuild(rows)
    else:
        write_plain(store, "t", rows, ("p", "q"))
    found = Store(store.root).table("t").stats()
    assert found == DatasetStats(5, 5, sizes(store, "t"), 5)


def test_an_empty_dataset(store):
    build_table(store, table=pa.table({"a": pa.array([], pa.int64())}).slice(0, 0))
    found = Store(store.root).table("plain").stats()
    assert found.rows == 0


def test_command_shows_a_total(store, ktk):
    build_nyc(store)
    text = ktk("stats", "nyc").stdout
    assert re.search(r"flights +4 +2 +[\d.]+ \w+ +2\n", text)
    assert re.search(r"total +10 +5 +[\d.]+ \w+ +5\n", text)
    found = json.loads(ktk("stats", "nyc", "--json", "--version", "2").stdout)
    assert sorted(found["datasets"]) == ["flights", "weather"]
    assert found["total"]["rows"] == 8 and found["version"] == 2


def test_command_takes_patterns(store, ktk):
    build_nyc(store)

    def chosen(*arguments):
        return list(json.loads(ktk("stats", "nyc", "--json", *arguments).stdout)["datasets"])

    assert chosen("--include", "*l*") == ["airlines", "flights"]
    assert chosen("--include", "fl*, weather", "--exclude", "w*") == ["flights"]
    assert chosen("--exclude", "[fw]*") == ["airlines"]
    assert "matches 'x*'" in ktk("stats", "nyc", "--include", "f*,x*", code=1).stderr
    assert "matches 'x*'" in ktk("stats", "nyc", "--exclude", "x*", code=1).stderr
    assert "leave no dataset" in ktk("stats", "nyc", "--exclude", "*", code=1).stderr


def test_history_and_info_are_what_the_commands_give(store, ktk):
    build_nyc(store)
    build_table(store)
    for name, opened in (
        ("nyc", Store(store.root).cube("nyc")),
        ("plain", Store(store.root).table("plain")),
    ):
        assert json.loads(ktk("info", name, "--json").stdout) == json.loads(
            json.dumps(opened.info())
        )
        assert json.loads(ktk("history", name, "--json").stdout) == opened.history()
    cube = Store(store.root).cube("nyc")
    assert [entry["version"] for entry in cube.history(2)] == [3, 2]
    assert [item["id"] for item in cube.at(1).info()["datasets"]] == ["flights"]
    assert cube.at(1).info()["version"] == 1
