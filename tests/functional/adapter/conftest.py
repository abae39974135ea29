"""What dbt-tests-adapter's suites share: `--storage`, reasons of skips, the harness's gaps."""

from __future__ import annotations

from pathlib import Path
from types import MethodType

import pytest
from dbt.parser.manifest import ManifestLoader
from dbt.tests.util import get_connection

from dbt.adapters.ktk.config import skip_unchanged
from dbt.adapters.ktk.config.skip_unchanged import SkipUnchanged
from tests.functional.adapter.cube_storage import as_cubes, cells_of
from tests.functional.adapter.left_out import parse_marker

# The groups that run a second time with cube storage.
TWICE = (
    "basic",
    "constraints",
    "concurrency",
    "empty",
    "ephemeral",
    "incremental",
    "persist_docs",
    "simple_seed",
    "simple_snapshot",
    "store_test_failures",
)
# Of these, with `skip_unchanged: check`: what could be left out runs, and is compared.
CHECKED = ("basic", "ephemeral", "incremental", "persist_docs", "simple_seed")


def pytest_generate_tests(metafunc):
    """Run what has to do with the storage with both, unless `--storage` says which."""
    if "storage" not in metafunc.fixturenames:
        return
    group = Path(metafunc.definition.path).stem.removeprefix("test_")
    storages = ("table", "cube") if group in TWICE else ("table",)
    metafunc.parametrize("storage", storages, indirect=True, scope="class")


def pytest_collection_modifyitems(config, items):
    """Skip what is left out; leave away the storage that is not asked for."""
    asked = config.getoption("storage")
    kept, others = [], []
    for item in items:
        if item.path.parent != Path(__file__).parent:
            kept.append(item)
            continue
        storage = item.callspec.params["storage"]
        for mark in item.iter_markers("left_out"):
            found = parse_marker(mark, item.nodeid)
            if found.holds and found.storage in ("", storage):
                item.add_marker(pytest.mark.skip(reason=f"{found.reason}: {found.why}"))
        (kept if asked in ("both", storage) else others).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=others)


def pytest_terminal_summary(terminalreporter):
    """Count the suites' cases."""
    folder = f"{Path(__file__).parent.relative_to(terminalreporter.config.rootpath).as_posix()}/"
    for storage in ("table", "cube"):
        counts = {
            outcome: sum(
                report.nodeid.startswith(folder) and f"[{storage}" in report.nodeid
                for report in found
            )
            for outcome in ("passed", "skipped", "failed", "error")
            if (found := terminalreporter.stats.get(outcome))
        }
        shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        terminalreporter.write_line(f"dbt-tests-adapter, storage {storage}: {shown or 'no cases'}")


@pytest.fixture(scope="class", autouse=True)
def storage(request):
    """What stores rows: a table, or a dataset of a cube of its own."""
    if request.param == "table":
        yield request.param
        return
    cells = cells_of(request.node)
    load = ManifestLoader.load

    def load_as_cubes(self):
        manifest = load(self)
        as_cubes(manifest, cells)
        return manifest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestLoader, "load", load_as_cubes)
        if Path(request.node.path).stem.removeprefix("test_") in CHECKED:
            patch.setattr(skip_unchanged, "DEFAULT", SkipUnchanged(is_on=True, checks=True))
        yield request.param


# The folders that all of the harness's fixtures lie in: others with the other storage.


@pytest.fixture(scope="class")
def profiles_root(tmpdir_factory, storage):
    return tmpdir_factory.mktemp("profile")


@pytest.fixture(scope="class")
def project_root(tmpdir_factory, storage):
    return tmpdir_factory.mktemp("project")


@pytest.fixture(scope="class")
def test_data_dir(tmp_path_factory, storage):
    """A folder for files that a test makes, outside the repository."""
    return tmp_path_factory.mktemp("adapter") / "data"


@pytest.fixture(scope="class")
def project(project_setup, project_files):
    """The harness's project, whose list of tables does not ask Postgres's catalog."""
    project_setup.get_tables_in_schema = MethodType(_tables_in_schema, project_setup)
    return project_setup


def _tables_in_schema(self):
    with get_connection(self.adapter):
        schema = self.adapter.Relation.create(schema=self.test_schema)
        found = self.adapter.list_relations_without_caching(schema)
    return {relation.identifier: str(relation.type) for relation in found}
