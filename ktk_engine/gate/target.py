"""What a write aims at: a dataset, its role, and how its files are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ktk_engine.cube.dataset_uuid import dataset_uuid, split_uuid
from ktk_engine.cube.specification import CubeSpecification, check_cube_name, check_together
from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.claimant import Claimant
from ktk_engine.gate.constraint import CONSTRAINTS, Constraint
from ktk_engine.log.entry import DatasetRole
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.key import check_new_uuid
from ktk_engine.types.check_columns import OnSchemaChange
from ktk_engine.types.identifier import Identifier, find_names


@dataclass(frozen=True)
class Target:
    """A dataset to be written.

    Attributes:
        dataset: its id within the cube, or the uuid of a plain table.
        role: `seed`, `enrichment` or `table`.
        cube: the cube's name; empty for a plain table.
        dimension_columns: what addresses a cell in it, in order; empty for a plain table.
        partition_by: how its files are laid out, in order.
        indexes: further columns with a secondary index.
        suppress_index_on: dimension columns of a seed dataset without an index.
        clustered_by: columns by which the rows of a plain table's files are sorted, so that
            conditions on them skip row groups; a cube's are sorted by dimension columns.
        buckets: into how many tasks the rows are dealt that are written; None leaves it to Spark.
        bucket_by: columns by which the rows of a partition are dealt to several tasks; in a cube
            dimension columns, by default all of them.
        num_buckets: to how many; each writes files of its own, and no two hold the same cell.
        compression: Parquet codec.
        row_group_rows: rows in a row group.
        declared: types of columns, as the model's YAML gives them.
        contract: whether the model has to have exactly the declared columns.
        on_schema_change: which differences from the committed schema a run accepts.
        constraints: what its rows have to keep.
        keeps_versions: whether it is a snapshot, which nothing rebuilds.
        cascade: whether enrichments that a full refresh of the seed dataset breaks leave the cube.
        relation: name by which SQL knows it; empty leaves it as it is, at first the dataset's id.
        claimant: the dbt node that builds it; None for what a person does by hand.
        metadata: what users note of it, beside what they noted before.
    """

    dataset: str
    role: DatasetRole = "table"
    cube: str = ""
    dimension_columns: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    suppress_index_on: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    buckets: int | None = None
    bucket_by: tuple[str, ...] = ()
    num_buckets: int = 1
    compression: str = "zstd"
    row_group_rows: int = 131_072
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    contract: bool = False
    on_schema_change: OnSchemaChange = "fail"
    constraints: tuple[Constraint, ...] = ()
    keeps_versions: bool = False
    cascade: bool = False
    relation: str = ""
    claimant: Claimant | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Target:
        """A dataset as it is laid out."""
        cube, dataset = split_uuid(snapshot.uuid)
        dimensions = snapshot.dimension_columns if cube else ()
        indices = snapshot.with_index
        return cls(
            dataset=dataset,
            role="table" if not cube else ("seed" if snapshot.is_seed else "enrichment"),
            cube=cube,
            dimension_columns=dimensions,
            partition_by=snapshot.partition_keys,
            clustered_by=snapshot.clustered_by,
            indexes=tuple(name for name in indices if name not in dimensions or not cube),
            suppress_index_on=tuple(
                name for name in dimensions if snapshot.is_seed and name not in indices
            ),
            constraints=tuple(map(Constraint.of, snapshot.properties.get(CONSTRAINTS, ()))),
        )

    def __post_init__(self) -> None:
        check_cube_name("dataset", self.dataset)
        if self.cube:
            check_cube_name("prefix", self.cube)
            check_together(self.cube, self.dataset)
        check_new_uuid(self.uuid)
        repeated = sorted({n for n in self.partition_by if self.partition_by.count(n) > 1})
        if repeated:
            raise ConfigurationError(
                f"Dataset {self.dataset}: partition_by names {', '.join(repeated)} twice."
            )
        if (self.num_buckets > 1) != bool(self.bucketing):
            raise ConfigurationError(
                f"Dataset {self.dataset}: bucket_by and num_buckets go together: by which columns "
                "the rows of a partition are dealt, and to how many files at least."
            )
        if self.role == "table":
            return
        if self.clustered_by:
            raise ConfigurationError(
                f"Dataset {self.dataset}: clustered_by is for plain tables; the files of a cube "
                "are sorted by partition and dimension columns. Remove it."
            )
        dimensions = set(map(Identifier, self.dimension_columns))
        if others := [name for name in self.bucket_by if Identifier(name) not in dimensions]:
            raise ConfigurationError(
                f"Dataset {self.dataset}: bucket_by names {', '.join(sorted(others))}. Name "
                "dimension columns, so that equal cells come together and are found."
            )
        if not self.cube:
            raise ConfigurationError(f"Dataset {self.dataset} is a {self.role} of no cube.")
        CubeSpecification(  # its rules hold for what an enrichment says of itself as well
            self.cube,
            self.dimension_columns,
            self.partition_by if self.role == "seed" else (),
            self.dataset,
            frozenset(self.indexes) - set(self.dimension_columns) - set(self.partition_by),
            frozenset(find_names(self.suppress_index_on, self.dimension_columns)),
        )

    @property
    def bucketing(self) -> tuple[str, ...]:
        """The columns by which the rows of a partition are dealt to tasks, if to several."""
        cells = tuple(c for c in self.dimension_columns if c not in self.partition_by)
        return self.bucket_by or (cells if self.num_buckets > 1 else ())

    @property
    def uuid(self) -> str:
        """The dataset's uuid."""
        return dataset_uuid(self.cube, self.dataset)

    @property
    def scope(self) -> LogScope:
        """The log that its commits go to."""
        return cube_scope(self.cube) if self.cube else scope_of(self.dataset)

    def __str__(self) -> str:
        return self.uuid

    @property
    def select(self) -> str:
        """What `dbt build -s` takes for it."""
        return self.claimant.builder.name if self.claimant else self.relation or self.dataset

    @property
    def name(self) -> str | None:
        """The name that SQL is to know it by, as the log keeps it; None leaves it as it is."""
        return None if not self.relation else "" if self.relation == self.dataset else self.relation
