"""Two dbt projects take the same random steps: what `skip_unchanged` leaves out is never missed.

One leaves out what it may, the other computes everything. See also
tests/integration/random/test_computed_once.py, where the engine takes thousands of steps.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
import yaml
from dbt.cli.main import dbtRunner

from ktk_engine import Store
from ktk_engine.errors import KtkError
from tests.conftest import SPARK_SETTINGS

ARTIFACTS = True

STEPS = int(os.environ.get("KTK_UNCHANGED_STEPS", "8"))
MONTHS, DAYS = (1, 2, 3), range(4)
# Each model has some texts, one at a time.
MODELS = {
    "cells": [
        "{{ config(materialized='cube_seed', cube='c', dimension_columns=['day'], "
        "partition_by=['month']) }} select month, day, a from {{ ref('raw') }}",
        "{{ config(materialized='cube_seed', cube='c', dimension_columns=['day'], "
        "partition_by=['month']) }} select month, day, a + 1 as a from {{ ref('raw') }}",
    ],
    "more": [
        "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['day'], "
        "partition_by=['month']) }} select month, day, b as m from {{ ref('other') }}",
        "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['day'], "
        "partition_by=['month']) }} select month, day, -b as m from {{ ref('other') }}",
    ],
    "c": ["{{ config(materialized='cube') }} {{ cube_of(ref('cells'), ref('more')) }}"],
    "first": [
        "select day, a, m from {{ ref('c') }} where month = 1",
        "select day, a, m from {{ ref('c') }} where month = {{ var('month') }}",
    ],
    "narrow": ["select month, sum(a) as a from {{ ref('c') }} group by month"],
    "shown": [
        "{{ config(materialized='view') }} select month, max(b) as top from {{ ref('other') }} "
        "group by month",
        "{{ config(materialized='view') }} select month, min(b) as top from {{ ref('other') }} "
        "group by month",
    ],
    "below": ["select * from {{ ref('shown') }} where top > 2"],
    "merged": [
        "{{ config(materialized='incremental', unique_key=['month', 'day']) }} "
        "select month, day, a from {{ ref('raw') }}",
        "{{ config(materialized='incremental', unique_key=['month', 'day']) }} "
        "select month, day, a * 2 as a from {{ ref('raw') }}",
    ],
    "grown": [
        "{{ config(materialized='incremental') }} select month, day, b from {{ ref('other') }}"
        "{% if is_incremental() %} where month > (select max(month) from {{ this }}){% endif %}",
    ],
    "replaced": [
        "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
        "partition_by=['month']) }} select month, day, b from {{ ref('other') }} where day < 3",
    ],
    "last": [
        "select sum(a) as a from {{ ref('first') }} union all select a from {{ ref('narrow') }}"
    ],
}  # fmt: skip
SNAPSHOT = (
    "{% snapshot held %}{{ config(strategy='check', unique_key=['month', 'day'], "
    "check_cols=['a']) }} select month, day, a from {{ ref('raw') }}{% endsnapshot %}"
)
TABLES = ("first", "narrow", "below", "merged", "grown", "replaced", "last")
# All that has rows; when a row of the snapshot began is another time in each project.
ROWS = {**dict.fromkeys((*TABLES, "c"), None), "held": ["month", "day", "a"]}


@dataclass
class Project:
    """A dbt project with a store of its own."""

    folder: Path
    environment: Mapping[str, str]
    chosen: dict[str, int] = field(default_factory=dict)
    month: int = 1
    skipped: int = 0

    def __post_init__(self) -> None:
        on = {"+skip_unchanged": True}
        profile = {"type": "ktk", "store": "warehouse", "schema": "an", "threads": 2}
        profile["server_side_parameters"] = SPARK_SETTINGS
        self._write(
            "profiles.yml", yaml.safe_dump({"p": {"target": "o", "outputs": {"o": profile}}})
        )
        project = {
            "name": "p",
            "version": "1.0",
            "profile": "p",
            "models": {**on, "+materialized": "table"},
        }
        project |= {"seeds": on, "snapshots": on, "flags": {"send_anonymous_usage_stats": False}}
        self._write("dbt_project.yml", yaml.safe_dump(project))
        self._write("snapshots/held.sql", SNAPSHOT)
        for name in ("raw", "other"):
            self.seed(name, Random(0), MONTHS)
        for name in MODELS:
            self.choose(name, 0)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def seed(self, name: str, chance: Random, months) -> None:
        """Give some months of a seed other rows."""
        path = self.folder / "seeds" / f"{name}.csv"
        kept = path.read_text().splitlines()[1:] if path.exists() else []
        kept = [line for line in kept if int(line[0]) not in months]
        new = [
            f"{month},{day},{chance.randint(0, 4)},{chance.randint(0, 4)}"
            for month in months for day in DAYS if chance.random() < 0.8
        ]  # fmt: skip
        self._write(f"seeds/{name}.csv", "\n".join(["month,day,a,b", *sorted(kept + new)]) + "\n")

    def choose(self, name: str, number: int) -> None:
        """Give a model another text."""
        self._write(f"models/{name}.sql", MODELS[name][number % len(MODELS[name])])

    @property
    def store(self) -> Store:
        return Store(self.folder / "warehouse" / "an")

    def run(self, *arguments: str) -> bool:
        """Run dbt; whether it succeeded."""
        where = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        variables = ["--vars", f"{{month: {self.month}}}", "--log-path", str(self.folder / "logs")]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            done = dbtRunner().invoke([*arguments, *where, *variables, "--quiet"])
        assert done.exception is None, done.exception
        results = list(done.result)
        self.skipped += sum(bool((i.adapter_response or {}).get("unchanged")) for i in results)
        assert done.success, [(i.node.name, i.message) for i in results if i.message]
        return done.success

    def rows(self) -> dict[str, list[str]]:
        found = {}
        for name, columns in ROWS.items():
            rows = self.store.relation(name).query(columns).to_arrow().to_pylist()
            found[name] = sorted(str(sorted(row.items())) for row in rows)
        return found


@dataclass(frozen=True)
class Step:
    """A change of a project, the same in both."""

    kind: str
    model: str
    table: str
    seed: str
    month: int
    number: int

    def __str__(self) -> str:
        return " ".join(map(str, vars(self).values()))

    def take(self, project: Project) -> None:
        """Take it, if it can be taken now."""
        with contextlib.suppress(KtkError):
            KINDS[self.kind](project, self)


KINDS: Mapping[str, Callable[[Project, Step], object]] = {
    "rows": lambda p, s: p.seed(s.seed, Random(s.number), [s.month]),
    "all rows": lambda p, s: p.seed(s.seed, Random(s.number), MONTHS),
    "text": lambda p, s: p.choose(s.model, s.number),
    "variable": lambda p, s: setattr(p, "month", s.month),
    "delete": lambda p, s: p.store.table(s.table).delete("1 = 1"),
    "delete cells": lambda p, s: p.store.cube("c").delete(f"month = {s.month} and day = 1"),
    "restore": lambda p, s: p.store.table(s.table).restore(1),
    "restore seed": lambda p, s: p.store.table(s.seed).restore(1),
    "compact": lambda p, s: p.store.table(s.table).compact(),
    "drop": lambda p, s: p.store.drop(s.table),
    "part": lambda p, s: p.run("run", "--select", s.model),
    "upstream": lambda p, s: p.run("build", "--select", f"+{s.table}"),
    "full": lambda p, s: p.run("build", "--full-refresh", "--select", s.model),
    "empty": lambda p, s: p.run("run", "--empty", "--select", s.table),
    "nothing": lambda p, s: None,
}


def random_step(chance: Random) -> Step:
    return Step(
        chance.choice(list(KINDS)),
        chance.choice(list(MODELS)),
        chance.choice(TABLES),
        chance.choice(["raw", "other"]),
        chance.choice(MONTHS),
        chance.randrange(1, 99),
    )


@pytest.mark.parametrize("seed", range(max(STEPS // 20, 1)))
def test_what_is_left_out_has_the_rows_that_it_would_get(tmp_path, seed):
    chance, taken = Random(seed), list[str]()
    one, two = Project(tmp_path / "S", {}), Project(tmp_path / "N", {"KTK_RERUN": "1"})
    for project in (one, two):
        project.run("build")
    for _ in range(min(STEPS, 20)):
        step = random_step(chance)
        taken.append(str(step))
        for project in (one, two):
            step.take(project)
            project.run("build")
        assert one.rows() == two.rows(), taken
    assert one.skipped > 2 * min(STEPS, 20)
    assert two.skipped == 0
    shutil.rmtree(tmp_path)
