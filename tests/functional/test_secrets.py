"""Secrets of the profile: in no argument, environment, log, page, event log or file that stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ARTIFACTS = True

# The first compiler alone; rows are few.
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
SECRET = "canary-7f3a = :#!\\ü"
SECRETS = [
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.container.lake",
    "spark.hadoop.fs.azure.account.oauth2.client.secret",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.javax.jdo.option.ConnectionPassword",
]
PYTHON = """
def model(dbt, session):
    frame = session.sql("select * from range(10)")
    return frame.mapInPandas(lambda parts: parts, frame.schema)
"""


def test_no_one_else_sees_them(tmp_path):
    project, temporary = tmp_path / "project", tmp_path / "tmp"
    (project / "models").mkdir(parents=True)
    temporary.mkdir()
    settings = {
        **dict.fromkeys(SECRETS, SECRET),
        "spark.app.name": "visible-7f3a",
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        **QUICK,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": temporary.as_uri(),
    }
    target = {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 1}
    outputs = {"dev": {**target, "server_side_parameters": settings}}
    profiles = {"secrets": {"target": "dev", "outputs": outputs}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))
    config = {"name": "secrets", "version": "1.0", "profile": "secrets"}
    (project / "dbt_project.yml").write_text(yaml.safe_dump(config))
    (project / "models" / "rows.py").write_text(PYTHON)
    (project / "models" / "fails.sql").write_text("select 1 / 0 as x from {{ ref('rows') }}")
    script = Path(__file__).with_name("find_secrets.py")
    command = [sys.executable, str(script), str(project), str(temporary)]
    environment = {**os.environ, "TMPDIR": str(temporary), "DO_NOT_TRACK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["found"] == []
    assert {"page", "file"} <= set(answer["seen"])  # it looks where settings are shown
    assert "canary-7f3a" not in done.stdout + done.stderr


def test_keys_of_an_object_store_are_shown_to_no_one(tmp_path, s3_server):
    project, temporary = tmp_path / "project", tmp_path / "tmp"
    (project / "models").mkdir(parents=True)
    temporary.mkdir()
    url, options = s3_server.new_url(), s3_server.options
    settings = {
        **QUICK,
        "spark.master": "local[1]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": temporary.as_uri(),
    }
    target = {
        "type": "ktk",
        "schema": "an",
        "store": url,
        "threads": 1,
        "storage_options": {**options, "secret_access_key": "{{ env_var('S3_SECRET') }}"},
        "server_side_parameters": settings,
    }
    profiles = {"keys": {"target": "dev", "outputs": {"dev": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))
    config = {"name": "keys", "version": "1.0", "profile": "keys"}
    (project / "dbt_project.yml").write_text(yaml.safe_dump(config))
    cells = "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id']) }}"
    (project / "models" / "cells.sql").write_text(f"{cells} select id from range(10)")
    (project / "models" / "read.sql").write_text(
        "{{ config(materialized='table') }} select id + 1 as x from {{ ref('cells') }}"
    )
    (project / "models" / "fails.sql").write_text(
        "{{ config(materialized='table') }} select 1 / (id - id) as x from {{ ref('cells') }}"
    )
    script = Path(__file__).with_name("find_store_secrets.py")
    command = [sys.executable, str(script), str(project), str(temporary), url, options["endpoint"]]
    secret = options["secret_access_key"]
    environment = {**os.environ, "TMPDIR": str(temporary), "DO_NOT_TRACK": "1", "S3_SECRET": secret}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["found"] == []
    assert dict(map(tuple, answer["ran"])) == {
        "debug": True, "run": False, "docs": True, "run-operation": True,
    }  # fmt: skip
    assert answer["objects"] > 5
    assert answer["looked"] > 10
    assert answer["in the pickle"] == 1  # tasks need it
    assert secret not in done.stdout + done.stderr
