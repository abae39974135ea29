"""Makes cube datasets of a project's tables, incremental models, seeds and snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from dbt.contracts.graph.manifest import Manifest


@dataclass(frozen=True)
class Cells:
    """Which columns address the rows of a project's datasets.

    Attributes:
        default: dimension columns, where a node has none of its own.
        nodes: name of a node -> its dimension columns; none of them leaves it a plain table.
    """

    default: tuple[str, ...] = ("id",)
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, name: str) -> Sequence[str]:
        """Dimension columns of a node."""
        return self.nodes.get(name, self.default)


def cells_of(node: pytest.Item | pytest.Collector) -> Cells:
    """Read `@pytest.mark.cells(*default, node=[...])` of a test class.

    Args:
        node: the class, as pytest has it.
    """
    mark = node.get_closest_marker("cells")
    if mark is None:
        return Cells()
    return Cells(mark.args or Cells.default, mark.kwargs)


def as_cubes(manifest: Manifest, cells: Cells) -> None:
    """Change the configuration of every node that stores rows, as if it were written so.

    Args:
        manifest: what dbt has just read.
        cells: the dimension columns.
    """
    for node in manifest.nodes.values():
        config = node.config
        if config.materialized not in ("table", "incremental", "seed", "snapshot"):
            continue
        dimensions = list(cells.of(node.name))
        if config.materialized == "snapshot":
            dimensions = [config.snapshot_table_column_names["dbt_scd_id"]]
        if not dimensions:
            continue
        if config.materialized == "table":
            config.materialized = "cube_seed"
        else:
            config._extra["cube_role"] = "seed"
        config._extra |= {"cube": f"{node.alias}_cube", "dimension_columns": dimensions}
