"""`ktk changes` and `ktk diff`: rows on the terminal and in files, counts, and exit codes."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main

BEFORE = pa.table({"k": [1, 2], "v": ["a", "b"]})
AFTER = pa.table({"k": [2, 3], "v": ["B", "c"]})


@pytest.fixture
def changed(store):
    face = Store.of(store)
    face.write_table("t", BEFORE)
    face.write_table("t", AFTER, "overwrite")
    return face


def test_changed_rows_on_the_terminal(changed, ktk):
    result = ktk("changes", "t", "--after", "1", "--key", "k")
    assert result.stdout.splitlines() == [
        "_change_type       k   v",
        "────────────────────────",
        "delete             1   a",
        "update_preimage    2   b",
        "update_postimage   2   B",
        "insert             3   c",
    ]
    assert "version 1 -> 2: 2 files of" in result.stderr
    assert ktk("changes", "t", "--after", "2").stdout == "No row differs.\n"
    assert ktk("changes", "t", "--after", "1", "--where", "k > 9").stdout == "No row differs.\n"


def test_changed_rows_in_files(changed, ktk, tmp_path):
    for name in ("rows.parquet", "rows.csv", "rows.json"):
        result = ktk("changes", "t", "--after", "1", "--output", str(tmp_path / name))
        assert result.stdout == ""
    assert pq.read_table(tmp_path / "rows.parquet")["k"].to_pylist() == [1, 2, 2, 3]
    assert pv.read_csv(tmp_path / "rows.csv").num_rows == 4
    assert len((tmp_path / "rows.json").read_text().splitlines()) == 4


def test_many_changed_rows_are_cut(store, ktk):
    face = Store.of(store)
    face.write_table("t", pa.table({"k": range(100)}))
    face.write_table("t", pa.table({"k": range(200, 300)}), "overwrite")
    result = ktk("changes", "t", "--after", "1")
    assert len(result.stdout.splitlines()) == 52
    assert "Showing the first 50 rows" in result.stderr


def asked(store, *arguments):
    return CliRunner().invoke(main, ["--store", str(store.root), *arguments])


def test_two_versions(changed, store):
    result = asked(store, "diff", "t", "--key", "k")
    assert result.exit_code == 1
    assert "1 row added, 1 row removed, 1 row changed" in result.stdout
    assert "    k=2: b -> B" in result.stdout
    told = json.loads(asked(store, "diff", "t", "--from", "1", "--key", "k", "--json").stdout)
    assert (told["added"], told["removed"], told["changed"]) == (1, 1, 1)
    assert (told["before"]["version"], told["after"]["version"]) == (1, 2)
    shown = asked(store, "diff", "t", "--key", "k", "--markdown").stdout
    assert shown.startswith("### `t version 1 of file://")
    assert "| `v` | `1` | `b → B (k=2)` |" in shown
    assert asked(store, "diff", "t", "--from", "2", "--to", "2").exit_code == 0
    assert asked(store, "diff", "t", "--exit-zero").exit_code == 0
    only = asked(store, "diff", "t", "--columns", "k", "--where", "k = 2")
    assert (only.exit_code, only.stdout.splitlines()[1]) == (0, "  no row differs")


def test_two_schemas_and_two_stores(tmp_path):
    for name, rows in (("prod", BEFORE), ("ci", AFTER)):
        Store(tmp_path / name).write_table("t", rows)
        Store(tmp_path / name).write_table("same", BEFORE)
    ways = [
        ("prod.t", "ci.t", "--store", str(tmp_path)),
        ("prod.t", "ci.t", "--store", str(tmp_path / "ci")),
        (f"{tmp_path}/prod.t", "t", "--store", str(tmp_path / "ci")),
    ]
    for way in ways:
        result = CliRunner().invoke(main, ["diff", *way, "--key", "k"])
        assert result.exit_code == 1, result.output
        assert "1 row added, 1 row removed, 1 row changed" in result.stdout
        assert "prod -> t version 1" in result.stdout
        same = [word.replace(".t", ".same") if word != "t" else "same" for word in way]
        result = CliRunner().invoke(main, ["diff", *same])
        assert (result.exit_code, "no row differs" in result.stdout) == (0, True)


def test_the_first_version_has_none_before_it(store):
    Store.of(store).write_table("t", BEFORE)
    result = asked(store, "diff", "t")
    assert result.exit_code == asked(store, "diff", "t", "--exit-zero").exit_code == 2
    assert "There is no version before 1: give --from." in result.stderr
    assert "Give the older version: --after" in asked(store, "changes", "t").output


def test_a_table_elsewhere_is_named_by_its_store(changed, store, ktk, tmp_path):
    place = f"{store.root}.t"
    assert len(ktk("changes", place, "--after", "1").stdout.splitlines()) == 6
    said = asked(store, "changes", f"{store.root}/t", "--after", "1")
    assert said.exit_code == 1
    assert "the path of the store, a dot and its name" in said.stderr
