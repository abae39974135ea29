"""Builds datasets of cubes with pyarrow and the engine's own commits; no JVM."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ktk_engine import Store
from tests.support.changes import ChangeSet, DatasetChange, PendingCommit, check_scope, commit
from tests.support.committed import (
    Snapshot,
    files_table,
    new_commit_id,
    resolve,
    scope_of,
)
from tests.support.documents import (
    TABLE,
    CubeSpecification,
    DatasetDocument,
    build_index,
    common_metadata_key,
    data_key,
    document_key,
    index_key,
    load_document,
    partition_path,
    render_common_metadata,
    render_document,
    render_index,
)
from tests.support.queries import computable, dataset_schema

NYC = CubeSpecification("nyc", ("carrier", "hour"), ("origin",), "flights")
_TIME = datetime(2025, 1, 1)
_numbers = count()


def flights(origins=("EWR", "JFK"), delay=10):
    """Rows of a seed dataset: two hours of one carrier at each origin."""
    rows = [(o, "UA", h, delay + h) for o in origins for h in (1, 2)]
    names = ["origin", "carrier", "hour", "delay"]
    return pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)})


def weather(origins=("EWR", "JFK"), gust=30.0):
    """Rows of an enrichment by hour, one an hour and origin."""
    rows = [(o, h, gust + h) for o in origins for h in (1, 2)]
    return pa.table({n: [r[i] for r in rows] for i, n in enumerate(["origin", "hour", "gust"])})


def airlines():
    """Rows of an unpartitioned enrichment by carrier."""
    return pa.table({"carrier": ["AA", "UA"], "airline": ["American", "United"]})


@dataclass(frozen=True)
class DbtNode:
    """Writes the files of one dataset.

    Attributes:
        store: where.
        uuid: the dataset.
        partition_by: how files are laid out: one file a combination of values.
        indexes: columns with a secondary index.
        metadata: Kartothek's user metadata.
        properties: what only this library knows.
        row_group_rows: the most rows of a row group; None leaves that to Arrow.
    """

    store: object
    uuid: str
    partition_by: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    metadata: dict = field(default_factory=dict)
    properties: dict = field(default_factory=dict)
    row_group_rows: int | None = None

    def files(self, table, commit_id):
        """Write data files and describe them."""
        schema = dataset_schema(table.schema, self.partition_by)
        keys = list(self.partition_by)
        groups = table.select(keys).group_by(keys).aggregate([]).to_pylist() if keys else [{}]
        groups.sort(key=lambda group: [str(value) for value in group.values()])
        types = [schema.field(key).type for key in keys]
        labels, infos, statistics, values = [], [], [], {name: [] for name in self.indexes}
        for number, group in enumerate(groups):
            rows = table
            for key, value in group.items():
                rows = rows.filter(pc.equal(rows[key], pa.scalar(value, rows[key].type)))
            path = partition_path(keys, [group[key] for key in keys], types)
            label = f"{path}/{commit_id}-0-{number}" if path else f"{commit_id}-0-{number}"
            data = rows.drop_columns(keys) if keys else rows
            with self.store.open_write(data_key(self.uuid, label)) as sink:
                pq.write_table(data, sink, row_group_size=self.row_group_rows)
                size = sink.tell()
            labels.append(label)
            infos.append((rows.num_rows, size))
            statistics.append(_statistics(data))
            for name, pairs in values.items():
                pairs += [(value, label) for value in rows[name].to_pylist()]
        partitions = {k: pa.array([g[k] for g in groups], schema.field(k).type) for k in keys}
        columns = {
            "rows": [rows for rows, _ in infos],
            "bytes": [size for _, size in infos],
            "physical": [0] * len(labels),
            "commit": [commit_id] * len(labels),
            "own": [True] * len(labels),
        }
        files = files_table(
            labels,
            [data_key(self.uuid, label) for label in labels],
            pa.table(partitions),
            columns,
            pa.concat_tables(statistics),
        )
        return files, schema, values

    def snapshot(self, table, commit_id):
        """Write everything for a new content."""
        files, schema, values = self.files(table, commit_id)
        indices = {}
        for name, pairs in values.items():
            kind = schema.field(name).type
            index = build_index(
                pa.array([value for value, _ in pairs], kind),
                pa.array([label for _, label in pairs], pa.string()),
            )
            indices[name] = index_key(self.uuid, name, _TIME, commit_id)
            self.store.put_if_absent(indices[name], render_index(name, index))
        return Snapshot(
            self.uuid,
            schema,
            self.partition_by,
            files,
            indices,
            self.metadata,
            (table.schema,),
            properties=self.properties,
        )

    def rebuild(self, table, commit_id):
        """The change that replaces all content."""
        snapshot = self.snapshot(table, commit_id)
        return DatasetChange(self.uuid, "rebuild", lambda base, attempt: snapshot, None)

    def append(self, table, commit_id):
        """The change that adds files."""
        files, _, _ = self.files(table, commit_id)

        def rebase(base, attempt):
            return base.changed(base.files.slice(0, 0), files)

        return DatasetChange(self.uuid, "append", rebase, frozenset())

    def commit_rebuild(self, table, base=None, **history):
        """Commit what replaces all content."""
        return commit_change(self.store, lambda c: self.rebuild(table, c), base, **history)

    def commit_append(self, table, base=None, **history):
        """Commit what adds files."""
        return commit_change(self.store, lambda c: self.append(table, c), base, **history)


def commit_change(store, make_change, base=None, commit_id=None, **history):
    """Commit one change; `make_change` gets the commit's id."""
    commit_id = commit_id or new_commit_id()
    change = make_change(commit_id)
    scope = scope_of(change.uuid)
    change_set = ChangeSet(PendingCommit(commit_id), (change,), check_scope, history)
    return commit(base or resolve(store, scope), change_set)


def build_table(store, uuid="plain", table=None):
    """Commit a plain table."""
    table = table if table is not None else pa.table({"a": [1, 2, 3]})
    return DbtNode(store, uuid).commit_rebuild(table)


def flights_builder(store):
    """The seed dataset of the cube nyc."""
    metadata = NYC.metadata("flights")
    indexes = ("carrier", "hour")
    return DbtNode(store, "nyc++flights", ("origin",), indexes, metadata)


def weather_builder(store, metadata=None):
    """The enrichment of the cube nyc that is partitioned like the seed dataset."""
    metadata = NYC.metadata("weather") if metadata is None else metadata
    return DbtNode(store, "nyc++weather", ("origin",), (), metadata)


def airlines_builder(store):
    """The unpartitioned enrichment of the cube nyc."""
    return DbtNode(store, "nyc++airlines", (), (), NYC.metadata("airlines"))


def build_nyc(store):
    """Commit the cube nyc: three datasets, three versions."""
    for builder, table in (
        (flights_builder(store), flights()),
        (weather_builder(store), weather()),
        (airlines_builder(store), airlines()),
    ):
        builder.commit_rebuild(table)


def build_overlaid(store):
    """Build the cube `c`, a cell of which comes again and overlays the old one."""
    cells = pa.table(
        {"p": ["a", "a", "b"], "x": [1, 2, 1], "v": [1.0, 2.0, 3.0], "i": ["k", "l", "k"]}
    )
    more = pa.table({"p": ["a", "b"], "x": [1, 1], "w": [1, 2]})
    found = Store(store.root).build(
        "c", {"cells": cells, "more": more}, seed="cells", dimension_columns=["x"],
        partition_by=["p"], indexes=["i"],
    )  # fmt: skip
    return found.append({"cells": cells.slice(1, 1).set_column(2, "v", pa.array([20.0]))})


def write_plain(
    store, uuid, rows, partition_by=(), metadata=None, indexes=(), table=TABLE, row_group_rows=None
):
    """Write a dataset as Kartothek does: no log, names of its own; gives its document."""
    name = f"{next(_numbers):032x}"
    builder = DbtNode(
        store, uuid, tuple(partition_by), tuple(indexes), row_group_rows=row_group_rows
    )
    snapshot = builder.snapshot(rows, name)
    schema = render_common_metadata(snapshot.schema, partition_by)
    store.put(common_metadata_key(uuid, table), schema)
    document = DatasetDocument(
        uuid,
        tuple(partition_by),
        dict(zip(snapshot.labels, snapshot.files["key"].to_pylist(), strict=True)),
        dict(snapshot.indices),
        metadata or {},
        table=table,
    )
    store.put(document_key(uuid), render_document(document))
    return document


def write_plain_nyc(store):
    """Write the cube nyc as Kartothek does."""
    index = ("carrier", "hour")
    write_plain(store, "nyc++flights", flights(), ("origin",), NYC.metadata("flights"), index)
    write_plain(store, "nyc++weather", weather(), ("origin",), NYC.metadata("weather"))


def append_as_kartothek(store, uuid, table=None, partition_by=()):
    """Add files without our log: the top-level stamp is lost, `ktk_base` stays."""
    changed = foreign_document(store, uuid, table, partition_by)
    store.put(document_key(uuid), render_document(changed))
    return changed


def foreign_document(store, uuid, table=None, partition_by=()):
    """What another program would write now."""
    document = load_document(store, uuid)
    table = table if table is not None else pa.table({"a": [7]})
    files, _, _ = DbtNode(store, uuid, partition_by).files(table, uuid4().hex)
    added = dict(zip(files["label"].to_pylist(), files["key"].to_pylist(), strict=True))
    return replace(document, partitions={**document.partitions, **added}, stamp=None)


def replace_partition(builder, name, value, table):
    """Replace the files of one partition by those of a table, for `commit_change`."""

    def change(commit_id):
        files = builder.files(table, commit_id)[0]

        def rebase(base, attempt):
            gone = base.files.filter(pc.equal(base.files[f"partition.{name}"], value))
            return base.changed(gone, files)

        folders = frozenset({f"{name}={value}"})
        return DatasetChange(builder.uuid, "replace", rebase, folders)

    return change


def append_ours(store, value=1):
    table = pa.table({"a": [value]})
    return DbtNode(store, "plain").commit_append(table)


def _statistics(data):
    columns = {}
    for name in data.column_names:
        column = data[name]
        if not (pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type)):
            extremes = pc.min_max(computable(column))
            columns[f"min.{name}"] = pa.array([extremes["min"].as_py()], column.type)
            columns[f"max.{name}"] = pa.array([extremes["max"].as_py()], column.type)
        columns[f"nulls.{name}"] = pa.array([column.null_count], pa.int64())
    return pa.table(columns)
