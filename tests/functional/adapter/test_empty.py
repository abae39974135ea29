"""dbt-tests-adapter: empty."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.tests.util import run_dbt

from tests.functional.adapter.left_out import NOT_SPARK

_SEED_EMPTY = "a defect of the suite (https://github.com/dbt-labs/dbt-core/pull/12716)"
_WHY = "`dbt seed --empty` belongs to dbt-core 1.12; `build --empty` is tested"


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestTestEmptySeedFlag(BaseTestEmptySeedFlag):
    @pytest.mark.left_out(_SEED_EMPTY, _WHY)
    def test_seed_empty_creates_table_with_zero_rows(self, project):
        super().test_seed_empty_creates_table_with_zero_rows(project)

    @pytest.mark.left_out(_SEED_EMPTY, _WHY)
    def test_seed_empty_preserves_column_types(self, project):
        super().test_seed_empty_preserves_column_types(project)


def _left_out(model: str, why: str):
    return pytest.param(model, marks=pytest.mark.left_out(NOT_SPARK, why))


@pytest.mark.cells("my_id")
class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    @pytest.mark.parametrize(
        "model",
        [
            "control",
            "get_columns_in_relation",
            _left_out("alter_column_type", "a column's type cannot be altered in place"),
            "alter_relation_comment",
            "alter_column_comment",
            _left_out("alter_relation_add_remove_columns", "columns cannot be dropped in place"),
            "truncate_relation",
        ],
    )
    def test_run(self, project, model):
        run_dbt(["run", "--empty", "--select", model])

    def test_every_model_of_the_base_is_here(self):
        (base,) = MetadataWithEmptyFlag.test_run.pytestmark
        (own,) = TestMetadataWithEmptyFlag.test_run.pytestmark
        assert [getattr(item, "values", (item,))[0] for item in own.args[1]] == base.args[1]
