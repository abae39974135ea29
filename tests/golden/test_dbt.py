"""What models, snapshots and statements of dbt change is what was recorded, by both executors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture

from ktk_engine import Store
from tests.golden.canonical import message_lines, table
from tests.golden.changed import Changed
from tests.golden.changes import STORAGES, new_rows, state
from tests.golden.inside import done_by_spark
from tests.golden.models import (
    CHANGES,
    GET_TIME,
    REFUSED,
    REFUSED_STATEMENTS,
    SNAPSHOT_NAMES,
    SNAPSHOT_TIMES,
    STATEMENTS,
    contracts,
    refused_snapshot_rows,
    snapshot_rows,
    snapshot_sql,
)
from tests.golden.records import all_records, records

ONE_DAY = ["--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"]
TWICE = ["--select", "tag:twice"]
CASES = {case.name: case for case in (*CHANGES, *REFUSED)}
STATEMENT_SEED = 3


@pytest.fixture(scope="class")
def inputs(tmp_path_factory):
    """Where models read rows from."""
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTK_GOLDEN_INPUTS", str(folder))
        patch.setenv("KTK_GOLDEN_TIME", SNAPSHOT_TIMES[0])
        yield folder


def counts(response) -> list[str]:
    """The counts that dbt's artifacts have."""
    kinds = ("inserted", "updated", "deleted")
    found = [f"{kind} {response[f'rows_{kind}']}" for kind in kinds if f"rows_{kind}" in response]
    return [", ".join(found)] if found else []


class TestModels:
    """One project for all, since dbt takes seconds to read one and each has a store of its own."""

    @pytest.fixture(scope="class")
    @classmethod
    def models(cls):
        texts = {
            f"{case.model(storage)}.sql": case.sql(storage)
            for case in CASES.values()
            for storage in case.storages
        }
        return {**texts, "schema.yml": yaml.safe_dump(contracts(list(CASES.values())))}

    @pytest.fixture(scope="class")
    @classmethod
    def snapshots(cls):
        return {
            f"{storage}_{name}.sql": snapshot_sql(name, storage) for storage, name in SNAPSHOT_NAMES
        }

    @pytest.fixture(scope="class")
    @classmethod
    def macros(cls):
        return {"get_time.sql": GET_TIME}

    @pytest.fixture(scope="class")
    @classmethod
    def states(cls, project, inputs):
        """Each model's relation, and a copy of the store with all of them."""
        found = {}
        for case in CASES.values():
            for storage in case.storages:
                name, before = case.model(storage), case.state(storage)
                store = cls.store(project, case.schema(storage))
                found[case.name, storage] = Changed(store, before, name, name).build()
                pq.write_table(case.rows(before), inputs / f"{name}.parquet")
        cls.keep(project)
        return found

    @staticmethod
    def store(project, schema: str) -> Store:
        return Store(f"{project.project_root}/warehouse/{project.test_schema}_{schema}")

    @staticmethod
    def keep(project) -> None:
        """Copy the store, for `as_kept`."""
        root = Path(project.project_root)
        shutil.rmtree(root / "kept", ignore_errors=True)
        shutil.copytree(root / "warehouse", root / "kept")

    @staticmethod
    def as_kept(project) -> None:
        root = Path(project.project_root)
        shutil.rmtree(root / "warehouse")
        shutil.copytree(root / "kept", root / "warehouse")

    def lines(self, project, text: str) -> list[str]:
        names = {project.test_schema: "<schema>", str(project.project_root): "<project>"}
        return message_lines(text, names)

    def check_models(self, project, states, executor, *arguments):
        self.as_kept(project)
        for changed in states.values():
            changed.start()
        results, log = run_dbt_and_capture(["run", *ONE_DAY, *arguments], expect_pass=False)
        found = {item.node.name: item for item in results}
        files = {s: f"models-{s}" for s in STORAGES}
        files |= {f"refused_{s}": f"refused-models-{s}" for s in STORAGES}
        with all_records(files, executor) as records_of:
            for (name, storage), changed in states.items():
                expected = records_of[CASES[name].schema(storage)]
                item = found.get(f"{storage}_{name}")
                title = f"{name}, seed {changed.before.seed}"
                if item is None:
                    expected.leave_out(title)
                    continue
                said = item.message
                if said == "ERROR":  # of a batch only the log has more
                    (said,) = re.findall(rf"Dataset {re.escape(changed.uuid)}\b[^\x1b]*", log)
                lines = self.lines(project, said)
                after = changed.after(changed.commits)
                expected.check(title, [*lines, *counts(item.adapter_response), *after])
            for storage in STORAGES:
                layouts = {
                    line
                    for (name, of), changed in states.items()
                    if CASES[name].schema(of) == storage and f"{of}_{name}" in found
                    for line in changed.layout()
                }
                records_of[storage].check("files and types", sorted(layouts))

    def test_models(self, project, states):
        self.check_models(project, states, "here")

    def test_models_by_spark(self, project, states):
        with done_by_spark():
            self.check_models(project, states, "spark", *TWICE)

    def snapshot(self, inputs, step, refused=False):
        """Run all snapshots on the rows of a step; gives what is said about each."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KTK_GOLDEN_TIME", SNAPSHOT_TIMES[step])
            for storage, name in SNAPSHOT_NAMES:
                rows = refused_snapshot_rows(storage) if refused else snapshot_rows(step)
                pq.write_table(rows, inputs / f"{storage}_{name}.parquet")
            return {r.node.name: r for r in run_dbt(["snapshot"], expect_pass=not refused)}

    def check_snapshots(self, project, inputs, executor, steps):
        """Compare runs that follow those which are kept."""
        store = self.store(project, "versions")
        found = {
            (storage, name): Changed(store, state(storage, 0), f"{storage}_{name}")
            for storage, name in SNAPSHOT_NAMES
        }
        with records("snapshots", executor) as expected:
            for (storage, name), changed in found.items():
                rows = changed.start()
                if 1 in steps:
                    expected.check(f"{storage}, {name}: rows at first", rows)
                else:
                    expected.leave_out(f"{storage}, {name}: rows at first")
            for step, what in enumerate(("second run", "third run", "refused run"), 1):
                if step not in steps:
                    for storage, name in found:
                        expected.leave_out(f"{storage}, {name}: {what}")
                    continue
                versions = {key: changed.relation.version for key, changed in found.items()}
                items = self.snapshot(inputs, min(step, 2), step == 3)
                for (storage, name), changed in found.items():
                    item = items[changed.name]
                    lines = [*self.lines(project, item.message), *counts(item.adapter_response)]
                    after = changed.after(versions[storage, name])
                    expected.check(f"{storage}, {name}: {what}", [*lines, *after])
                if step == 1:
                    self.keep(project)

    def test_snapshots(self, project, states, inputs):
        self.as_kept(project)
        self.snapshot(inputs, 0)
        self.check_snapshots(project, inputs, "here", (1, 2, 3))

    def test_snapshots_by_spark(self, project, states, inputs):
        self.as_kept(project)
        with done_by_spark():
            self.check_snapshots(project, inputs, "spark", (2,))

    @pytest.mark.parametrize("storage", STORAGES)
    def test_statements(self, project, states, storage):
        self.as_kept(project)
        changed, source = self.statement_state(project, storage)
        with records(f"statements-{storage}", "statement") as found:
            found.check("rows at first", changed.start())
            step = 2 if storage == "enrichment" else 1
            for number, text in enumerate(STATEMENTS[::step]):
                found.check(f"{number}: {text}", self.statement(project, changed, source, text))

    @pytest.mark.parametrize("storage", ["table", "seed"])
    def test_refused_statements(self, project, states, storage):
        changed, source = self.statement_state(project, storage)
        changed.start()
        with records(f"refused-statements-{storage}", "statement") as found:
            for text in REFUSED_STATEMENTS:
                found.check(text, self.statement(project, changed, source, text))

    def statement_state(self, project, storage):
        store = self.store(project, "stated")
        before = state(storage, STATEMENT_SEED, True)
        name = f"stated_{storage}"
        store.write_table("given", table(new_rows(before, 1)), "overwrite")
        if name in {*store.tables(), *store.cubes()}:
            store.drop(name)
        return Changed(store, before, name, name).build(), f"{project.test_schema}_stated.given"

    def statement(self, project, changed, source, text):
        version = changed.relation.version
        known = {row["k"] for row in changed.before.rows} - {None}
        one = min(known & {row["k"] for row in new_rows(changed.before, 1)})
        name = f"{project.test_schema}_stated.{changed.dataset}"
        text = text.format(t=name, s=source, one=one)
        try:
            with project.adapter.connection_named("__test"):
                response, _ = project.adapter.execute(text, fetch=False)
        except Exception as error:  # noqa: BLE001 - dbt's and the engine's, whatever they are
            lines = self.lines(project, str(error))
        else:
            lines = [*self.lines(project, str(response)), *counts(vars(response))]
        return [*lines, *changed.after(version)]
