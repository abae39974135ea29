"""`make demo-cluster`: dbt builds the sample project on a cluster, into a store on S3.

The cluster and the S3 server (moto) are processes of this machine, made for the demo. The answers
are compared with those that pandas computes from the raw data.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.conftest import settings
from tests.faults.read import rows_of
from tests.functional import sample_answers
from tests.servers.s3 import S3Server, start_s3
from tests.support.committed import snapshot_of
from tests.support.stores import open_store

SAMPLE = Path(__file__).resolve().parents[2] / "sample_project"
_LEFT = ("warehouse", "target", "logs", "profiles.yml")


def main() -> None:
    """Start everything, let dbt build, compare, and end everything."""
    with tempfile.TemporaryDirectory(prefix="ktk-demo-") as name:
        folder = Path(name)
        project = folder / "project"
        shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns(*_LEFT))
        server, stop = start_s3()
        cluster = Cluster(folder)
        try:
            url = server.new_url()
            _write_profile(project, url, server, cluster)
            _dbt(project, "debug")
            _dbt(project, "build")
            _compare(f"{url}/analytics", server)
        finally:
            cluster.end()
            stop()
    print("The answers are those of the raw data.")


def _write_profile(project: Path, url: str, server: S3Server, cluster: Cluster) -> None:
    target = {
        "type": "ktk",
        "schema": "analytics",
        "store": url,
        "storage_options": server.options,
        "threads": 2,
        "server_side_parameters": settings(cluster),
    }
    profiles = {"sample": {"target": "cluster", "outputs": {"cluster": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))


def _dbt(project: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "dbt.cli.main", *arguments]
    subprocess.run(command, cwd=project, env={**os.environ}, check=True)


def _compare(url: str, server: S3Server) -> None:
    store = open_store(url, server.options)
    snapshot = snapshot_of(store, "late_in_gusts")
    wanted = sample_answers.late_in_gusts().sort_values("airline", ignore_index=True)
    names = sorted(snapshot.schema.names)
    found = pd.DataFrame(rows_of(store, snapshot), columns=names)
    found = found[list(wanted.columns)].sort_values("airline", ignore_index=True)
    print(found.sort_values("minutes_lost", ascending=False).to_string(index=False))
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False, atol=0.0501, rtol=0)


if __name__ == "__main__":
    main()
