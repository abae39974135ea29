"""A cube that is changed in every way, and a model of it in Python that is changed alike."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError, VersionGoneError
from tests.support.changes import Retention, comment_on, run_cleanup
from tests.support.committed import check, cube_scope
from tests.support.documents import Comments
from tests.support.random_cubes import TIMES
from tests.support.random_rows import CELL, KINDS, PARTITIONS, SCHEMAS, Cells, frame_of, rows_of

Model = dict[str, Cells]
EXAMPLES = 6 * TIMES
ENRICHMENTS = st.sampled_from(["more", "flat"])
WHERE = st.sampled_from(
    [
        ("p = 'a b'", lambda row: row["p"] == "a b"),
        ("p <> 'x'", lambda row: row["p"] != "x"),
        ("d > 2", lambda row: row["d"] > 2),
        ("d in (0, 3) and p = 'é=%'", lambda row: row["d"] in (0, 3) and row["p"] == "é=%"),
        ("d = 99", lambda row: False),
        ("d > 2 and p = 'x' and 1 = 2", lambda row: False),
        ("d <=> 1.5 and p = 'x'", lambda row: False),
    ]
)


def joined(model: Model) -> list[dict[str, Any]]:
    """The cube's rows, as the seed dataset's cells with all that is known about them."""
    found = []
    for cell in model["cells"].values():
        row = dict(cell)
        for name in ("more", "flat"):
            if name in model:
                key = tuple(cell[column] for column in CELL[name])
                other = model[name].get(key, {})
                payload = [n for n in SCHEMAS[name].names if n not in ("p", "d")]
                row |= {column: other.get(column) for column in payload}
        found.append(row)
    return sorted(found, key=lambda row: (row["d"], row["p"]))


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    order = sorted(expected[0]) if expected else []
    return repr([[row[n] for n in order] for row in found]) == repr(
        [[row[n] for n in order] for row in expected]
    )


class CubeVerbs(RuleBasedStateMachine):
    """A cube of three datasets, changed in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = Store(Path(self.folder) / "s")
        self.model: Model = {}
        self.versions: dict[int, Model] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def cube(self):
        return self.store.cube("c")

    def committed(self, model: Model) -> None:
        self.model = model
        if self.cube.version:  # of what has no log yet, nobody keeps a version
            self.versions[self.cube.version] = deepcopy(model)

    @initialize(cells=rows_of("cells"), more=rows_of("more"), kind=KINDS)
    def build(self, cells, more, kind):
        self.built({"cells": cells, "more": more}, kind, overwrite=False)

    def built(self, model: Model, kind: str, overwrite: bool) -> None:
        self.store.build(
            "c",
            {name: frame_of(name, rows, kind) for name, rows in model.items()},
            dimension_columns=["d"],
            partition_by=["p"],
            seed="cells",
            indexes=["k"],
            overwrite=overwrite,
        )
        self.committed(model)

    @rule(cells=rows_of("cells"), more=rows_of("more"), flat=rows_of("flat"), kind=KINDS)
    def build_again(self, cells, more, flat, kind):
        before = self.cube.version
        with pytest.raises(ConsistencyError, match="exists already"):
            self.store.build("c", frame_of("cells", cells, "table"), dimension_columns=["d"])
        assert self.cube.version == before
        self.built({"cells": cells, "more": more, "flat": flat}, kind, overwrite=True)

    @rule(
        name=ENRICHMENTS,
        data=st.data(),
        kind=KINDS,
        overwrite=st.booleans(),
        layout=st.sampled_from([None, [], ["d"], ["p", "d"]]),
    )
    def extend(self, name, data, kind, overwrite, layout):
        rows = data.draw(rows_of(name))
        frames = {name: frame_of(name, rows, kind)}
        if layout is not None and name == "more" and "p" not in layout:
            layout = ["p", *layout]  # a cube's partition column is never an ordinary one
        columns = [column for column in layout or () if column in SCHEMAS[name].names]
        partition_on = None if layout is None else {name: columns}
        if name in self.model and not overwrite:
            with pytest.raises(ConsistencyError, match="already"):
                self.cube.extend(frames)
            return
        self.cube.extend(frames, partition_on=partition_on, overwrite=overwrite)
        self.committed({**self.model, name: rows})

    @rule(data=st.data(), kind=KINDS)
    def append(self, data, kind):
        names = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, unique=True))
        new = {name: data.draw(rows_of(name)) for name in names}
        self.cube.append({name: frame_of(name, rows, kind) for name, rows in new.items()})
        added = {name: {**self.model[name], **rows} for name, rows in new.items()}
        self.committed({**self.model, **added})

    @rule(where=WHERE, data=st.data(), kind=KINDS)
    def update(self, where, data, kind):
        text, holds = where
        names = [n for n in sorted(self.model) if n != "flat"]
        name = data.draw(st.sampled_from(names))
        rows = data.draw(rows_of(name))
        self.cube.update({name: frame_of(name, rows, kind)}, text)
        kept = {cell: row for cell, row in self.model[name].items() if not holds(row)}
        self.committed({**self.model, name: {**kept, **rows}})

    def without(self, holds, columns: set[str]) -> Model:
        return {
            name: {cell: row for cell, row in rows.items() if not holds(row)}
            if columns <= set(SCHEMAS[name].names)
            else rows
            for name, rows in self.model.items()
        }

    @rule(where=WHERE)
    def delete(self, where):
        text, holds = where
        self.cube.delete(text)
        self.committed(self.without(holds, {"p", "d"} if "p" in text else {"d"}))

    @rule(value=st.sampled_from([0.5, -1.0]))
    def delete_by_payload(self, value):
        self.cube.delete(f"v = {value}")
        self.committed(self.without(lambda row: row["v"] == value, {"v"}))

    @rule(value=st.sampled_from(PARTITIONS))
    def remove_partitions(self, value):
        self.cube.remove_partitions(f"p = '{value}'")
        self.committed(self.without(lambda row: row["p"] == value, {"p"}))

    @precondition(lambda self: len(self.model) > 1)
    @rule(data=st.data())
    def drop(self, data):
        name = data.draw(st.sampled_from([n for n in sorted(self.model) if n != "cells"]))
        self.cube.drop(name)
        self.committed({n: rows for n, rows in self.model.items() if n != name})

    @rule(rows=rows_of("cells"), where=WHERE, fails=st.booleans(), data=st.data())
    def transaction(self, rows, where, fails, data):
        text, holds = where
        new = data.draw(rows_of("flat"))
        before = self.cube.version
        try:
            with self.cube.transaction() as changes:
                changes.append({"cells": frame_of("cells", rows, "table")})
                changes.delete(text, ["cells"])
                changes.extend({"flat": frame_of("flat", new, "table")}, overwrite=True)
                changes.append({"flat": frame_of("flat", {}, "table")})
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            assert self.cube.version == before
            return
        cells = {**self.model["cells"], **rows}
        kept = {cell: row for cell, row in cells.items() if not holds(row)}
        self.committed({**self.model, "cells": kept, "flat": new})

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def restore(self, data):
        version = data.draw(st.sampled_from(sorted(self.versions)))
        try:
            self.cube.restore(version)
        except ConsistencyError as error:
            if "Take that over first: `ktk adopt c`" in str(error):
                return  # another program's, of which nothing was written yet
            assert "nothing to restore" in str(error)
            assert same(joined(self.model), joined(self.versions[version]))
            return
        self.committed(deepcopy(self.versions[version]))

    @rule(target_size=st.sampled_from(["128MB", 1]), dataset=st.sampled_from([None, "cells"]))
    def compact(self, target_size, dataset):
        before = self.cube.stats()
        after = self.cube.compact(dataset=dataset, target_size=target_size).stats()
        if target_size != 1:  # else each row gets a file
            assert all(size.files <= before[name].files for name, size in after.items())
        self.committed(self.model)

    @rule(column=st.sampled_from(["k", "d"]), drop=st.booleans())
    def index(self, column, drop):
        before = self.cube
        with warnings.catch_warnings(record=True, action="always") as said:
            changed = before.drop_index(column) if drop else before.index(column)
        assert bool(said) == (drop and changed.version == before.version)
        for snapshot in changed._loaded.snapshots.values():
            if column in snapshot.schema.names and column not in snapshot.partition_keys:
                assert (column in snapshot.with_index) != drop
        self.committed(self.model)

    @rule(data=st.data())
    def rename_there_and_back(self, data):
        payload = {"cells": ["k", "v"], "more": ["a"], "flat": ["b"]}
        name = data.draw(st.sampled_from(sorted(self.model)))
        column = data.draw(st.sampled_from(payload[name]))
        renamed = self.cube.alter(name, rename={column: "größer %"}, add={"new": "string"})
        rows = renamed.query().to_arrow().to_pylist()
        assert all(row["new"] is None for row in rows)
        assert same([{**row, column: row["größer %"]} for row in rows], joined(self.model))
        renamed.alter(name, rename={"größer %": column}, drop=["new"])
        self.committed(self.model)

    @rule()
    def copy(self):
        copied = self.cube.copy_to(self.store, "copy-of-c")
        assert copied.datasets == self.cube.datasets
        assert same(copied.query().to_arrow().to_pylist(), joined(self.model))
        assert not copied.check()["problems"]
        self.store.drop("copy-of-c")

    @rule(text=st.text(max_size=3))
    def comment(self, text):
        if comment_on(self.store._store, "c++cells", Comments(text, {"v": "'%s"})):
            self.committed(self.model)

    @rule(keep=st.integers(1, 3))
    def clean_up(self, keep):
        run_cleanup(self.store._store, cube_scope("c"), Retention(timedelta(0), keep))
        for version in sorted(self.versions):
            try:
                self.cube.at(version=version)
            except VersionGoneError:
                del self.versions[version]
        if not self.versions:
            return  # nothing has a log yet
        last = max(self.versions)
        assert set(range(last - keep + 1, last + 1)) & set(self.versions)
        if self.cube.version not in self.versions:
            self.versions[self.cube.version] = deepcopy(self.model)

    @invariant()
    def every_version_has_its_rows(self):
        for version, model in self.versions.items():
            found = self.store.cube("c", version=version).query().to_arrow(engine="local")
            assert same(found.to_pylist(), joined(model)), version
        assert same(self.cube.query().to_arrow().to_pylist(), joined(self.model))

    @invariant()
    def the_store_is_sound(self):
        if self.versions:
            assert check(self.store._store, "c").problems == ()
