"""Constraints of contracts: verified over all rows, before the commit."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import rows

SCHEMA = """
models:
  - name: orders
    config: {contract: {enforced: true}}
    constraints:
      - {type: primary_key, columns: [id, region]}
      - {type: check, expression: "price > 0 and region != 'a/b%=ü' -- sense", name: sensible}
      - {type: foreign_key, columns: [region], expression: "regions (id)"}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: region, data_type: string}
      - {name: price, data_type: double}
      - {name: count, data_type: bigint, constraints: [{type: unique}]}
"""
CONFIG = "{{{{ config(materialized='incremental', partition_by=['region'], {more}) }}}}"
PLAIN = "incremental_strategy='append', on_schema_change='fail'"
CUBE = PLAIN + ", cube='shop', cube_role='seed', dimension_columns=['id']"
COLUMNS = ("id", "region", "price", "count")
GOOD = "(1, 'ü/%', 1.0D, 10), (2, 'ü/%', null, null), (1, 'b', 3.0D, null)"


def model(more: str, values: str) -> str:
    cast = ", ".join(
        f"cast({c} as {t}) as {c}"
        for c, t in zip(COLUMNS, ("bigint", "string", "double", "bigint"), strict=True)
    )
    return (
        CONFIG.format(more=more) + f" select {cast} from values {values} t(id,region,price,count)"
    )


@pytest.mark.parametrize("kind", [PLAIN, CUBE], ids=["table", "cube"])
class TestConstraints:
    @pytest.fixture(scope="class")
    def models(self):
        return {"schema.yml": SCHEMA, "orders.sql": "select 1 as id"}

    @pytest.fixture
    def run(self, project, kind):
        def run(values: str, succeeds: bool = True, full: bool = False) -> str:
            write_file(model(kind, values), project.project_root, "models", "orders.sql")
            arguments = ["run", *(["--full-refresh"] if full else [])]
            results, log = run_dbt_and_capture(arguments, expect_pass=succeeds)
            return log if succeeds else results[0].message

        return run

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ("(1, 'x', 1D, 1), (1, 'x', 2D, 2)", "id=1"),
            ("(1, 'x', 1D, 1), (2, 'x', 2D, 1)", "2 rows have count=1"),
            ("(1, 'x', -1D, 1)", "1 row breaks the constraint sensible check (price > 0"),
            ("(1, 'x', -1D, 1)", "Example: id=1, region='x', price=-1.0, count=1"),
            # A row that stands already, whose partition this run does not touch.
            ("(7, 'x', 1D, 10)", "2 rows have count=10"),
        ],
    )
    def test_broken_constraints_change_nothing(self, project, run, values, message):
        run(GOOD, full=True)
        before = rows(project, "select * from {s}.orders")
        assert message in run(values, succeeds=False)
        assert rows(project, "select * from {s}.orders") == before

    def test_nulls_break_not_null_and_primary_keys(self, run, kind):
        message = run("(null, 'x', 1D, 1)", succeeds=False, full=True)
        if kind is PLAIN:
            assert "1 row breaks the constraint not_null (id)" in message
        else:
            assert "has no value in `id`" in message  # cells have none of them anyway

    def test_what_is_fulfilled_passes_and_foreign_keys_are_said_to_be_unchecked(self, project, run):
        run(GOOD, full=True)
        log = run("(3, 'ü/%', 5D, 11), (1, 'c', null, null)")
        assert "Model orders: the constraint foreign_key (region) is not checked." in log
        assert len(rows(project, "select * from {s}.orders")) == 5

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ("9, 'x', -1D, null", "1 row breaks the constraint sensible check"),
            ("9, 'x', 1D, 10", "2 rows have count=10"),
            ("null, 'x', 1D, 1", "`id`"),
        ],
    )
    def test_rows_that_are_inserted_by_hand_keep_them_too(self, project, run, values, message):
        run(GOOD, full=True)
        before = rows(project, "select * from {s}.orders")
        with pytest.raises(Exception, match="nothing was committed") as error:
            project.run_sql(f"insert into {{schema}}.orders select {values}")
        assert message.replace("`id`", "id") in str(error.value).replace("`", "")
        assert rows(project, "select * from {s}.orders") == before
        project.run_sql("insert into {schema}.orders select 9, 'x', 1D, 99")
        run("(10, 'x', 1D, 100)")
        assert len(rows(project, "select * from {s}.orders")) == len(before) + 2
        project.run_sql("truncate table {schema}.orders")
        with pytest.raises(Exception, match="nothing was committed"):
            project.run_sql("insert into {schema}.orders select 9, 'x', -1D, null")

    def test_an_expression_that_fits_nothing_is_refused_before_writing(self, project, run):
        run(GOOD, full=True)
        text = SCHEMA.replace("price > 0", "prize > 0")
        write_file(text, project.project_root, "models", "schema.yml")
        message = run("(9, 'x', 1D, 99)", succeeds=False)
        write_file(SCHEMA, project.project_root, "models", "schema.yml")
        assert "prize" in message and "Nothing was written" in message


class TestDatasetsOfCubes:
    @pytest.fixture(scope="class")
    def models(self):
        columns = "columns: [{name: id, data_type: bigint, constraints: [{type: not_null}]}, "
        said = f"config: {{contract: {{enforced: true}}}}, {columns}"
        check = "constraints: [{type: check, expression: price > 0}]"
        price = f"{{name: price, data_type: bigint, {check}}}]"
        config = "{{{{ config(materialized='cube_{}', cube='shop', "
        config += "dimension_columns=['id']) }}}} select id, "
        return {
            "schema.yml": f"models: [{{name: o, {said}{price}}}, {{name: p, {said}"
            "{name: n, data_type: bigint}]}]",
            "o.sql": config.format("seed") + "id + {{ var('more', 1) }} as price from range(3)",
            "p.sql": config.format("enrichment") + "id as n from {{ ref('o') }}",
        }

    def test_are_verified_and_not_called_ignored(self, project):
        _, log = run_dbt_and_capture(["--warn-error", "run", "--no-partial-parse"])
        assert "will be ignored" not in " ".join(log.split())
        said = "run", "--vars", "more: 0", "-s", "o"
        (result,) = run_dbt([*said], expect_pass=False).results
        assert "1 row breaks the constraint check (price > 0)" in result.message


class TestWithoutContract:
    @pytest.fixture(scope="class")
    def models(self):
        schema = SCHEMA.replace("contract: {enforced: true}", "tags: [free]")
        return {"schema.yml": schema, "orders.sql": model(PLAIN, "(1, 'x', -1D, 1)")}

    def test_constraints_belong_to_contracts(self, project):
        assert len(run_dbt(["run"])) == 1


class TestLimitedTexts:
    @pytest.fixture(scope="class")
    def models(self):
        schema = """
models:
  - name: codes
    config: {contract: {enforced: true}}
    columns: [{name: code, data_type: varchar(3)}, {name: word, data_type: string}]
"""
        text = "{{ config(materialized='table') }} select '{{ var(\"code\") }}' as code, 'x' word"
        return {"schema.yml": schema, "codes.sql": text}

    def test_longer_ones_are_refused(self, project):
        run_dbt(["run", "--vars", "code: abü"])
        (result,) = run_dbt(["run", "--vars", "code: abcd"], expect_pass=False).results
        assert "breaks the constraint varchar(3) check (length(`code`) <= 3)" in result.message
        with pytest.raises(Exception, match="nothing was committed"):
            project.run_sql("insert into {schema}.codes values ('12345', 'x')")
        assert rows(project, "select code from {s}.codes") == [("abü",)]
