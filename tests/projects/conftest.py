"""Projects as folders: each is copied, and built by dbt in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner, dbtRunnerResult

from ktk_engine.api import Store
from tests.functional.conftest import profile_target, unsynced  # noqa: F401 - a fixture

FOLDER = Path(__file__).parent
SCHEMA = "an"


class Project:
    """A copy of a project, with a profile.

    Args:
        folder: where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        target = {**profile_target(), "schema": SCHEMA, "store": str(folder / "warehouse")}
        profile = {"project": {"target": "dev", "outputs": {"dev": target}}}
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile))

    def dbt(self, *arguments: str) -> dbtRunnerResult:
        """Run dbt as from the command line."""
        reset_adapters()
        where = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return dbtRunner().invoke([*arguments, *where])

    def statuses(self, *arguments: str) -> dict[str, str]:
        """Run dbt; name of a node -> what became of it, for all that did not just work."""
        answer = self.dbt(*arguments)
        assert answer.exception is None, answer.exception
        return {
            result.node.name: f"{result.status}: {result.message}"
            for result in answer.result
            if result.status not in ("success", "pass")
        }

    def rows(self, schema: str, table: str) -> list[dict]:
        """The rows of a table, without Spark."""
        return self._store(schema).table(table).query().to_arrow().to_pylist()

    def tables(self, schema: str) -> list[str]:
        """The names of the tables of a schema."""
        return self._store(schema).tables()

    def _store(self, schema: str) -> Store:
        return Store(str(self.folder / "warehouse" / schema))


@pytest.fixture
def project_of(tmp_path, monkeypatch) -> Callable[[str], Project]:
    """Gives a copy of one of the projects here."""
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    monkeypatch.setenv("DBT_LOG_PATH", str(tmp_path / "logs"))

    def make(name: str) -> Project:
        shutil.copytree(FOLDER / name, tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        return Project(tmp_path / name)

    yield make
    reset_adapters()
