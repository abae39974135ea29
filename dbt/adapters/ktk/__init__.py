"""The dbt adapter `ktk`: Spark-backed cubes in the Kartothek v4 format."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.ktk.connections import KtkConnectionManager
from dbt.adapters.ktk.credentials import (
    KtkCredentials,
    call_constraints_enforced,
    name_undecodable_files,
    show_target_type,
)
from dbt.adapters.ktk.impl import KtkAdapter
from dbt.adapters.ktk.relation import KtkRelation
from dbt.include import ktk

__all__ = ["KtkAdapter", "KtkConnectionManager", "KtkCredentials", "KtkRelation", "Plugin"]

Plugin = AdapterPlugin(
    adapter=KtkAdapter,  # type: ignore[arg-type]
    credentials=KtkCredentials,
    include_path=ktk.PACKAGE_PATH,
    dependencies=["spark"],
)

show_target_type()
name_undecodable_files()
call_constraints_enforced()
