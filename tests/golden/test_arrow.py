"""What changes and reads by Arrow alone answer, without Java, is what was recorded."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main as ktk
from tests.golden.canonical import row_lines
from tests.golden.changed import (
    as_it_is,
    built,
    changes_of,
    merges_of_keys_that_come_twice,
    refused_changes,
)
from tests.golden.changes import STORAGES
from tests.golden.inside import SCHEMA, create_view, rows_in_process
from tests.golden.questions import SEED, check_way, every, is_plain
from tests.golden.records import records

SEEDS = range(2)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_changes(tmp_path, storage, seed):
    store = Store(tmp_path / "store")
    changed = built(store, storage, seed)
    head = f"{storage}, seed {seed}"
    with records(f"changes-{storage}", "arrow", f"{head}:") as found:
        found.check(f"{head}: rows at first", changed.start())
        for what, change in changes_of(store, changed, as_it_is):
            found.check(f"{head}: {what}", changed.step(change))
        found.check(f"{head}: files and types", changed.layout())
    assert changed.relation.check()["problems"] == ()


def test_merges_of_keys_that_come_twice(tmp_path):
    store = Store(tmp_path / "store")
    changed = built(store, "table", 1)
    with records("changes-twice", "arrow") as found:
        found.check("rows at first", changed.start())
        for what, change in merges_of_keys_that_come_twice(store, changed, as_it_is):
            found.check(what, changed.step(change))


@pytest.mark.parametrize("storage", STORAGES)
def test_refused_changes(tmp_path, storage):
    store = Store(tmp_path / "store")
    changed = built(store, storage, SEED)
    changed.start()
    with records(f"refused-{storage}", "arrow") as found:
        for what, change in refused_changes(store, changed, as_it_is):
            found.check(what, changed.step(change))


@pytest.mark.parametrize("storage", STORAGES)
def test_questions(tmp_path, storage):
    root = tmp_path / SCHEMA
    changed = built(Store(root), storage, SEED)
    relation = changed.relation

    def by_arrow(asked):
        rows = relation.query(**asked).to_arrow(engine="local")
        if not asked and changed.before.in_cube:
            cells = [tuple(row[c] for c in ("k", "p")) for row in rows.to_pylist()]
            assert cells == sorted(cells)
        return row_lines(rows.to_pylist())

    def by_pandas(asked):
        frame = relation.query(**asked).to_pandas(engine="local")
        return row_lines(pa.Table.from_pandas(frame, preserve_index=False).to_pylist())

    def by_batches(asked):
        batches = list(relation.query(**asked).to_batches(engine="local"))
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert relation.query(**asked).count(engine="local") == len(rows)
        return row_lines(rows)

    for name, way in (("arrow", by_arrow), ("pandas", by_pandas), ("batches", by_batches)):
        check_way(changed, name, way, every)


@pytest.mark.parametrize("storage", STORAGES)
def test_questions_on_the_command_line(tmp_path, storage):
    root, output = tmp_path / SCHEMA, tmp_path / "rows.parquet"
    changed = built(Store(root), storage, SEED)

    def by_command(asked):
        where = [asked["where"]] if "where" in asked else []
        columns = ["--columns", ",".join(asked["columns"])] if "columns" in asked else []
        arguments = ["query", changed.name, *where, *columns, "--output", str(output)]
        result = CliRunner().invoke(ktk, ["--store", str(root), *arguments])
        if result.exit_code:
            return result.output.removeprefix("Error: ").splitlines()
        return row_lines(pq.read_table(output).to_pylist())

    check_way(changed, "command", by_command, is_plain)


@pytest.mark.parametrize("storage", STORAGES)
def test_questions_in_sql_of_this_process(tmp_path, storage):
    root = tmp_path / SCHEMA
    changed = built(Store(root), storage, SEED)
    if changed.before.in_cube:
        create_view(root, "t", "t")

    def by_sql(asked):
        columns = ", ".join(asked.get("columns", ["*"]))
        where = f" where {asked['where']}" if "where" in asked else ""
        return row_lines(rows_in_process(root, f"select {columns} from {SCHEMA}.t{where}"))

    check_way(changed, "in process", by_sql, is_plain)
