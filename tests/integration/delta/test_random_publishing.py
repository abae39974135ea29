"""Random verbs on published tables and cubes: readers of Delta see a whole version of ours."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ktk_engine import Store
from ktk_engine.errors import (
    ConsistencyError,
    DatasetNotFoundError,
    PublishError,
    VersionGoneError,
)
from ktk_engine.publish.delta.delta_log import read_log
from ktk_engine.publish.iceberg.iceberg_metadata import read_metadata
from ktk_engine.publish.publish_datasets import (
    check_publishing,
    publish_datasets,
    stop_publishing,
)
from tests.integration.delta.readers import READERS, in_order
from tests.integration.iceberg.readers import READERS as OF_ICEBERG
from tests.integration.iceberg.readers import by_pyiceberg
from tests.support.committed import check
from tests.support.cube_verbs import EXAMPLES, CubeVerbs
from tests.support.random_rows import SCHEMAS, table_of

FORMATS = ("delta", "iceberg")
ALL_READERS = {**READERS, **OF_ICEBERG}
SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.generate, Phase.reuse],
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SCHEMA = pa.schema([("p", pa.string()), ("k", pa.int32()), ("t", pa.string()), ("u", pa.uint16())])
ROW = st.fixed_dictionaries(
    {
        "p": st.sampled_from(["a/b", "é=%", "+"]),
        "k": st.none() | st.integers(-1, 2),
        "t": st.none() | st.sampled_from(["", "ü", "'"]),
        "u": st.none() | st.sampled_from([0, 2**16 - 1]),
    }
)
# Why the newest version of a cube's dataset may not be published.
REASONS = ("may be in several", "are not known yet", "Iceberg has no unsigned numbers")
ROWS = st.lists(ROW, max_size=5)


class PublishedTable(RuleBasedStateMachine):
    """A published table with a partition column."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = Store(Path(self.folder) / "s")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(rows=ROWS)
    def begin(self, rows):
        self.make(rows)

    def make(self, rows):
        self.write(rows, "overwrite", partition_by=["p"])
        publish_datasets(self.store._store, "t", formats=FORMATS)

    def write(self, rows, mode, extra=False, **layout):
        table = pa.Table.from_pylist(rows, SCHEMA)
        if extra:
            table = table.append_column("x", pa.array([0.5] * len(rows), pa.float64()))
        self.store.write_table("t", table, mode, **layout)

    @rule(rows=ROWS)
    def append(self, rows):
        self.write(rows, "append", "x" in self.store.table("t").schema.names)

    @rule(rows=ROWS, extra=st.booleans())
    def overwrite(self, rows, extra):
        self.write(rows, "overwrite", extra)

    @rule(where=st.sampled_from(["p = 'a/b'", "k > 0", "t is null"]))
    def delete(self, where):
        self.store.table("t").delete(where)

    @rule(data=st.data())
    def restore(self, data):
        newest = self.store.table("t").version
        try:
            self.store.table("t").restore(data.draw(st.integers(1, newest)))
        except (ConsistencyError, VersionGoneError):
            return  # nothing would change, or a clean-up removed that version
        except DatasetNotFoundError:  # as it was between two names
            assert not (Path(self.folder) / "s" / "t" / "_delta_log").exists()
            assert not list((Path(self.folder) / "s" / "t").glob("metadata/*"))
            self.make([])

    @rule()
    def clean_up(self):
        self.store.cleanup("t", timedelta(0), 2, delete=True)

    @rule()
    def rename_there_and_back(self):
        self.store.table("t").rename("other").rename("t")

    @rule()
    def publish_again(self):
        assert stop_publishing(self.store._store, "t") == ["t"]
        assert not (Path(self.folder) / "s" / "t" / "_delta_log").exists()
        publish_datasets(self.store._store, "t", formats=FORMATS)

    @rule(reader=st.sampled_from(sorted(ALL_READERS)))
    def read(self, reader):
        ours = self.store.table("t").query().to_arrow(engine="local")
        theirs = ALL_READERS[reader](str(Path(self.folder) / "s" / "t"))
        assert in_order(theirs) == in_order(ours)

    @invariant()
    def it_is_published(self):
        if self.store._store.exists("t.by-dataset-metadata.json"):  # else it is not made yet
            found = check_publishing(self.store._store, "t")
            assert [item.problem for item in found] == ["", ""]
            ours = self.store.table("t").query().to_arrow(engine="local")
            theirs = READERS["arrow"](str(Path(self.folder) / "s" / "t"))
            assert in_order(theirs) == in_order(ours)


class TestPublishedTable(PublishedTable.TestCase):
    settings = SETTINGS


class PublishedCube(CubeVerbs):
    """A cube whose datasets are published as far as Delta can say what they hold."""

    @rule(name=st.sampled_from(sorted(SCHEMAS)))
    def publish(self, name):
        if name not in self.model:
            return
        with contextlib.suppress(PublishError):
            publish_datasets(self.store._store, "c", name, formats=("delta",))
        with contextlib.suppress(PublishError):
            publish_datasets(self.store._store, "c", name, formats=("iceberg",))
        self.committed(self.model)

    @rule(reader=st.sampled_from(["arrow", "polars"]))
    def read(self, reader):
        for name, url, model in self.published():
            if reader == "polars" and name == "flat":
                continue  # it has no unsigned integers of 64 bits
            assert in_order(READERS[reader](url)) == in_order(table_of(name, model[name])), name

    def published(self):
        """Name, address and rows of each Delta table, as our version has them that it says."""
        for name in self.model:
            uuid = f"c++{name}"
            present = read_log(self.store._store, uuid)
            if present.version < 0:
                continue
            url = str(Path(self.folder) / "s" / uuid)
            before = [v for v in self.versions if v <= present.published]
            if before and present.published in self.versions:
                yield name, url, self.versions[present.published]

    @invariant()
    def delta_has_whole_versions(self):
        for name, url, model in self.published():
            rows = deltalake.DeltaTable(url).to_pyarrow_dataset().to_table()
            assert in_order(rows) == in_order(table_of(name, model[name])), name

    @invariant()
    def iceberg_has_whole_versions(self):
        for name in self.model:
            uuid = f"c++{name}"
            present = read_metadata(self.store._store, uuid)
            if present.published in self.versions:
                rows = by_pyiceberg(str(Path(self.folder) / "s" / uuid))
                model = self.versions[present.published]
                assert in_order(rows) == in_order(table_of(name, model[name])), name

    @invariant()
    def what_is_not_the_newest_says_why(self):
        if not self.versions:
            return
        with contextlib.suppress(PublishError):
            for item in check_publishing(self.store._store, "c"):
                assert not item.problem or any(text in item.problem for text in REASONS)

    @invariant()
    def the_store_is_sound(self):
        if self.versions:
            found = [item.reason for item in check(self.store._store, "c").problems]
            assert all(any(text in reason for text in REASONS) for reason in found), found


class TestPublishedCube(PublishedCube.TestCase):
    settings = SETTINGS
