"""A project in the shape of one that runs dbt-spark in production: 477 nodes, and their configs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]

VIEWS, TABLES, INCREMENTAL, SNAPSHOTS = 144, 150, 159, 24
# What is said besides the materialization, each by some models of each kind.
_SAID: tuple[Config, ...] = (
    {},
    {"tblproperties": {"delta.autoOptimize.optimizeWrite": "true", "quality": "gold"}},
    {"persist_docs": {"relation": True, "columns": True}},
    {"grants": {"select": ["analysts", "bi"]}},
    {"pre_hook": ["set spark.sql.shuffle.partitions = 1"], "tags": ["nightly"]},
    {"clustered_by": ["id"], "buckets": 4},
    {"liquid_clustered_by": ["id"]},
    {"submission_method": "all_purpose_cluster", "meta": {"owner": "data"}},
    {"unique_tmp_table_suffix": True},
    {"zorder": "id"},
    {"options": {"compression": "snappy"}},
    {"post_hook": []},
    {"databricks_tags": {"domain": "sales"}, "group": None},
    {"auto_liquid_cluster": False, "table_format": "default"},
    {"docs": {"show": False}, "alias": None, "full_refresh": False},
    {"sql_header": "set spark.sql.ansi.enabled = true;"},
)


def nodes() -> dict[str, Config]:
    """Name of a node -> its config."""
    delta, roots = iter(range(190)), iter(range(7))
    found: dict[str, Config] = {}
    for number in range(VIEWS):
        found[f"stg_{number}"] = {"materialized": "view", **_said(number)}
    for number in range(TABLES):
        found[f"dim_{number}"] = {"materialized": "table", **_said(number), **_root(roots)}
    for number in range(INCREMENTAL):
        found[f"fct_{number}"] = {
            "materialized": "incremental",
            **(_overwritten(number) if number < 87 else _merged(number)),
            **_said(number),
        }
    for name, config in found.items():
        if not name.startswith("stg_") and next(delta, None) is not None:
            config["file_format"] = "delta"
    for number in range(SNAPSHOTS):
        by = {"strategy": "timestamp", "updated_at": "updated_at"}
        found[f"snap_{number}"] = {
            "materialized": "snapshot",
            "unique_key": "id",
            "file_format": "parquet",
            **(by if number % 2 else {"strategy": "check", "check_cols": ["amount"]}),
        }
    return found


def _said(number: int) -> Config:
    return {key: value for key, value in _SAID[number % len(_SAID)].items() if value is not None}


def _root(roots: Iterator[int]) -> Config:
    return {} if next(roots, None) is None else {"location_root": "s3://lake/gold"}


def _overwritten(number: int) -> Config:
    """Partitions are replaced by the models of other warehouses alone."""
    return {"incremental_strategy": "insert_overwrite", "on_schema_change": "ignore"}


def _merged(number: int) -> Config:
    strategies: list[Config] = [
        {"incremental_strategy": "merge", "unique_key": "id"},
        {"incremental_strategy": "merge", "unique_key": ["id", "day"], "partition_by": "day"},
        {"incremental_strategy": "append", "partition_by": ["day"]},
        {"incremental_strategy": "insert_overwrite", "partition_by": ["day"]},
        {"incremental_strategy": "merge", "unique_key": "id", "merge_update_columns": ["amount"]},
        {
            "incremental_strategy": "merge",
            "unique_key": "id",
            "incremental_predicates": ["DBT_INTERNAL_DEST.day >= '2024-01-01'"],
            "on_schema_change": "append_new_columns",
        },
        {"unique_key": "id", "partition_by": {"field": "day", "data_type": "date"}},
    ]
    return strategies[number % len(strategies)]


def write(folder: Path, wanted: dict[str, Config]) -> None:
    """Write nodes as a project."""
    project = {"name": "production", "profile": "project", "flags": {"use_colors": False}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    sql = (
        "select id, id * 10 as amount, date_add(date'2024-01-01', cast(id % 3 as int)) as day, "
        "timestamp'2024-01-01 00:00:00' as updated_at from range(6)"
    )
    for name, config in wanted.items():
        said = dict(config)
        if said.pop("materialized") == "snapshot":
            text = f"{{% snapshot {name} %}}{{{{ config(**{said!r}) }}}}{sql}{{% endsnapshot %}}"
            place = folder / "snapshots" / f"{name}.sql"
        else:
            text, place = (
                f"{{{{ config(**{config!r}) }}}}\n{sql}",
                folder / "models" / f"{name}.sql",
            )
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)


def a_part(found: dict[str, Config]) -> dict[str, Config]:
    """One node of each kind and each form of config."""
    kinds = {(name.split("_")[0], tuple(sorted(config))): name for name, config in found.items()}
    kept = {name: found[name] for name in kinds.values() if not name.startswith("stg_")}
    return dict(islice(kept.items(), 0, None, 3))
