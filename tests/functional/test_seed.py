"""dbt seeds: one Arrow write; a CSV may be a dataset of a cube."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.cube_models import SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, scope_of


class TestSeed:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {
            "people.csv": 'id,name,big,note\n1,O\'Brien,9007199254740993,\n2,,7,"x, y"\n',
            "ragged.csv": "zip,a,b\n00892,x\n01234,,z\n",
            "names.csv": "L,word\n0,zero\n1,one\n99,nobody\n",
        }

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": SEED,
            "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('names')) }}",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        names = {"cube": "c", "cube_role": "enrichment", "dimension_columns": ["L"]}
        return {
            "seeds": {
                "test": {
                    "names": {f"+{key}": value for key, value in names.items()},
                    "ragged": {"+ragged": "fill"},
                    "people": {"+column_types": {"id": "uint8"}},
                }
            }
        }

    def test_values_are_exact_and_the_table_is_replaced(self, project):
        (people, names) = run_dbt(["seed", "-s", "people", "names"]).results
        assert (
            people.adapter_response["rows_affected"] + names.adapter_response["rows_affected"] == 5
        )
        assert rows(project, "select id, name, big, note from {s}.people order by id") == [
            (1, "O'Brien", 9007199254740993, None),
            (2, None, 7, "x, y"),
        ]
        text = "id,name,big,note\n3,Ada,1,\n"
        write_file(text, project.project_root, "seeds", "people.csv")
        run_dbt(["seed"])
        assert rows(project, "select * from {s}.people") == [(3, "Ada", 1, None)]
        run_dbt(["seed", "--full-refresh"])  # the same rows are the same version
        state = resolve(store_of(project), scope_of("people"))
        assert state.version == 2
        assert str(state.snapshot("people").physical_schemas[0].field("id").type) == "uint8"

    def test_short_rows_are_filled_and_lost_zeros_said(self, project):
        _, log = run_dbt_and_capture(["seed", "-s", "ragged"])
        assert rows(project, "select zip, a, b from {s}.ragged order by zip") == [
            (892, "x", None),
            (1234, None, "z"),
        ]
        assert log.count("ragged.csv: leading zeros and marks are lost") == 1

    def test_a_csv_is_an_enrichment(self, project):
        run_dbt(["build"])
        assert rows(project, "select L, word from {s}.c where word is not null order by L") == [
            (0, "zero"),
            (1, "one"),
        ]
        assert set(resolve(store_of(project), cube_scope("c")).datasets) == {"c++cells", "c++names"}

    @pytest.mark.parametrize(
        ("file", "text"),
        [
            ("seeds/latin.csv", b"a,b\n1,r\xe9sum\xe9\n"),
            ("models/latin.sql", b"select\n'r\xe9sum\xe9' as a"),
            ("models/latin.yml", b"models:\n  # r\xe9sum\xe9\n"),
        ],
    )
    def test_a_file_in_another_encoding_is_named(self, project, file, text):
        path = Path(project.project_root, file)
        path.write_bytes(text)
        try:
            with pytest.raises(DbtRuntimeError) as error:
                run_dbt(["parse"])
        finally:
            path.unlink()
        assert f"{path.name}: line 2: byte 0xe9 is not UTF-8. Save the file in" in str(error.value)
