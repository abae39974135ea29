"""What models, snapshots and statements of dbt change is what was recorded, by both executors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from dbt.tests.util import run_dbt

from ktk_engine import Store
from ktk_engine.errors import KtkError
from tests.functional.conftest import *  # noqa: F403 - dbt's own harness
from tests.golden.canonical import message_lines, row_lines
from tests.golden.changed import Changed
from tests.golden.changes import STORAGES, new_rows
from tests.golden.inside import done_by_spark
from tests.golden.models import (
    CHANGES,
    GET_TIME,
    REFUSED,
    REFUSED_STATEMENTS,
    SNAPSHOT_TIMES,
    SNAPSHOTS,
    STATEMENTS,
    Case,
    contracts,
    snapshot_rows,
    snapshot_sql,
)
from tests.golden.records import Records, records

ONE_DAY = ["--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"]
TWICE = ["--select", "tag:twice"]


@pytest.fixture(scope="class")
def inputs(tmp_path_factory):
    """Where models read rows from."""
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTK_GOLDEN_INPUTS", str(folder))
        patch.setenv("KTK_GOLDEN_TIME", SNAPSHOT_TIMES[0])
        yield folder


def store_of(project) -> Store:
    return Store(f"{project.project_root}/warehouse/{project.test_schema}")


@contextmanager
def all_records(file: str, executor: str) -> Iterator[dict[str, Records]]:
    """The records of each storage."""
    with ExitStack() as stack:
        names = {storage: f"{file}-{storage}" for storage in STORAGES}
        yield {s: stack.enter_context(records(name, executor)) for s, name in names.items()}


def counts(item) -> list[str]:
    """The counts that dbt's artifacts have."""
    found = item.adapter_response
    kinds = ("inserted", "updated", "deleted")
    return [", ".join(f"{kind} {found[f'rows_{kind}']}" for kind in kinds)] if found else []


class Models:
    """Models on states that are there, run once as they are, and those with two executors again."""

    cases: list[Case]
    file: str
    passes: bool

    @pytest.fixture(scope="class")
    @classmethod
    def models(cls):
        texts = {
            f"{case.model(storage)}.sql": case.sql(storage)
            for case in cls.cases
            for storage in case.storages
        }
        return {**texts, "schema.yml": yaml.safe_dump(contracts(cls.cases))}

    @pytest.fixture(scope="class")
    @classmethod
    def states(cls, project, inputs):
        """Each model's relation, and a copy of the store with all of them."""
        store, found = store_of(project), {}
        for case in cls.cases:
            for storage in case.storages:
                name, before = case.model(storage), case.state(storage)
                found[case.name, storage] = Changed(store, before, name, name).build()
                pq.write_table(case.rows(before), inputs / f"{name}.parquet")
        warehouse = Path(project.project_root) / "warehouse"
        shutil.copytree(warehouse, warehouse.with_name("at_first"))
        return found

    def check(self, project, states, executor, *arguments):
        root = Path(project.project_root)
        shutil.rmtree(root / "warehouse")
        shutil.copytree(root / "at_first", root / "warehouse")
        for changed in states.values():
            changed.start()
        results = run_dbt(["run", *ONE_DAY, *arguments], expect_pass=self.passes)
        found = {item.node.name: item for item in results}
        names = {project.test_schema: "<schema>", str(project.project_root): "<project>"}
        with all_records(self.file, executor) as expected:
            for (name, storage), changed in states.items():
                item = found.get(f"{storage}_{name}")
                if item is None:
                    expected[storage].leave_out(name)
                    continue
                lines = message_lines(item.message, names)
                expected[storage].check(
                    name, [*lines, *counts(item), *changed.after(changed.commits)]
                )

    def test_as_it_is(self, project, states):
        self.check(project, states, "here")

    def test_by_spark(self, project, states):
        with done_by_spark():
            self.check(project, states, "spark", *TWICE)


class TestChanges(Models):
    cases, file, passes = CHANGES, "models", True


class TestRefused(Models):
    cases, file, passes = REFUSED, "refused-models", False
