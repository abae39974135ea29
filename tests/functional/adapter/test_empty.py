"""dbt-tests-adapter: empty."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)

_SEED_EMPTY = "a defect of the suite (https://github.com/dbt-labs/dbt-core/pull/12716)"
_WHY = "`dbt seed --empty` belongs to dbt-core 1.12; `build --empty` is tested"


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestTestEmptySeedFlag(BaseTestEmptySeedFlag):
    @pytest.mark.left_out(_SEED_EMPTY, _WHY, until="1.12")
    def test_seed_empty_creates_table_with_zero_rows(self, project):
        super().test_seed_empty_creates_table_with_zero_rows(project)

    @pytest.mark.left_out(_SEED_EMPTY, _WHY, until="1.12")
    def test_seed_empty_preserves_column_types(self, project):
        super().test_seed_empty_preserves_column_types(project)


@pytest.mark.cells("my_id")
class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    pass
