"""What a caller wants written: a dataset, its layout, what stays of it, and for which run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.dataset_uuid import dataset_uuid, split_uuid
from ktk_engine.cube.specification import CubeSpecification, check_cube_name, check_together
from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.constraint import CONSTRAINTS, Constraint
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.dbt_node import Owner
from ktk_engine.log.entry import DatasetRole, Operation
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.key import check_new_uuid
from ktk_engine.types.identifier import Identifier, find_names

Conditions: TypeAlias = Sequence[Condition]
OnSchemaChange = Literal["fail", "append_new_columns", "sync_all_columns", "ignore", "full_refresh"]
ON_SCHEMA_CHANGE: tuple[str, ...] = get_args(OnSchemaChange)


@dataclass(frozen=True)
class WriteRequest:
    """A wanted write: plain data, before any check against what is stored."""

    dataset: str  # its id in the cube, or the uuid of a plain table
    role: DatasetRole = "table"
    cube: str = ""  # empty for a plain table
    # the address of a cell, in order; empty for a plain table
    dimension_columns: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()  # in order
    indexes: tuple[str, ...] = ()  # further columns with a secondary index
    suppress_index_on: tuple[str, ...] = ()  # dimension columns of a seed dataset without an index
    # sort columns of a plain table's files, so that conditions skip row groups; a cube's files are
    # sorted by dimension columns
    clustered_by: tuple[str, ...] = ()
    buckets: int | None = None  # number of tasks that write; None: Spark decides
    # columns that distribute the rows of a partition over tasks; in a cube dimension columns, by
    # default all of them
    bucket_by: tuple[str, ...] = ()
    # number of these tasks; each writes its own files, and no two hold the same cell
    num_buckets: int = 1
    compression: str = "zstd"  # Parquet codec
    row_group_rows: int = 131_072
    # types of columns from the model's YAML
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    contract: bool = False  # whether the model must have exactly the declared columns
    on_schema_change: OnSchemaChange = "fail"  # accepted differences from the committed schema
    constraints: tuple[Constraint, ...] = ()
    keeps_versions: bool = False  # whether it is a snapshot, which is never rebuilt
    # whether enrichments that a full refresh of the seed dataset breaks leave the cube
    cascade: bool = False
    relation: str = ""  # its name in SQL; empty: unchanged, at first the dataset's id
    owner: Owner | None = None  # the dbt node that builds it; None for writes by hand
    # added to the user metadata that it has
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # How new rows meet old ones. `append` keeps every file, `partitions` replaces those of the new
    # rows, `files` replaces named files, and `nothing` keeps only the columns. None: rebuilt, as is
    # a dataset that does not exist yet.
    mode: Literal["append", "partitions", "files", "nothing"] | None = None
    replaced: pa.Table | None = None  # for `files`: rows of the dataset's table of files
    # A row that another commit adds meanwhile and that fulfils one of these conjunctions is a
    # conflict.
    looked_for: tuple[Conditions, ...] = ()
    verb: Operation = "replace"  # of the replacing, in the log
    full_refresh: bool = False  # the dataset is rebuilt: column classes may change
    history: Mapping[str, str] = field(default_factory=dict)  # of the commit, for the log
    built_by: Mapping[str, str] | None = None  # dataset id -> its dbt model, for messages
    reads: Reads = NOTHING_READ  # by the computation of the rows
    # The cube's datasets in other stores, by id: the write has to fit them, and they stay.
    external: Mapping[str, Snapshot] = field(default_factory=dict)
    # Ids of the cube's datasets that the run is yet to replace: misfits among them leave the cube.
    rebuilt: Callable[[], Collection[str]] = tuple

    @classmethod
    def of(cls, snapshot: Snapshot) -> WriteRequest:
        """A dataset with its current layout."""
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
        if self.verb == "compact":
            return  # it keeps the rows as they are, under names that no new dataset may have
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
                f"Dataset {self.dataset}: bucket_by and num_buckets go together: the columns that "
                "distribute the rows of a partition, and the least number of files."
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
        _ = self.specification  # its rules also hold for the cube of an enrichment

    @cached_property
    def specification(self) -> CubeSpecification:
        """The cube of this dataset alone."""
        return CubeSpecification(
            self.cube,
            self.dimension_columns,
            self.partition_by if self.role == "seed" else (),
            self.dataset,
            frozenset(self.indexes) - set(self.dimension_columns) - set(self.partition_by),
            frozenset(find_names(self.suppress_index_on, self.dimension_columns)),
        )

    @property
    def is_bound(self) -> bool:
        """Whether the stored columns bind those of the new rows."""
        return not self.full_refresh and (self.role != "table" or self.mode is not None)

    @property
    def operation(self) -> Operation:
        """The verb in the log of a write that keeps rows."""
        return "append" if self.mode == "append" else self.verb

    @property
    def bucketing(self) -> tuple[str, ...]:
        """The columns that distribute the rows of a partition over several tasks, if any."""
        cells = tuple(c for c in self.dimension_columns if c not in self.partition_by)
        return self.bucket_by or (cells if self.num_buckets > 1 else ())

    @property
    def uuid(self) -> str:
        """The dataset's uuid."""
        return dataset_uuid(self.cube, self.dataset)

    @property
    def scope(self) -> LogScope:
        """The log of its commits."""
        return cube_scope(self.cube) if self.cube else scope_of(self.dataset)

    def __str__(self) -> str:
        return self.uuid

    @property
    def select(self) -> str:
        """Its selector for `dbt build -s`."""
        return self.owner.builder.name if self.owner else self.relation or self.dataset

    @property
    def name(self) -> str | None:
        """Its name in SQL for the log; None leaves it as it is."""
        return None if not self.relation else "" if self.relation == self.dataset else self.relation
