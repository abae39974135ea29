"""Rebuilds models whose columns have changed (`on_schema_change: full_refresh`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.materialize.materializations import Materializations

_LOGGER = AdapterLogger("ktk")


class Rebuilds(Materializations):
    """Finds models whose query has other columns than their dataset."""

    @available.parse(lambda *_, **__: False)
    def rebuilds(self, model: Mapping[str, Any], relation: BaseRelation, sql: str) -> bool:
        """Whether a model with `on_schema_change: full_refresh` has other columns than stored.

        Args:
            model: the node as Jinja's `model`.
            relation: the model's relation.
            sql: the query of an incremental run.

        Returns:
            Whether to render its query again, for which `is_incremental()` is now false.

        Raises:
            DbtConfigError: the query cannot be rendered again.
        """
        config = self._dataset_config_of(model)
        if config.target.on_schema_change != "full_refresh":
            return False
        if not (config.keeps_rows or config.target.cube):
            return False
        from ktk_engine.spark.arrow_types import arrow_schema
        from ktk_engine.write.build import changed_columns

        if model["language"] != "sql":
            raise DbtConfigError(
                f"Model {config.model}: config `on_schema_change` is 'full_refresh', but the "
                "columns of a Python model are known only once it has run. Nothing was written. "
                "Use another value, and --full-refresh when its columns change."
            )
        with self._after_header(model, sql) as query:
            found = arrow_schema(self.connections.sessions.current().schema_of(query))
            store = self.connections.warehouse.create_schema(str(relation.schema))
            config = self._with_fitting_types(config, lambda: found)
            changed = changed_columns(store, found, config.target)
        if not changed:
            return False
        names = ", ".join(dict.fromkeys(finding.column for finding in changed))
        if model.get("extra_ctes"):
            raise DbtConfigError(
                f"Model {config.model}: its columns have changed ({names}), and it reads ephemeral "
                "models, whose queries are not rendered again. Nothing was written. Run it with "
                "--full-refresh."
            )
        _LOGGER.warning(
            f"{relation} is rebuilt, as with --full-refresh: its columns have changed ({names}), "
            "and on_schema_change is full_refresh."
        )
        self._with_other_columns.add(str(model["unique_id"]))
        return True
