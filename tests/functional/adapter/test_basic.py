"""dbt-tests-adapter: basic."""

from __future__ import annotations

import getpass

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import (
    BaseGetCatalogForSingleRelation,
)
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.util import AnyString, run_dbt
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.documentation.catalog import STATISTICS
from dbt.adapters.ktk.impl import KtkAdapter
from tests.functional.adapter.in_spark import columns_of, rebuilt
from tests.support.committed import list_relations
from tests.support.stores import LocalStore

COLUMNS = ["id", "first_name", "email", "ip_address", "updated_at"]


def statistics(storage, columns=COLUMNS, cube="seed_cube") -> dict:
    """What docs show of a table of one row and file; its first column addresses a cube's cells."""
    values = {"rows": 1, "bytes": AnyNumber(), "files": 1, "partitions": 1}
    values["last_commit"] = AnyString()
    if storage == "cube":
        dimension, *payload = columns
        values |= {"cube": cube, "cube_role": "seed", "dimension_columns": dimension}
        values |= {"indexed_columns": dimension, "payload_columns": ", ".join(payload)}
    found = {
        name: {
            "id": name,
            "label": STATISTICS[name][0],
            "value": value,
            "description": STATISTICS[name][1],
            "include": True,
        }
        for name, value in values.items()
    }
    has_stats = {**expected_catalog.no_stats()["has_stats"], "value": True}
    return {**found, "has_stats": has_stats}


class AnyNumber:
    """Any number above zero that is not a boolean."""

    def __eq__(self, other):
        return isinstance(other, int | float) and not isinstance(other, bool) and other > 0


SPARK_TYPES = {
    "role": getpass.getuser(),
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
}


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestSimpleMaterializations(BaseSimpleMaterializations):
    @pytest.fixture(scope="class")
    def test_config(self, storage):
        """A dataset leaves its cube in a full refresh only."""
        return {"require_full_refresh": storage == "cube"}


@pytest.mark.cells(ephemeral_summary=["first_name"])
class TestDocsGenReferences(BaseDocsGenReferences):
    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def expected_catalog(self, project, storage):
        return expected_catalog.expected_references_catalog(
            project,
            **SPARK_TYPES,
            bigint_type="bigint",
            model_stats=statistics(storage, ["first_name", "ct"], "ephemeral_summary_cube"),
            seed_stats=statistics(storage),
            view_summary_stats=expected_catalog.no_stats(),
        )


class TestDocsGenerate(BaseDocsGenerate):
    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def expected_catalog(self, project, storage):
        return expected_catalog.base_expected_catalog(
            project,
            **SPARK_TYPES,
            model_stats=expected_catalog.no_stats(),
            seed_stats=statistics(storage),
        )


class TestEmpty(BaseEmpty):
    ARTIFACTS = True


class TestEphemeral(BaseEphemeral):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    def expected(self, project, name, kind, stats):
        types = ["bigint", "string", "string", "string", "timestamp"]
        columns = {
            column: ColumnMetadata(type_, index, column)
            for index, (column, type_) in enumerate(zip(COLUMNS, types, strict=True), start=1)
        }
        table = TableMetadata(kind, project.test_schema, name, owner=SPARK_TYPES["role"])
        return CatalogTable(table, columns, stats)

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project, storage):
        items = statistics(storage, cube="my_seed_cube")
        del items["has_stats"]  # dbt-core adds it
        stats = {name: StatsItem(**item) for name, item in items.items()}
        return self.expected(project, "my_seed", "table", stats)

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project):
        return self.expected(project, "my_view_model", "view", {})


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    """Configurations are checked before any model runs, with an adapter's own words."""

    def test_incremental_invalid_strategy(self, project):
        assert len(run_dbt(["seed"])) == 2  # what does not run is not checked
        with pytest.raises(DbtConfigError, match="incremental_strategy 'bad_strategy' is not"):
            run_dbt(["run"], expect_pass=False)
        assert set(project.get_tables_in_schema()) == {"base", "added"}


@pytest.mark.cells("user_id_current_time")
class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class UpdatedRows:
    """`update_rows` of the harness rebuilds the table: nothing changes one in place."""

    @pytest.fixture(scope="class")
    def project(self, project):
        update = KtkAdapter.update_column_sql

        def as_rebuild(adapter, **arguments):
            text = update(adapter, **arguments)
            (changed,) = rebuilt(text, lambda table: columns_of(project, table))
            return changed

        with pytest.MonkeyPatch.context() as patch:  # each command makes an adapter of its own
            patch.setattr(KtkAdapter, "update_column_sql", as_rebuild)
            yield project


class TestSnapshotCheckCols(UpdatedRows, BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(UpdatedRows, BaseSnapshotTimestamp):
    pass


class TestStorage:
    """Our own: storage `cube` makes cube datasets of what stores rows."""

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"base.csv": "id,name\n1,a\n"}

    @pytest.fixture(scope="class")
    def models(self):
        text = "{{ config(materialized='%s') }} select * from {{ ref('base') }}"
        return {f"a_{kind}.sql": text % kind for kind in ("table", "incremental", "view")}

    def test_what_relations_are(self, project, storage):
        assert len(run_dbt(["build"])) == 4
        store = LocalStore(f"{project.project_root}/warehouse/{project.test_schema}")
        uuid = "{0}_cube++{0}" if storage == "cube" else "{0}"
        names = ("a_incremental", "a_table", "base")
        found = {item.name: item.uuid for item in list_relations(store)}
        assert found == {name: uuid.format(name) for name in names} | {"a_view": ""}
