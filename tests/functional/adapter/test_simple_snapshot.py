"""dbt-tests-adapter: simple_snapshot."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.simple_snapshot import fixtures, test_various_configs
from dbt.tests.adapter.simple_snapshot import new_record_dbt_valid_to_current as valid_to_current
from dbt.tests.adapter.simple_snapshot import new_record_timestamp_mode as timestamp_mode
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import (
    BaseSnapshotNewRecordTimestampMode,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)

from tests.functional.adapter.in_spark import speak_postgres


@pytest.fixture(scope="class")
def project(project):
    """Whose statements may be Postgres's."""
    speak_postgres(project)
    return project


def two_part(sql: str) -> str:
    """A model of the suite with two-part names."""
    text = sql.replace("{{target.database}}.", "")
    assert text != sql
    return text


class SnapshotOfSeed:
    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"snapshot.sql": two_part(fixtures.snapshot_actual_sql)}


class TestSimpleSnapshot(BaseSimpleSnapshot):
    pass


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotColumnNames(SnapshotOfSeed, BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(SnapshotOfSeed, BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestSnapshotInvalidColumnNames(SnapshotOfSeed, BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(SnapshotOfSeed, BaseSnapshotDbtValidToCurrent):
    @pytest.fixture(scope="class", autouse=True)
    def in_order(self):
        """The base takes rows as Postgres leaves them: by id, what was closed first."""
        run_sql = test_various_configs.run_sql_with_adapter

        def ordered(adapter, sql, fetch):
            return run_sql(adapter, f"{sql} order by id, test_valid_to", fetch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(test_various_configs, "run_sql_with_adapter", ordered)
            yield


class TestSnapshotMultiUniqueKey(BaseSnapshotMultiUniqueKey):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "seed.sql": two_part(fixtures.model_seed_sql),
            "snapshots.yml": fixtures.snapshots_multi_key_yml,
            "ref_snapshot.sql": fixtures.ref_snapshot_sql,
        }


class NewRecord:
    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"snapshot.sql": two_part(timestamp_mode._snapshot_actual_sql)}


class TestSnapshotNewRecordTimestampMode(NewRecord, BaseSnapshotNewRecordTimestampMode):
    pass


class TestSnapshotNewRecordCheckMode(NewRecord, BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"snapshot.sql": two_part(valid_to_current._snapshot_actual_sql)}


class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass
