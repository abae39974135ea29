"""dbt-tests-adapter: simple_seed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride

from tests.functional.adapter.in_spark import run_in_spark
from tests.functional.adapter.left_out import NOT_SPARK

_CASCADE = "nothing drops what depends on a table; the full refresh itself: full_refresh: false"


class Expected:
    """The table that seeds are compared with."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        run_in_spark(project, seeds.seeds__expected_sql)


@pytest.mark.cells("seed_id")
class TestBasicSeedTests(Expected, BaseBasicSeedTests):
    @pytest.mark.left_out(NOT_SPARK, _CASCADE)
    def test_simple_seed_full_refresh_flag(self, project):
        super().test_simple_seed_full_refresh_flag(project)


@pytest.mark.cells("seed_id")
class TestSeedConfigFullRefreshOn(Expected, BaseSeedConfigFullRefreshOn):
    @pytest.mark.left_out(NOT_SPARK, _CASCADE)
    def test_simple_seed_full_refresh_config(self, project):
        super().test_simple_seed_full_refresh_config(project)


@pytest.mark.cells("seed_id")
class TestSeedConfigFullRefreshOff(Expected, BaseSeedConfigFullRefreshOff):
    pass


@pytest.mark.cells("seed_id")
class TestSeedCustomSchema(Expected, BaseSeedCustomSchema):
    pass


@pytest.mark.cells("seed_id")
class TestSeedParsing(Expected, BaseSeedParsing):
    pass


@pytest.mark.cells("seed_id")
class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        """The file's name has dots; the relation's may not (it is part of its files' keys)."""
        return {
            "seeds": {
                "quote_columns": False,
                "test": {"seed.with.dots": {"+alias": "seed_with_dots"}},
            }
        }


@pytest.mark.cells("seed_id")
class TestSeedWithEmptyDelimiter(Expected, BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.cells("seed_id")
class TestSeedWithUniqueDelimiter(Expected, BaseSeedWithUniqueDelimiter):
    pass


@pytest.mark.cells("seed_id")
class TestSeedWithWrongDelimiter(Expected, BaseSeedWithWrongDelimiter):
    pass


@pytest.mark.cells("seed_id")
class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


@pytest.mark.cells("seed_id")
class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        run_in_spark(project, seeds.seeds__expected_sql)
        source = Path(seeds.__file__).parent / "seed_bom.csv"
        shutil.copy(source, Path(project.project_root) / "seeds" / "seed_bom.csv")


@pytest.mark.cells("a")
class TestTestEmptySeed(BaseTestEmptySeed):
    pass


@pytest.mark.cells("seed_id")
class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self):
        text = fixtures.properties__schema_yml
        for postgres, spark in (
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
            ("type: timestamp without time zone", "type: timestamp"),
            ("type: date", "type: timestamp_ntz"),  # a date would lose the time of day
        ):
            assert postgres in text
            text = text.replace(postgres, spark)
        return {"schema.yml": text}

    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "timestamp_ntz"}

    @staticmethod
    def seed_tricky_types():
        return dict.fromkeys(["seed_id_str", "looks_like_a_bool", "looks_like_a_date"], "string")
