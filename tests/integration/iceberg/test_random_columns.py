"""Random changes of columns and layout, some of them killed: readers of Iceberg see our rows."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.types.type_class import class_name  # deep: columns of a class may be wider
from tests.integration.delta.readers import in_order
from tests.integration.iceberg.readers import READERS
from tests.integration.iceberg.stored_metadata import newest, specs_fit, time_travels
from tests.support.changes import WriteRequest, build, check_publishing
from tests.support.cube_verbs import EXAMPLES
from tests.support.stores import FaultyStore

SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.generate, Phase.reuse],
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MOMENT = datetime(2020, 2, 3, 4, 5, 6, 789012)
KINDS = {
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [-1, 7]),
    "long": (pa.int64(), [-(2**63), 7]),
    "uint": (pa.uint64(), [0, 2**64 - 1]),
    "float": (pa.float32(), [0.5, -1.5]),
    "double": (pa.float64(), [0.1, -1.5]),
    "decimal": (pa.decimal128(9, 2), [Decimal("-1.10"), Decimal("2.00")]),
    "string": (pa.string(), ["a/b", "ü"]),
    "bytes": (pa.binary(), [b"\xff\x00", b"a"]),
    "date": (pa.date32(), [date(1, 1, 1), date(2020, 2, 29)]),
    "time": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)]),
    "struct": (pa.struct([("v", pa.int64())]), [{"v": 1}, {"v": None}]),
}
IN_FILES = sorted(set(KINDS) - {"uint"})
AS_KEYS = sorted(set(KINDS) - {"float", "double", "decimal", "struct"})
NAMES = ["a", "b.c", "1", "_1", "ä"]
# What Iceberg, or this library, refuses of such changes.
REFUSED = (
    "files hold different types",
    "files of another class",
    "takes",
    "no unsigned",
    "round floating",
)


class PublishedColumns(RuleBasedStateMachine):
    """A published table whose columns change."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = FaultyStore(Path(self.folder) / "s")
        self.face = Store.of(self.store)
        self.url = str(self.store.root / "t")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def rows(self, data, columns, keys):
        count = data.draw(st.integers(1, 3))
        arrays = {
            name: pa.array([data.draw(_values(t, name in keys)) for _ in range(count)], t)
            for name, t in columns.items()
        }
        return pa.table(arrays)

    def drawn(self, data):
        """Columns and a layout, of types that fit."""
        names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
        keys = names[: data.draw(st.integers(0, min(2, len(names) - 1)))]
        types = {n: KINDS[data.draw(st.sampled_from(AS_KEYS if n in keys else IN_FILES))][0]
                 for n in data.draw(st.permutations(names))}  # fmt: skip
        return types, keys

    @initialize(data=st.data())
    def begin(self, data):
        types, keys = self.drawn(data)
        self.face.write_table("t", self.rows(data, types, keys), "overwrite", partition_by=keys)
        self.face.table("t").publish("iceberg")

    def columns(self):
        schema = self.face.table("t").schema
        return dict(zip(schema.names, schema.types, strict=True))

    def keys(self):
        return self.face.table("t")._state.snapshot("t").partition_keys

    def synced(self, rows, policy):
        target = WriteRequest("t", partition_by=self.keys(), on_schema_change=policy)
        build(self.store, rows, target, mode="append")

    @rule(data=st.data())
    def append(self, data):
        self.face.write_table("t", self.rows(data, self.columns(), self.keys()))

    @rule(data=st.data())
    def overwrite(self, data):
        types, keys = self.drawn(data)
        self.face.write_table("t", self.rows(data, types, keys), "overwrite", partition_by=keys)

    @rule(data=st.data())
    def drop_but_leave_in_files(self, data):
        keys = self.keys()
        others = [name for name in self.columns() if name not in keys]
        kept = data.draw(st.sets(st.sampled_from(others), min_size=1))
        types = {n: t for n, t in self.columns().items() if n in keys or n in kept}
        self.synced(self.rows(data, types, keys), "sync_all_columns")

    @rule(data=st.data())
    def add(self, data):
        types, _ = self.drawn(data)
        with contextlib.suppress(KtkError):  # files hold earlier values, or the class differs
            more = {**types, **self.columns()}
            self.synced(self.rows(data, more, self.keys()), "append_new_columns")

    @rule(data=st.data())
    def alter(self, data):
        known = self.columns()
        name, kind = data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(IN_FILES))
        verb = {"add": {name: KINDS[kind][0]}}
        if name in known:
            verb = data.draw(st.sampled_from([{"drop": [name]}, {"rename": {name: "z"}}]))
        with contextlib.suppress(KtkError):  # of a partition column, or the last one
            self.face.table("t").alter(**verb)

    @rule(data=st.data())
    def repartition(self, data):
        with contextlib.suppress(KtkError):  # of a class that cannot be in a path, or the last one
            self.face.table("t").repartition(data.draw(st.sampled_from(sorted(self.columns()))))

    @rule(data=st.data())
    def restore(self, data):
        with contextlib.suppress(KtkError):  # nothing would change, or it was cleaned up
            table = self.face.table("t")
            table.restore(version=data.draw(st.integers(1, table.version)))

    @rule()
    def compact(self):
        with contextlib.suppress(KtkError):  # nothing to do
            self.face.table("t").compact()

    @rule(kept=st.integers(1, 4))
    def clean_up(self, kept):
        self.face.cleanup("t", timedelta(0), kept, delete=True)

    @rule(data=st.data(), at=st.integers(0, 12))
    def killed(self, data, at):
        """A process that ends in the middle of its writes."""
        verb = data.draw(st.sampled_from([self.append, self.overwrite, self.add, self.alter]))
        left = [at]

        def kill(method, key):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

        self.store.hooks.append(kill)
        with contextlib.suppress(KeyboardInterrupt):
            verb(data)
        self.store.hooks.clear()
        self.compare(None)

    @rule(reader=st.sampled_from(sorted(READERS)))
    def read(self, reader):
        self.compare(reader)

    @invariant()
    def every_snapshot_is_ours(self):
        if not self.store.exists("t.by-dataset-metadata.json"):
            return
        with contextlib.suppress(KtkError):
            self.face.table("t").publish()
        [found] = check_publishing(self.store, "t")
        assert not found.problem or any(text in found.problem for text in REFUSED), found.problem
        self.compare("pyiceberg")

    def compare(self, reader):
        """The newest snapshot by one reader, or all by pyiceberg."""
        version = newest(self.store).published
        if not version:
            return
        if reader not in (None, "pyiceberg"):
            ours = self.face.table("t").at(version=version).query().to_arrow(engine="local")
            names = [n for n, t in zip(ours.schema.names, ours.schema.types, strict=True)
                     if not (reader == "iceberg-rust" and pa.types.is_nested(t))]  # fmt: skip
            theirs = READERS[reader](self.url)
            assert theirs.num_rows == ours.num_rows
            assert in_order(theirs, names) == in_order(ours, names)
            return
        time_travels(self.store)
        specs_fit(self.store)


def _values(t, is_key):
    found = next(values for kind, values in KINDS.values() if class_name(kind) == class_name(t))
    return st.sampled_from(found if is_key else [*found, None])


class TestPublishedColumns(PublishedColumns.TestCase):
    settings = SETTINGS
