"""Two targets in one process: what a profile sets belongs to its sessions."""

from __future__ import annotations

import subprocess
import sys

import yaml

from ktk_engine import Store

MODEL = """
select cast(timestamp '2024-01-01 00:00:00' as bigint) as at, typeof(1 + '1') as kind,
       'a\\\\b' as text, '{{ target.name }}' as target
"""
RUN = """
import sys
from dbt.cli.main import dbtRunner
for target in sys.argv[1:]:
    result = dbtRunner().invoke(["run", "--target", target])
    assert result.success, result.exception or result.result
"""
MIDNIGHT = 1704067200
SETTINGS = {
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.ansi.enabled": False,
    "spark.sql.parser.escapedStringLiterals": True,
}
WANTED = {
    "berlin": {"at": MIDNIGHT - 3600, "kind": "double", "text": r"a\\b"},
    "plain": {"at": MIDNIGHT, "kind": "bigint", "text": r"a\b"},
}


def test_settings_of_one_target_do_not_hold_for_another(tmp_path):
    common = {"type": "ktk", "store": str(tmp_path / "warehouse"), "threads": 2}
    common["server_side_parameters"] = {"spark.master": "local[1]"}
    berlin = {**common, "schema": "berlin"}
    berlin["server_side_parameters"] = {**common["server_side_parameters"], **SETTINGS}
    outputs = {"berlin": berlin, "plain": {**common, "schema": "plain"}}
    profiles = {"p": {"target": "plain", "outputs": outputs}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profiles))
    (tmp_path / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: 1.0.0\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text("{{ config(materialized='table') }}" + MODEL)
    targets = ["berlin", "plain", "berlin", "plain"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *targets], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for schema, wanted in WANTED.items():
        (row,) = (
            Store(str(tmp_path / "warehouse" / schema)).table("m").query().to_arrow().to_pylist()
        )
        assert row == {**wanted, "target": schema}
