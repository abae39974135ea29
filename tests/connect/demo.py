"""`make demo-connect`: dbt builds the sample project over Spark Connect, into a store on S3.

The server is Spark's own, and so is the Python of its tasks, which knows nothing of this project;
the client has neither classic PySpark nor Java. Both, and the S3 server (moto), are processes of
this machine. The answers are compared with those that pandas computes from the raw data.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd
import yaml

from ktk_engine import Store
from tests.connect.dbt_client import DBT, check_client, environment, size_of_client, started_java
from tests.functional import sample_answers
from tests.servers.connect import ConnectServer
from tests.servers.s3 import S3Server, start_s3

SAMPLE = Path(__file__).resolve().parents[2] / "sample_project"
_LEFT = ("warehouse", "target", "logs", "profiles.yml")
_MOST_MB = 400
_ANSWERS = (
    *("late_in_gusts", "delay_by_plane_age", "busiest_routes", "delays_by_month", "route_speeds"),
)


def main() -> None:
    """Start everything, let dbt build, compare, and end everything."""
    check_client()
    print(f"The client's environment takes {size_of_client()} MB.")
    assert size_of_client() < _MOST_MB
    with tempfile.TemporaryDirectory(prefix="ktk-demo-") as name:
        folder = Path(name)
        project = folder / "project"
        shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns(*_LEFT))
        s3, stop = start_s3()
        try:
            with ConnectServer(folder / "server") as server:
                url = s3.new_url()
                _write_profile(project, url, s3, server)
                for command in ("debug", "build"):
                    _dbt(folder, project, command)
            _check_results(project)
            _compare(f"{url}/analytics", s3)
            assert not started_java(folder), "something called Java"
        finally:
            stop()
    print("The answers are those of the raw data.")


def _write_profile(project: Path, url: str, s3: S3Server, server: ConnectServer) -> None:
    target = {
        "type": "ktk",
        "method": "connect",
        "remote": server.url,
        "schema": "analytics",
        "store": url,
        "storage_options": s3.options,
        "threads": 2,
    }
    profiles = {"sample": {"target": "connect", "outputs": {"connect": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))


def _dbt(folder: Path, project: Path, command: str) -> None:
    # Its modules are compiled again each time: compiled ones would count as a part of it.
    env = {**environment(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([DBT, command], cwd=project, env=env, check=True)


def _check_results(project: Path) -> None:
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    counted = Counter(result["status"] for result in results)
    print(f"{len(results)} nodes: {dict(counted)}")
    assert set(counted) <= {"success", "pass"}, counted


def _compare(url: str, s3: S3Server) -> None:
    store = Store(url, storage_options=s3.options)
    for name in _ANSWERS:
        wanted = getattr(sample_answers, name)()
        keys = [column for column, kind in wanted.dtypes.items() if kind.kind != "f"]
        found = store.table(name).query().to_arrow().to_pandas()[list(wanted.columns)]
        if name == "late_in_gusts":
            print(found.sort_values("minutes_lost", ascending=False).to_string(index=False))
        frames = (frame.sort_values(keys, ignore_index=True) for frame in (found, wanted))
        found, wanted = (frame.where(frame.notna(), None) for frame in frames)
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False, atol=0.0501, rtol=0)


if __name__ == "__main__":
    main()
