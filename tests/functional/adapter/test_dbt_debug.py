"""dbt-tests-adapter: dbt_debug."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path

from click.testing import CliRunner
from dbt.tests.adapter.dbt_debug.test_dbt_debug import (
    BaseDebugInvalidProjectPostgres,
    BaseDebugPostgres,
)
from dbt.tests.util import run_dbt_and_capture

from ktk_engine.cli.main import main as ktk


class TestDebugPostgres(BaseDebugPostgres):
    pass


class TestDebugInvalidProjectPostgres(BaseDebugInvalidProjectPostgres):
    pass


class TestWhatItSays:
    """Beside dbt's own checks."""

    def test_versions_java_store_and_spark(self, project):
        _, log = run_dbt_and_capture(["debug"])
        assert f"pyspark {version('pyspark')}" in log
        assert "can be written, commits are atomic" in log
        assert "Java 17" in log or "Java 2" in log
        assert "on local[2], 2 tasks at once" in log
        assert "target_type: spark" in log

    def test_a_store_that_cannot_be_written(self, project):
        warehouse = Path(project.project_root) / "warehouse"
        shutil.rmtree(warehouse, ignore_errors=True)
        warehouse.write_text("a file")
        try:
            result, log = run_dbt_and_capture(["debug"], expect_pass=False)
        finally:
            warehouse.unlink()
        assert not result
        assert str(warehouse) in log
        assert "commits are atomic" not in log

    def test_no_check_is_green_by_what_it_leaves(self, project):
        run_dbt_and_capture(["debug"])
        for arguments in ([], ["--store", "warehouse"]):
            found = CliRunner().invoke(ktk, ["check", *arguments])
            assert (found.exit_code, "no problems" in found.output) == (1, False)
