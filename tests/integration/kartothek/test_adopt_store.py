"""A store that Kartothek wrote becomes ours with all that it knew; Kartothek goes on reading."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise, permutations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.catalog.find_scope import find_scope  # deep: finds unadopted datasets
from ktk_engine.cli.main import main
from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    ForeignWriterError,
    UnsupportedFormatError,
)
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from ktk_engine.maintain.adoption.recover_cube import CubeWords
from tests.support.committed import check
from tests.support.kartothek import kartothek, needs_kartothek, read_with_kartothek
from tests.support.old_store import write_old_store

pytestmark = needs_kartothek
CUBES = ("k", "lost", "old")
TABLES = ("emptied", "grown", "packed", "unlisted")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kartothek") / "old"
    write_old_store(folder)
    return folder


@pytest.fixture
def old(store, written):
    shutil.copytree(written, store.root)
    return store


def data_files(store):
    """Name, content's length and age of every file except documents."""
    return {
        path.relative_to(store.root).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in store.root.rglob("*.parquet")
        if ".ktk/" not in path.as_posix()
    }


def rows(store, name):
    found = Store(store.root).relation(name).query().to_arrow(engine="local")
    return sorted(found.to_pylist(), key=repr)


def adopt(store, name, *words):
    return run_adoption(plan_adoption(store, name, *words))


@pytest.mark.parametrize("name", [*CUBES, *TABLES])
def test_all_that_the_footers_say_becomes_version_one(old, name):
    lost = name == "lost"  # nobody can read that before
    before, files = None if lost else repr(rows(old, name)), data_files(old)
    assert adopt(old, name).version == 1
    assert data_files(old) == files
    state = find_scope(old, name)
    for uuid, item in state.datasets.items():
        entry, snapshot = item.entry, state.snapshot(uuid)
        assert item.stamp.version == 1 and not item.foreign
        keys = snapshot.files["key"].to_pylist()
        assert entry.bytes == sum((old.root / key).stat().st_size for key in keys)
        assert entry.rows == sum(pa.parquet.read_metadata(old.root / key).num_rows for key in keys)
        assert not snapshot.files["physical"].null_count
    assert lost or repr(rows(old, name)) == before
    assert check(old, name).problems == ()
    again = plan_adoption(old, name)
    assert again.datasets == () and run_adoption(again).version == 1


@pytest.mark.parametrize("name", CUBES)
def test_kartothek_reads_the_adopted_cube(old, name):
    before = None if name == "lost" else read_with_kartothek(old, name)
    adopt(old, name)
    after = read_with_kartothek(old, name)
    if before is None:
        assert after["seed"] == "cells" and len(after["rows"]) == 3
        return
    for known in (before, after):
        for metadata in known["metadata"].values():
            for key in [k for k in metadata if k == "ktk_base" or "cube_" in k or "klee_" in k]:
                metadata.pop(key)
    assert after == before


def test_bounds_prune_without_a_footer(old):
    adopt(old, "grown")
    snapshot = find_scope(old, "grown").snapshot("grown")
    assert snapshot.file_column("min.v").to_pylist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert snapshot.file_column("nulls.note").to_pylist() == [1, 0] * 3
    table = Store(old.root).table("grown")
    for path in old.root.glob("grown/table/*/*"):
        path.chmod(0)
    assert table.query(["x"], "v > 5").to_arrow(engine="local").num_rows == 0


def test_a_lost_specification_is_found_in_the_other_datasets(old):
    adoption = plan_adoption(old, "lost")
    found = adoption.specification
    assert (found.seed_dataset, found.dimension_columns) == ("cells", ("x", "y"))
    assert (found.partition_columns, found.suppress_index_on) == (("p",), frozenset("y"))
    notes = {item.name: item.notes for item in adoption.datasets}
    assert "no longer said what the cube is" in notes["cells"][0] and notes["more"] == ()


_APPEND = """
cube, _ = discover_cube("old", store)
append_to_cube(pd.DataFrame({"p": [1, 5], "x": [3, 4], "y": ["c", "d"], "i": [9, 1],
                             "v": [7.5, 8.5], "note": ["new", "new"]}), cube, store)
"""


def test_what_kartothek_writes_later_is_taken_over_as_well(old):
    adopt(old, "old")
    kartothek(old, _APPEND)
    adoption = plan_adoption(old, "old")
    (item,) = adoption.datasets
    assert (item.name, item.kept, item.gained, item.lost) == ("cells", 2, 2, ())
    assert item.notes == () and str(item).startswith("cells: 2 files stay, 2 are new, none is lost")
    assert run_adoption(adoption).version == 2
    assert find_scope(old, "old").snapshot("old++cells").rows == 5
    assert {row["x"]: row["v"] for row in rows(old, "old")}[3] == 7.5
    assert check(old, "old").problems == () and plan_adoption(old, "old").datasets == ()
    assert len(read_with_kartothek(old, "old")["rows"]) == 4


@pytest.mark.parametrize("adopted", [False, True])
def test_a_cube_of_kartothek_2_can_be_written(old, adopted):
    """Its documents say what it is under other names."""
    if adopted:
        adopt(old, "old")
    new = {"p": [5], "x": [4], "y": ["d"], "i": [1], "v": [8.5], "note": ["new"]}
    cube = Store(old.root).cube("old").append({"cells": pa.table(new)})
    assert [row["x"] for row in rows(old, "old")] == [1, 2, 3, 4]
    assert sorted(row["x"] for row in read_with_kartothek(old, "old")["rows"]) == [1, 2, 3, 4]
    cube.delete("x = 1")
    assert sorted(row["x"] for row in read_with_kartothek(old, "old")["rows"]) == [2, 3, 4]
    assert check(old, "old").problems == ()


@pytest.mark.parametrize("name", ["alone", "forgot"])
def test_what_nobody_says_has_to_be_said(old, name):
    with pytest.raises(ConsistencyError, match=r"(?s)cells: partitioned by p; .*--dimensions"):
        plan_adoption(old, name)
    words = CubeWords("cells", ("x", "y"))
    adoption = plan_adoption(old, name, words)
    assert adoption.specification.suppress_index_on == {"y"}
    run_adoption(adoption)
    assert read_with_kartothek(old, name)["seed"] == "cells"
    assert len(rows(old, name)) == 3


def test_words_that_contradict_documents_are_refused(old):
    for words, match in (
        (CubeWords("more"), "seed dataset of cube old is cells"),
        (CubeWords("cells", ("x",)), "dimension columns of cube old are x, y"),
        (CubeWords("cell"), "Did you mean"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            plan_adoption(old, "old", words)


def test_what_changes_for_kartotheks_readers_is_said(old):
    def notes(name):
        return " ".join(note for i in plan_adoption(old, name).datasets for note in i.notes)

    assert "msgpack" in notes("packed")
    assert "does not list its files" in notes("unlisted")
    assert "q as true" in notes("k") and "slash in a partition value" in notes("k")
    assert notes("grown") == notes("old") == ""


def test_several_tables_and_missing_files_are_refused(old):
    with pytest.raises(UnsupportedFormatError, match=r"several tables \(core, side\)") as refused:
        plan_adoption(old, "several")
    assert "damaged" not in str(refused.value) and "Nothing was written" in str(refused.value)
    gone = next(old.root.glob("grown/table/p=1/*"))
    gone.unlink()
    with pytest.raises(ForeignWriterError, match="names 1 files that are gone"):
        plan_adoption(old, "grown")


def test_a_first_write_leaves_footers_to_adopt(old):
    """It adopts what it finds by name; the command completes that."""
    table = pa.table({"p": [5], "x": [6], "y": ["z"], "i": [1], "v": [9.5], "note": ["m"]})
    Store(old.root).write_table("grown", table, mode="append")
    before = find_scope(old, "grown").snapshot("grown")
    assert before.rows is None
    assert adopt(old, "grown").version == 2
    after = find_scope(old, "grown").snapshot("grown")
    assert after.rows == 10 and after.labels == before.labels
    assert not pc.any(pc.is_null(after.file_column("max.x"))).as_py()
    assert len(rows(old, "grown")) == 10


def run(store, *words, folder=None):
    arguments = ["--store", str(store.root), "adopt", *map(str, words)]
    return CliRunner().invoke(main, arguments)


def test_a_whole_store(old, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    planned = run(old, "--all", "--dry-run", "--write-sources", models)
    assert not (old.root / ".ktk").exists() and not list(models.iterdir())
    assert planned.exit_code == 1 and "7 cubes and tables would be taken over, 3 not" in (
        planned.output
    )
    said = run(old, "--all", "--write-sources", models)
    assert said.exit_code == 1 and "7 cubes and tables taken over, 3 not" in said.output
    assert "&id" not in (models / "sources.yml").read_text()
    (source,) = yaml.safe_load((models / "sources.yml").read_text())["sources"]
    tables = [table["name"] for table in source["tables"]]
    assert len({*tables}) == len(tables) and {*CUBES, *TABLES} < {*tables}
    assert {"cells", "lost__cells", "old__cells"} < {*tables} and "several" not in tables
    for name in ("alone", "forgot"):
        run(old, name, "--seed", "cells", "--dimensions", "x,y")
    again = json.loads(run(old, "--all", "--json").stdout)
    assert {item["name"]: bool(item["problem"]) for item in again["adopted"]} == {
        **dict.fromkeys((*CUBES, *TABLES, "alone", "forgot"), False),
        "several": True,
    }
    assert not any(item["datasets"] for item in again["adopted"])


def test_sources(old, tmp_path):
    (tmp_path / "dbt_project.yml").touch()
    file = tmp_path / "sources.yml"
    assert run(old, "old", "--write-sources", tmp_path).exit_code == 0
    text = file.read_text()
    (source,) = yaml.safe_load(text)["sources"]
    assert source["config"] == {"ktk_store": "store"}
    cube, cells, more = source["tables"]
    assert cube["name"] == "old" and cube["config"] == {"ktk_cube": "old"}
    assert cube["data_tests"] == ["cube_compatible"]
    is_integer = {"type_class": {"arguments": {"is": "signed integer"}}}
    assert cube["columns"][0] == {
        "name": "x", "data_type": "int64", "data_tests": ["not_null", is_integer]
    }  # fmt: skip
    names = [column["name"] for column in cube["columns"]]
    assert names == ["x", "y", "p", "i", "note", "v", "w"]
    assert [cells["config"], more["config"]] == [
        {"ktk_dataset": "old++cells"}, {"ktk_dataset": "old++more"}
    ]  # fmt: skip

    again = run(old, "old", "--write-sources", tmp_path)
    assert again.exit_code == 0 and "is up to date" in again.output
    file.write_text(text + "# mine\n")
    refused = run(old, "grown", "--write-sources", file)
    assert refused.exit_code == 1 and "-# mine" in refused.output and "--yes" in refused.output
    assert file.read_text().endswith("# mine\n") and find_scope(old, "grown").version == 0
    assert run(old, "grown", "--write-sources", file, "--yes").exit_code == 0
    (table,) = yaml.safe_load(file.read_text())["sources"][0]["tables"]
    assert table["name"] == "grown" and find_scope(old, "grown").version == 1
    assert run(old, "grown", "--write-sources", tmp_path / "nowhere" / "x").exit_code == 1


def test_wrong_words(old):
    for words in ((), ("k", "--all"), ("--all", "--seed", "cells")):
        assert run(old, *words).exit_code == 2


_APPEND_CELL = """
from kartothek.io.eager_cube import append_to_cube
cube, _ = discover_cube("k", store)
x, p = json.loads(sys.argv[2])
cells = pd.DataFrame({"p": [p], "q": [True], "x": [x], "v": ["n"],
                      "day": pd.to_datetime("2020-01-01"), "w": [7.5]})
append_to_cube({"cells": cells, "more": cells[["p", "q", "x"]].assign(u=[x])}, cube, store)
"""
_REMOVE = """
from kartothek.io.eager_cube import remove_partitions
cube, _ = discover_cube("k", store)
remove_partitions(cube, store, C("p") == sys.argv[2])
"""


def test_what_kartothek_changed_is_found(old):
    """Its files and ours, before and after its changes are adopted, by their full rows."""
    adopt(old, "k")
    kartothek(old, _APPEND_CELL, json.dumps([100, "a/b"]))  # a new cell
    kartothek(old, _APPEND_CELL, json.dumps([1, "50%"]))  # and one more
    adopt(old, "k")
    more = pa.table({"p": ["a/b"], "q": [True], "x": [0], "u": [9]})
    Store(old.root).cube("k").append({"more": more})
    kartothek(old, _REMOVE, "größe")
    run_adoption(plan_adoption(old, "k"), force=True)
    kartothek(old, _APPEND_CELL, json.dumps([101, "x=y"]))
    cube = Store(old.root).cube("k")
    states = [cube.at(version) for version in range(1, cube.version + 1)] + [cube]
    found = [
        {
            tuple(row[c] for c in "pqx"): repr(sorted(row.items()))
            for row in state.query().to_arrow().to_pylist()
        }
        for state in states
    ]
    assert len(states) == 5 and all(before != after for before, after in pairwise(found))
    for (old_state, before), (new_state, after) in permutations(zip(states, found, strict=True), 2):
        expected = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        rows = new_state.changes(old_state).to_arrow().to_pylist()
        assert {tuple(row[c] for c in "pqx") for row in rows} == expected
        came = {
            tuple(row[c] for c in "pqx"): repr(sorted(row.items()))
            for row in rows
            if row.pop("_change_type") in ("insert", "update_postimage")
        }
        assert came == {key: after[key] for key in expected & {*after}}
