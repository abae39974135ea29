import json
import re

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main
from ktk_engine.maintain.publish_documents import publish_documents  # deep: asks for none
from tests.support.changes import WriteRequest, build, comment_on
from tests.support.dataset_builder import build_nyc, build_table, flights, write_plain_nyc
from tests.support.documents import (
    Comments,
    ViewDocument,
    add_view,
    document_key,
)
from tests.support.stores import LocalStore, keys
from tests.support.tiny_bounds import tiny_bounds


def test_info(store, ktk):
    build_nyc(store)
    result = ktk("info", "nyc")
    assert "store file://" in result.stderr
    text = result.stdout
    assert "cube nyc, version 3" in text
    assert "dimensions: carrier, hour" in text
    assert re.search(r"flights +seed +carrier, hour +2 by origin +carrier, hour +4 +2 ", text)
    assert "delay signed integer" in text
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_info_shows_comments(store, ktk):
    build_nyc(store)
    comment_on(store, "nyc++flights", Comments("All\n flights [bold]", {"delay": "in minutes"}))
    view = ViewDocument("all_of_nyc", "cube", cube="nyc", comments=Comments("Joined"))
    add_view(store, view)
    text = ktk("info", "nyc").stdout
    assert "\nall_of_nyc: Joined\n" in text
    assert "\nflights: All flights [bold]\nflights.delay: in minutes\n" in text
    content = json.loads(ktk("info", "nyc", "--json").stdout)
    assert content["comments"] == {"all_of_nyc": "Joined"}
    assert content["datasets"][0]["comment"] == "All\n flights [bold]"
    assert content["datasets"][0]["column_comments"] == {"delay": "in minutes"}


def test_info_shows_large_indexes_and_documents(store, ktk):
    with tiny_bounds():
        build_nyc(store)
        for _ in range(2):
            Store.of(store).cube("nyc").update({"flights": flights()})
    text = ktk("info", "nyc", "--indexes").stdout
    said = "flights: index on hour: 8 pairs in 2 segments, 50% of them of files that are gone"
    assert said in text
    assert "documents" not in text
    publish_documents(store, "nyc", wanted=False)
    assert "no documents for Kartothek, as set" in ktk("info", "nyc").stdout


def test_info_as_json(store, ktk):
    build_nyc(store)
    result = ktk("info", "nyc", "--json")
    assert result.stderr == ""
    content = json.loads(result.stdout)
    assert content["specification"]["dimension_columns"] == ["carrier", "hour"]
    assert [item["rows"] for item in content["datasets"]] == [4, 2, 4]
    assert json.loads(ktk("info", "--json").stdout)[0]["name"] == "nyc"


def test_info_of_everything(store, ktk):
    store.root.mkdir()
    assert "empty" in ktk("info").stdout
    build_nyc(store)
    build_table(store)
    text = ktk("info").stdout
    assert re.search(r"nyc +cube +.* UTC +3 +3 +4 +5 ", text)
    assert re.search(r"plain +table", text)


def test_info_of_what_kartothek_wrote(store, ktk):
    write_plain_nyc(store)
    assert re.search(r"flights .* \? +2 ", ktk("info", "nyc").stdout)
    assert re.search(r"flights .* 4 +2 ", ktk("info", "nyc", "--rows").stdout)


def test_error_is_one_clean_message(store, ktk):
    build_nyc(store)
    result = ktk("info", "nyk", code=1)
    assert result.stderr.splitlines()[1].startswith("Error: ")
    assert "Did you mean nyc?" in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_problem_is_shown(store, ktk):
    build_nyc(store)
    store.delete([document_key("nyc++weather")])
    for arguments in (["info"], ["info", "nyc"]):
        assert "was removed by another program" in ktk(*arguments).stdout


def test_history(store, ktk):
    build_nyc(store)
    text = ktk("history", "nyc", "--limit", "2").stdout
    assert re.search(r"3 +.* UTC +rebuild airlines +\+2 +\+1", text)
    assert "flights" not in text
    assert [e["version"] for e in json.loads(ktk("history", "nyc", "--json").stdout)] == [3, 2, 1]


def test_history_of_what_kartothek_wrote(store, ktk):
    write_plain_nyc(store)
    assert "no history yet" in ktk("history", "nyc").stdout


def test_remove(store, ktk):
    build_nyc(store)
    assert "Aborted" in ktk("drop", "nyc", "weather", input="n\n", code=1).output
    assert "Dropped weather of cube nyc" in ktk("drop", "nyc", "weather", input="y\n").stdout
    assert "depend on" in ktk("drop", "nyc", "flights", "--yes", code=1).stderr
    ktk("drop", "nyc", "flights", "--cascade", "--yes")
    assert "empty" in ktk("info").stdout
    assert "remove flights" in ktk("history", "nyc").stdout


def test_cleanup(store, ktk):
    build_table(store)
    build_table(store)
    keep = ["cleanup", "--older-than", "0d", "--keep-versions", "1"]
    assert re.search(r"plain +2 of 2 +0 ", ktk("cleanup").stdout)
    assert re.search(r"plain +1 of 2 +2 ", ktk(*keep).stdout)
    assert "Nothing was deleted" in ktk(*keep, "plain").stdout
    assert re.search(r"plain +1 of 2 +2 ", ktk(*keep, "--delete").stdout)
    assert re.search(r"plain +1 of 3 +0 ", ktk(*keep).stdout)
    assert "is not an age" in ktk("cleanup", "--older-than", "soon", code=2).stderr


def test_one_troubled_table_does_not_stop_the_cleanup(store, ktk):
    for name in ("a", "b"):
        build_table(store, name)
    store.delete([document_key("a")])
    result = ktk("cleanup", code=1)
    assert "Error: a: Dataset a" in result.stderr
    assert re.search(r"b +1 of 1", result.stdout)


def test_explain(store, ktk):
    build_nyc(store)
    text = ktk("explain", "nyc", "origin = 'JFK'", "--columns", "delay, gust").stdout
    assert "files 2 -> 1 (partitions 1" in text
    assert "not read: airlines" in text
    content = json.loads(ktk("explain", "nyc", "gust > 1", "--json").stdout)
    assert content["cube"] == "nyc"
    assert "did you mean" in ktk("explain", "nyc", "--columns", "dely", code=1).stderr
    build_table(store)
    assert "table plain, version 1" in ktk("explain", "plain").stdout


def test_version_and_help():
    assert CliRunner().invoke(main, ["--version"]).output.startswith("ktk, version ")
    text = CliRunner().invoke(main, ["--help"]).output
    for command in ("info", "history", "drop", "cleanup", "explain", "compact"):
        assert command in text


def test_a_folder_that_does_not_exist_is_not_empty(tmp_path):
    for command in (["info"], ["info", "nyc"], ["cleanup"], ["history", "nyc"]):
        result = CliRunner().invoke(main, ["--store", str(tmp_path / "nowhere"), *command])
        assert result.exit_code == 1
        assert f"The store's folder {tmp_path}/nowhere does not exist" in result.stderr
        assert "empty" not in result.output
    (tmp_path / "there").mkdir()
    result = CliRunner().invoke(main, ["--store", str(tmp_path / "there"), "info"])
    assert "The store is empty." in result.stdout


def test_cleanup_as_json(store, ktk):
    build_nyc(store)
    build_table(store)
    build_table(store)
    result = ktk("cleanup", "--json")
    assert result.stderr == ""
    content = json.loads(result.stdout)
    assert content["deleted"] is False
    assert [item["name"] for item in content["scopes"]] == ["nyc", "plain"]
    assert content["scopes"][1] == {
        "name": "plain",
        "versions": 2,
        "kept_versions": 2,
        "files": 0,
        "unfinished": 0,
        "dead_writers": 0,
        "bytes": 0,
        "problem": "",
    }
    assert content["unfinished"] == 0
    content = json.loads(ktk("cleanup", "plain", "--delete", "--json").stdout)
    assert (content["deleted"], len(content["scopes"])) == (True, 1)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_tables_break_no_words_on_a_narrow_terminal(store, ktk, columns):
    build_nyc(store)
    for command in (["info"], ["info", "nyc"], ["history", "nyc"], ["explain", "nyc"], ["cleanup"]):
        terminal = {"COLUMNS": str(columns), "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1"}
        found = re.sub(r"\x1b\[[0-9;]*m", "", ktk(*command, env=terminal).stdout)
        wide = ktk(*command).stdout
        words = {word.rstrip(":") for word in found.split()} - {"─" * n for n in range(200)}
        assert words <= {word.rstrip(":") for word in wide.split()}, found


@pytest.mark.filterwarnings("default::ktk_engine.errors.ForeignWriterWarning")
def test_what_another_program_did_is_one_line(store, ktk):
    build_nyc(store)
    store.delete([document_key("nyc++weather")])
    said = ktk("explain", "nyc").stderr.splitlines()
    found = [line for line in said if "removed by another program" in line]
    assert len(found) == 1 and found[0].startswith("Warning: Dataset nyc++weather"), said


def test_a_shell_can_complete_commands_and_options():
    def complete(words):
        environment = {
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "_KTK_COMPLETE": "bash_complete",
        }
        result = CliRunner().invoke(main, prog_name="ktk", env=environment)
        return {line.partition(",")[2] for line in result.output.splitlines()}

    assert complete("ktk i") == {"index", "info"}
    assert "--keep-versions" in complete("ktk cleanup --")


def test_delete(store, ktk):
    build_nyc(store)
    before = keys(store)
    where = "origin = 'JFK' and hour = 1"
    said = ktk("delete", "nyc", where, "--dry-run").stdout
    assert "Would delete 1 row of flights (1 file), 1 row of weather (1 file)." in said
    assert keys(store) == before
    assert "Aborted" in ktk("delete", "nyc", where, code=1, input="n\n").output
    assert keys(store) == before
    said = ktk("delete", "nyc", where, "--dataset", "weather", "--yes").stdout
    assert "Deleted 1 row of weather (1 file). Now version 4" in said
    assert "No row fulfils it." in ktk("delete", "nyc", where, "--dataset", "weather").stdout
    assert "Deleted 1 row of flights" in ktk("delete", "nyc", where, input="y\n").stdout
    assert json.loads(ktk("history", "nyc", "--limit", "1", "--json").stdout)[0]["history"] == {
        "command": "ktk delete",
        "reason": where,
    }
    assert "`x`" in ktk("delete", "nyc", "x = 1", code=1).output
    build_table(store)
    assert "3 rows of plain" in ktk("delete", "plain", "a is not null", "--dry-run").stdout


def test_set_properties(store, ktk):
    build_nyc(store)
    assert (
        "Set properties of nyc++flights" in ktk("set-properties", "nyc", "owner=ops", "n=1").stdout
    )
    assert "owner=ops" in ktk("info", "nyc").stdout
    said = ktk("set-properties", "nyc", "--dataset", "weather", "owner=ops").stdout
    assert "Set properties of nyc++weather" in said
    ktk("set-properties", "nyc", "--unset", "owner")
    noted = {
        d["id"]: d["metadata"] for d in json.loads(ktk("info", "nyc", "--json").stdout)["datasets"]
    }
    assert noted["flights"] == {"n": 1} and noted["weather"] == {"owner": "ops"}
    assert "already has these properties" in ktk("set-properties", "nyc", "n=1").stdout
    ktk("set-properties", "nyc", code=2)
    ktk("set-properties", "nyc", "owner", code=2)
    assert "no property" in ktk("set-properties", "nyc", "--unset", "x", code=1).output


def test_a_dry_removal_removes_nothing(store, ktk):
    build_nyc(store)
    before = keys(store)
    said = ktk("drop", "nyc", "weather", "--dry-run").stdout
    assert "Would drop weather of cube nyc. Nothing was changed." in said
    assert keys(store) == before


def test_help_has_whole_lines(ktk):
    lines = ktk("--help").stdout.partition("Commands:")[2].strip().splitlines()
    assert len(lines) == 25
    assert [line for line in lines if line.endswith("...") or not line.endswith(".")] == []


def test_check_of_everything(store, ktk, tmp_path):
    build_nyc(store)
    build(store, pa.table({"n": [1]}), WriteRequest("t"))
    said = ktk("check").stdout
    assert "nyc, version 3: 3 datasets" in said
    assert "t, version 1: 1 dataset" in said
    told = json.loads(ktk("check", "--json").stdout)
    assert [(item["name"], item["problems"], item["store"]) for item in told] == [
        ("nyc", [], store.url),
        ("t", [], store.url),
    ]
    file = next(store.root.glob("t/table/**/*.parquet"))
    file.write_bytes(b"")
    found = ktk("check", code=1).stdout
    assert "nyc, version 3: 3 datasets" in found
    assert "1 problem" in found


def test_check_of_all_schemas(store, tmp_path):
    for name in ("one", "two"):
        build(LocalStore(tmp_path / "wh" / name), pa.table({"n": [1]}), WriteRequest(f"t_{name}"))
    result = CliRunner().invoke(main, ["--store", str(tmp_path / "wh"), "check"])
    assert "t_one, version 1" in result.stdout
    assert "t_two, version 1" in result.stdout
    assert result.exit_code == 0
    head = next((tmp_path / "wh" / "two").glob(".ktk/**/*1.json"))
    head.write_text("{")
    result = CliRunner().invoke(main, ["--store", str(tmp_path / "wh"), "check"])
    assert "t_one, version 1: 1 dataset, 1 data file and 0 index files checked; no problems." in (
        result.stdout
    )
    assert "t_two" in result.stdout
    assert result.exit_code == 1


def test_check_of_nothing(store, ktk):
    store.put(".ktk/store.json", b"{}")
    assert (
        f"no cube and no table in {store.url}: nothing was checked" in ktk("check", code=1).stderr
    )
    assert "There is no cube and no table in this store." in ktk("cleanup").stdout
