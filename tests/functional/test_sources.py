"""Sources outside the profile's store: Kartothek cubes and datasets, plain files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from ktk_engine.cli.main import main as ktk
from tests.functional.relations import rows
from tests.support.dataset_builder import write_plain, write_plain_nyc
from tests.support.documents import document_key
from tests.support.stores import LocalStore

ODD = "an odd [path] 100%20 {x} 'ö`"  # data, in paths and nowhere in SQL
ORDERS = "id,city,amount,day\n1,Köln,0.5,2024-01-31\n2,,1.5,2024-02-01\n3,a/b=c%,NaN,\n"


def source(name: str, *tables: dict, **config) -> dict:
    return {"name": name, "config": config, "tables": list(tables)}


def write_files(folder: Path) -> None:
    """Plain files in every format, some under odd names."""
    raw = folder / ODD
    raw.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "price": [0.5, None]}), raw / "items.parquet")
    for origin in ("EWR", "a b"):
        part = folder / "by_origin" / f"origin={origin}"
        part.mkdir(parents=True)
        pq.write_table(pa.table({"id": [len(origin)]}), part / "part-0.parquet")
    (raw / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (raw / "bare.csv").write_text("1;x\n2;y\n", encoding="utf-8")
    (raw / "events.json").write_text('{"id": 1, "tags": ["a"]}\n{"id": 2}\n', encoding="utf-8")


SOURCES = [
    source("kartothek", {"name": "cube", "config": {"ktk_cube": "nyc"}}, ktk_store="old store"),
    source(
        "datasets",
        {"name": "weather", "config": {"ktk_dataset": "nyc++weather"}},
        {"name": "flights", "config": {"ktk_dataset": "nyc++flights"}},
        {"name": "cube", "identifier": "plain"},  # a name that another source has
        meta={"ktk_store": "old store"},
    ),
    source(
        "files",
        {"name": "items"},
        {
            "name": "orders",
            "config": {"ktk_location": f"{ODD}/{{name}}.csv"},
            "columns": [{"name": "day", "data_type": "date"}, {"name": "city"}],
        },
        {"name": "events", "config": {"ktk_location": f"{ODD}/events.json"}},
        {
            "name": "bare",
            "config": {
                "ktk_location": f"{ODD}/bare.csv",
                "ktk_options": {"header": False, "sep": ";"},
            },
            "columns": [
                {"name": "n", "data_type": "bigint"},
                {"name": "t", "data_type": "string"},
            ],
        },
        {
            "name": "by_origin",
            "config": {"ktk_location": "by_origin", "ktk_format": "parquet"},
        },
        ktk_location=f"{ODD}/{{identifier}}.parquet",
    ),
]
SOURCES[0]["tables"][0]["data_tests"] = ["cube_compatible"]
SOURCES[1]["tables"][0]["data_tests"] = [
    {"cube_orphans": {"arguments": {"at_most": 0, "seed": "source('datasets', 'flights')"}}}
]
SOURCES[2]["tables"][1]["columns"].append({"name": "id", "data_tests": ["unique", "not_null"]})

MODELS = {
    "joined.sql": """{{ config(materialized='table') }}
        with w as (select * from {{ source('datasets', 'weather') }} where gust > 31)
        select c.carrier, c.hour, w.gust, {{ source('files', 'items') }}.price
        from {{ source('kartothek', 'cube') }} c
        join w on w.origin = c.origin and w.hour = c.hour
        join {{ source('files', 'items') }} on items.id = w.hour
        where c.origin in (select 'JFK' from {{ source('files', 'by_origin') }})""",
    "same_name.sql": """{{ config(materialized='table') }}
        select count(*) n from {{ source('kartothek', 'cube') }}
        union all select count(*) from {{ source('datasets', 'cube') }}""",
    "a_view.sql": "select id, city, amount, day from {{ source('files', 'orders') }}",
    "cities.sql": "{{ config(materialized='table') }} select city, day from {{ ref('a_view') }}",
    "asked.sql": "{{ config(materialized='table') }}"
    "{{ cube_query(source('kartothek', 'cube'), dimension_columns=['hour'], where='delay > 11') }}",
    "python.py": """
def model(dbt, session):
    files = dbt.source("files", "events")
    return files.join(dbt.source("datasets", "cube"), "id").select("id", "tags")
""",
    "bare.sql": "{{ config(materialized='table') }}"
    "select sum(n) s, max(t) t from {{ source('files', 'bare') }}",
    "measured.sql": "select id, price * 2 as double_price from {{ source('files', 'items') }}",
}
UNIT_TEST = {
    "unit_tests": [
        {
            "name": "doubles",
            "model": "measured",
            "given": [{"input": "source('files', 'items')", "rows": [{"price": 1.5}]}],
            "expect": {"rows": [{"double_price": 3.0}]},
        }
    ]
}


class Sources:
    @pytest.fixture(scope="class")
    def models(self):
        return {**MODELS, "sources.yml": yaml.safe_dump({"sources": SOURCES, **UNIT_TEST})}

    @pytest.fixture(scope="class", autouse=True)
    def _elsewhere(self, project):
        store = LocalStore(f"{project.project_root}/old store")
        write_plain_nyc(store)
        write_plain(store, "plain", pa.table({"id": [1, 7], "a": ["", "x"]}))
        write_files(Path(project.project_root))


class TestSources(Sources):
    @pytest.fixture(scope="class")
    def built(self, project):
        results = run_dbt(["build"])
        assert {str(r.status) for r in results} == {"success", "pass"}
        return project

    def test_joins_and_subqueries(self, built):
        assert rows(built, "select * from {s}.joined") == [("UA", 2, 32.0, None)]

    def test_sources_of_one_name_do_not_meet(self, built):
        assert sorted(rows(built, "select n from {s}.same_name")) == [(2,), (4,)]

    def test_csv_has_the_declared_types_and_keeps_what_is_there(self, built):
        found = rows(built, "select * from {s}.a_view order by id")
        assert [r[:2] for r in found] == [(1, "Köln"), (2, None), (3, "a/b=c%")]
        assert [str(r[3]) for r in found] == ["2024-01-31", "2024-02-01", "None"]
        assert str(found[2][2]) == "nan"

    def test_a_csv_without_header_is_named_by_its_yaml(self, built):
        assert rows(built, "select s, t from {s}.bare") == [(3, "y")]

    def test_a_cube_is_planned_as_our_own(self, built):
        assert rows(built, "select hour from {s}.asked order by 1") == [(2,), (2,)]
        _, log = run_dbt_and_capture(["run", "--select", "asked"])
        assert "asked reads cube nyc: files 2 -> 2 (flights 2 -> 2; not read: weather; no" in log

    def test_python_models_read_sources(self, built):
        (row,) = rows(built, "select id, tags from {s}.python")
        assert (row[0], list(row[1])) == (1, ["a"])

    def test_a_stored_view_knows_where_its_rows_lie(self, built):
        result = run_dbt(["show", "--inline", "select max(id) from {{ ref('a_view') }}"])
        assert result.results[0].agate_table.rows[0][0] == 3

    def test_show_and_empty(self, built):
        inline = "select * from {{ source('files', 'by_origin') }} order by origin"
        table = run_dbt(["show", "--inline", inline]).results[0].agate_table
        assert [tuple(row) for row in table.rows] == [(3, "EWR"), (3, "a b")]
        run_dbt(["run", "--empty", "--select", "asked", "python"])
        for name in ("asked", "python"):
            assert rows(built, f"select count(*) from {{s}}.{name}") == [(0,)]
        run_dbt(["run", "--select", "asked", "python"])

    def test_a_value_that_does_not_fit_is_no_null(self, built):
        path = Path(built.project_root) / ODD / "orders.csv"
        path.write_text(ORDERS + "4,x,1.0,yesterday\n", encoding="utf-8")
        try:
            results, _ = run_dbt_and_capture(["run", "--select", "cities"], expect_pass=False)
            said = "column day has yesterday, which does not fit date"
            assert said in results.results[0].message
        finally:
            path.write_text(ORDERS, encoding="utf-8")


class TestSample(Sources):
    @pytest.fixture(scope="class")
    def models(self):
        table = {
            "name": "orders",
            "config": {"event_time": "day", "ktk_location": f"{ODD}/orders.csv"},
            "columns": [{"name": "day", "data_type": "timestamp"}],
        }
        return {
            "sampled.sql": "{{ config(materialized='table') }}"
            "select id from {{ source('files', 'orders') }}",
            "sources.yml": yaml.safe_dump({"sources": [source("files", table)]}),
        }

    def test_sample_filters_by_event_time(self, project):
        window = "--sample={'start': '2024-02-01', 'end': '2024-02-02'}"
        run_dbt(["run", window])
        assert rows(project, "select id from {s}.sampled") == [(2,)]


class TestWithoutJava(Sources):
    ARTIFACTS = True

    @pytest.fixture
    def dbt(self, project, without_java):
        environment, marker = without_java

        def run(*arguments, code=0):
            folders = ["--profiles-dir", project.profiles_dir, "--project-dir"]
            done = subprocess.run(
                [sys.executable, "-m", "dbt.cli.main", *arguments, *folders, project.project_root],
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == code, done.stdout + done.stderr
            assert not marker.exists()
            return done.stdout

        return run

    def test_catalog(self, project, dbt):
        dbt("docs", "generate", "--no-compile")
        content = json.loads((Path(project.project_root) / "target" / "catalog.json").read_text())
        found = {
            name.removeprefix("source.test."): {c: v["type"] for c, v in item["columns"].items()}
            for name, item in content["sources"].items()
        }
        assert found["datasets.weather"] == {"origin": "string", "hour": "bigint", "gust": "double"}
        assert found["datasets.cube"] == {"id": "bigint", "a": "string"}
        assert set(found["kartothek.cube"]) == {"carrier", "hour", "origin", "delay", "gust"}
        assert found["files.items"] == {"id": "bigint", "price": "double"}
        assert found["files.by_origin"] == {"id": "bigint", "origin": "string"}
        assert found["files.orders"] == {"day": "date"}
        assert "files.events" not in found
        assert content["sources"]["source.test.kartothek.cube"]["stats"]["files"]["value"] == 4

    def test_freshness(self, project, dbt):
        sources = [dict(item) for item in SOURCES[:2]]
        for item in sources:
            age = {"count": 1, "period": "day"}
            item["config"] = {**item["config"], "freshness": {"error_after": age}}
        path = f"{project.project_root}/models/sources.yml"
        before = Path(path).read_text()
        store = LocalStore(f"{project.project_root}/old store")
        os.utime(store.root / document_key("plain"), (0, 86_400 * 365))
        write_file(
            yaml.safe_dump(
                {
                    "sources": [
                        *sources,
                        SOURCES[2],
                    ]
                }
            ),
            path,
        )
        try:
            dbt("source", "freshness", code=1)
            file = Path(project.project_root) / "target" / "sources.json"
            found = {r["unique_id"]: r for r in json.loads(file.read_text())["results"]}
            assert found["source.test.kartothek.cube"]["status"] == "pass"
            assert found["source.test.datasets.weather"]["status"] == "pass"
            assert found["source.test.datasets.cube"]["status"] == "error"
            assert found["source.test.datasets.cube"]["max_loaded_at"].startswith("1971-01-01")
        finally:
            write_file(before, path)


class TestWrong:
    """A wrong place is an error that names it, and says what to do."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "{{ config(materialized='table') }} select * from {{ source('s', 't') }}"}

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"ktk_location": "no/such.csv"}, "there are no csv files at {root}/no/such.csv"),
            ({"ktk_location": "nothing_*.parquet"}, "{root}/nothing_*.parquet. Correct `ktk_locat"),
            ({"ktk_store": "no such"}, "There is no store at {root}/no such: the folder is"),
            ({"ktk_cube": "nyc"}, "There is no store at {root}/warehouse/s"),
            ({"ktk_store": "old", "ktk_cube": "nyk"}, "the store {root}/old has no cube nyk."),
            ({"ktk_store": "old"}, "s.t: the store {root}/old has no t. It has: nyc++flights, nyc"),
            (
                {"ktk_location": "a.csv"},
                "have no column amount, which is declared in YAML with a data_type. Did you mean "
                "amout? They have: id, amout.",
            ),
        ],
    )
    def test_where_nothing_is(self, project, config, message):
        root = Path(project.project_root)
        (root / "a.csv").write_text("id,amout\n1,2\n")
        write_plain_nyc(LocalStore(f"{root}/old"))
        assert message.replace("{root}", str(root)) in self.run(project, config)

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"ktk_locaton": "x.csv"}, "`ktk_locaton` is unknown. Did you mean `ktk_location`?"),
            ({"ktk_location": "folder"}, "does not tell the format of folder: set `ktk_format`"),
            ({"ktk_location": "x.csv", "ktk_format": "xml"}, "is 'xml'. Known: parquet, csv, json"),
            ({"ktk_location": "{nme}.csv"}, "holds {nme}. Did you mean {name}?"),
            ({"ktk_format": "csv"}, "`ktk_format` needs `ktk_location`"),
            ({"ktk_location": "x.csv", "ktk_store": "y"}, "about a Kartothek store: remove one"),
            ({"ktk_cube": "a", "ktk_dataset": "b"}, "`ktk_dataset` contradicts `ktk_cube`"),
            ({"ktk_cube": 3}, "`ktk_cube` must be text, but is 3"),
            ({"ktk_version": "12"}, "`ktk_version` must be a number as `ktk history` lists"),
            ({"ktk_version": "last year"}, "or a tag, but is 'last year'"),
            ({"ktk_version": 0}, "but is 0"),
            ({"ktk_location": "x.csv", "ktk_options": "a"}, "must be a mapping, but is 'a'"),
        ],
    )
    def test_what_makes_no_sense(self, project, config, message):
        text = self.run(project, config)
        assert f"Source s.t: config `{next(iter(config))[:4]}" in text
        assert message in text

    def run(self, project, config):
        columns = [{"name": "amount", "data_type": "double"}]
        table = {"name": "t", "config": config, "columns": columns}
        content = yaml.safe_dump({"sources": [{"name": "s", "tables": [table]}]})
        write_file(content, f"{project.project_root}/models/sources.yml")
        done = dbtRunner().invoke(["run", "--profiles-dir", str(project.profiles_dir)])
        assert not done.success
        messages = [str(done.exception or "")]
        messages += [str(item.message) for item in getattr(done.result, "results", [])]
        return " ".join(" ".join(messages).split())


class TestWrittenSources:
    """Definitions that `ktk adopt` writes of a store of Kartothek."""

    ARTIFACTS = True

    def test_dbt_reads_them_and_all_their_tests_pass(self, project):
        store = LocalStore("old store")
        write_plain_nyc(store)
        odd = pa.table({"{{ odd }}": [1], "{% a": ["ö"], "a b": [None], "p": ["x"]})
        write_plain(store, "plain+", odd, ("p",))
        words = ["--store", "old store", "adopt", "--all", "--write-sources", "models"]
        said = CliRunner().invoke(ktk, words)
        assert said.exit_code == 0, said.output
        results = run_dbt(["test"])
        assert len(results) == 14 and {result.status for result in results} == {"pass"}
        manifest = json.loads(Path("target/manifest.json").read_text(encoding="utf-8"))
        known = {source["name"]: source for source in manifest["sources"].values()}
        assert known.keys() == {"nyc", "flights", "weather", "plain_"}
        assert set(known["plain_"]["columns"]) == set(odd.column_names)
        assert known["nyc"]["columns"]["hour"]["data_type"] == "int64"
