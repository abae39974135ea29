"""What is refused: the message names the place and the fix, the store stays as it was."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.cube_models import ENRICHMENT, MODELS, SEED
from tests.functional.relations import store_of
from tests.support.changes import ChangeSet, DatasetChange, PendingCommit, commit
from tests.support.committed import Snapshot, cube_scope, files_table, resolve
from tests.support.stores import LocalStore, tree


class TestRefusals:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    def refused(self, project, model: str, text: str, *arguments: str) -> str:
        """Run one model that must fail; the store must be the same afterwards."""
        root = project_root(project)
        before = tree(root)
        path = f"{project.project_root}/models/{model}.sql"
        original = SEED if model == "cells" else ENRICHMENT
        write_file(text, path)
        try:
            results = run_dbt(["run", "-s", model, *arguments], expect_pass=False)
        finally:
            write_file(original, path)
        assert tree(root) == before
        (result,) = results
        return result.message

    def test_duplicate_cells(self, built):
        message = self.refused(built, "cells", SEED.replace("id as L", "id div 6 as L"))
        assert "c++cells was refused while writing (nothing was committed)" in message
        assert "rows repeat a cell: each cell (`P`, `L`) may occur only once" in message
        assert "Example: P=" in message
        assert "Fix: Aggregate or filter the rows" in message

    def test_null_in_a_dimension(self, built):
        text = ENRICHMENT.replace("id as L", "nullif(id, 7) as L")
        message = self.refused(built, "extra", text)
        assert "c++extra was refused while writing" in message
        assert "1 row has no value in `L`" in message
        assert "coalesce(L, -1)" in message

    def test_another_class(self, built):
        message = self.refused(built, "cells", SEED.replace("id * 2 as v", "id * 2.0D as v"))
        assert "Cube type check failed for dataset c++cells (nothing was written)" in message
        assert "cast(v as bigint)" in message
        assert "signed integer" in message and "float" in message

    def test_payload_of_another_dataset(self, built):
        message = self.refused(built, "extra", ENRICHMENT.replace("as w", "as v"), "--full-refresh")
        assert "payload column v is already owned by dataset cells" in message

    def test_a_signed_column_where_unsigned_is_committed(self, built):
        commit_unsigned(store_of(built))
        text = SEED.replace("cube='c'", "cube='d'").replace("'L'", "'U'").replace("as L", "as U")
        message = self.refused(built, "counts", text)
        assert "d++counts" in message
        assert "uint64 cannot hold negative numbers" in message
        assert "decimal(20,0)" in message

    def test_a_query_that_fails_while_it_writes(self, built):
        message = self.refused(built, "cells", SEED.replace("id * 2 as v", "1 div (id - 59) as v"))
        assert "DIVIDE_BY_ZERO" in message
        assert "\tat " not in message


def project_root(project):
    return store_of(project).root


def commit_unsigned(store: LocalStore) -> None:
    """A dataset with an unsigned column, made with Arrow: Spark has no such type."""
    scope = cube_scope("d")
    snapshot = Snapshot(
        "d++counts",
        pa.schema([("P", pa.int64()), ("U", pa.int64()), ("v", pa.uint64())]),
        ("P",),
        files_table([], [], pa.table({"P": pa.array([], pa.int64())})),
        indices={},
        metadata={
            "ktk_cube_is_seed": True,
            "ktk_cube_dimension_columns": ["U"],
            "ktk_cube_partition_columns": ["P"],
            "ktk_cube_suppress_index_on": ["U"],
        },
    )
    change = DatasetChange("d++counts", "rebuild", lambda base, attempt: snapshot)
    commit(resolve(store, scope), ChangeSet(PendingCommit(), (change,)))


class TestConfiguration:
    """Wrong configuration is refused before the first model runs."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"first.sql": "select 1 as x", "cells.sql": SEED}

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "partition_by=",
                "partition_on=",
                "`partition_on` is unknown. Did you mean `partition_by`",
            ),
            ("cube='c', ", "", "needs `cube` in its config"),
            ("cube='c', ", "cube='c', file_format='orc', ", "`file_format` is 'orc', but"),
            ("cube='c', ", "cube='c', clustered_by='v', ", "clustered_by is for plain tables"),
            ("dimension_columns=['L'], ", "", "needs `dimension_columns` in its config"),
            ("['P']", "{'field': 'P', 'granularity': 'month'}", "a cube address its cells"),
            ("['P']", "['month(P)']", "Select it as a column of its own, and name that"),
            ("['P']", "['P', 'P']", "names P twice"),
            ("['P']", "['L']", "must not share columns"),
            ("'c'", "'c d'", "may only hold the characters"),
            ("cube='c'", "cube='c', buckets='many'", "must be a whole number above 0"),
            ("cube='c'", "cube='c', options={'row_group_row': 9}", "unknown key `row_group_row`"),
            ("cube='c'", "cube='c', options={'compression': 'zst'}", "Known: zstd, snappy"),
            ("cube='c'", "cube='c', indexes=[{'columns': []}]", "an index here is on one"),
            ("cube_seed", "cube_sed", "is 'cube_sed', which nothing here defines. Did you mean"),
            ("cube='c'", "cube='c', unique_kay='L'", "Did you mean `unique_key`"),
            ("cube_seed", "table", "belongs to models that are materialized cube_seed"),
        ],
    )
    def test_refused_before_anything_runs(self, project, old, new, message):
        path = f"{project.project_root}/models/cells.sql"
        write_file(SEED.replace(old, new, 1), path)
        with pytest.raises(Exception) as error:
            run_dbt(["run"], expect_pass=False)
        assert message in str(error.value)
        assert "Model cells" in str(error.value)
        assert set(tree(project_root(project))) <= {".ktk/store.json"}

    def test_only_what_runs_is_checked(self, project):
        root = Path(project.project_root, "models")
        (root / "cells.sql").write_text(SEED.replace("cube='c'", "cube='c', external_location='x'"))
        (result,) = run_dbt(["run", "-s", "first"])
        assert result.status == "success"
        for arguments in (["run"], ["run", "-s", "cells"], ["run", "-s", "first", "cells"]):
            with pytest.raises(Exception, match="`external_location` cannot be carried out"):
                run_dbt(arguments, expect_pass=False)
        (root / "cells.sql").write_text(SEED)

    def test_another_table_format_is_one_line_a_run(self, project):
        root = Path(project.project_root, "models")
        for name in ("one", "two"):
            (root / f"{name}.sql").write_text(
                "{{ config(materialized='table', file_format='delta') }} select 1 as x"
            )
        _, log = run_dbt_and_capture(["run", "-s", "one", "two"])
        assert log.count("`file_format: delta`") == 1
        for name in ("one", "two"):
            (root / f"{name}.sql").unlink()

    def test_keys_of_others_are_left_alone(self, project):
        text = SEED.replace("cube='c'", "cube='c', my_team='data', owner='x'")
        write_file(text, f"{project.project_root}/models/cells.sql")
        run_dbt(["run"])

    def test_a_view_with_a_column_twice(self, project):
        path = Path(project.project_root, "models", "twice.sql")
        path.write_text("select 1 as x, 2 as x")
        (result,) = run_dbt(["run", "-s", "twice"], expect_pass=False)
        path.unlink()
        assert "several columns named `x`" in result.message

    def test_a_configured_column_that_the_model_lacks(self, project):
        text = SEED.replace("['P']", "['Q']")
        write_file(text, f"{project.project_root}/models/cells.sql")
        results = run_dbt(["run", "-s", "cells"], expect_pass=False)
        assert "partition_by names `Q`, but the rows have no such column" in results[0].message


class TestProfile:
    @pytest.fixture(scope="class")
    def models(self):
        return {"first.sql": "select 1 as x"}

    @pytest.mark.parametrize(
        ("extra", "message"),
        [
            ({"stroe": "x"}, "`stroe`, which type ktk does not know. Did you mean `store`"),
            ({"treads": 4}, "Did you mean `threads`"),
            ({"method": "thrift"}, "type ktk knows `session`"),
            ({"schema": ""}, "names no `schema`"),
        ],
    )
    def test_a_wrong_key_is_refused(self, extra, message):
        from dbt_common.dataclass_schema import ValidationError

        from dbt.adapters.ktk import KtkCredentials

        with pytest.raises(ValidationError) as error:
            KtkCredentials.from_dict(
                KtkCredentials.translate_aliases({"schema": "a", "store": "./w", **extra})
            )
        assert message in str(error.value)


class TestRowsOfUnitTests:
    """Values of rows are data: dbt puts them into quotes and casts them."""

    TYPES = "cast(null as date) as d, cast(null as int) as n, array('x') as l"

    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='table') }} "
        read = "select * from {{ ref('given') }}"
        return {"read.sql": read, "given.sql": f"{config}select {self.TYPES}", "schema.yml": ""}

    def run(self, project, rows: str, passes: bool) -> str:
        text = (
            "unit_tests: [{name: u, model: read, "
            f"given: [{{input: ref('given'), {rows}}}], expect: {{rows: []}}}}]"
        )
        write_file(text, project.project_root, "models", "schema.yml")
        found, log = run_dbt_and_capture(["test", "-s", "test_type:unit"], expect_pass=passes)
        return log if passes else str(found.results[0].message)

    @pytest.mark.parametrize(
        ("column", "sql"),
        [("d", "current_date()"), ("d", "date '2024-01-01'"), ("n", "1 + 1"), ("l", "array('a')")],
    )
    def test_with_sql_in_quotes_name_the_format_for_it(self, project, column, sql):
        if not hasattr(project, "is_built"):
            run_dbt(["run"])
            project.is_built = True
        message = self.run(project, f'rows: [{{{column}: "{sql}"}}]', passes=False)
        assert "give these rows as a query: `format: sql`" in message
        row = f"select {sql} as {column} limit 0"
        self.run(project, f'format: sql, rows: "{row}"', passes=True)
