"""What Kartothek 5.3.0 itself reads, keeps and writes after ours."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta

import pyarrow as pa

from ktk_engine import Store
from tests.support.changes import Retention, WriteRequest, build, comment_on, run_cleanup
from tests.support.committed import check, cube_scope, resolve, scope_of, snapshot_of
from tests.support.dataset_builder import build_table
from tests.support.documents import COLUMNS_KEY, RELATION_KEY, Comments
from tests.support.kartothek import (
    ORACLE,
    build_with_kartothek,
    kartothek,
    needs_kartothek,
    read_with_kartothek,
    run_in_oracle,
)
from tests.support.kartothek_page import (
    COMMANDS,
    CUBES,
    DATASETS,
    NO_FUNCTIONS,
)
from tests.support.queries import make_report, render_html
from tests.support.stores import LocalStore, grow_old, keys

pytestmark = needs_kartothek

DAY = 86_400
NOTHING = Retention(timedelta(0), 1)
PLAIN = scope_of("plain")


def test_kartothek_reads_it_under_the_new_name(store):
    build_with_kartothek(store)
    before = read_with_kartothek(store)
    Store(store.root).cube("k").rename("k2")
    found = read_with_kartothek(store, "k2")
    for key in ("rows", "datasets", "index_columns", "seed", "suppress_index_on"):
        assert found[key] == before[key], key
    assert found["metadata"]["more"]["note"] == "kept" and len(found["rows"]) == 10


def test_cubes_of_kartothek(tmp_path):
    source, target = LocalStore(tmp_path / "k"), LocalStore(tmp_path / "t")
    build_with_kartothek(source)
    expected = read_with_kartothek(source)
    copy = Store.of(source).cube("k").copy_to(Store.of(target))
    found = read_with_kartothek(target)
    assert found["rows"] == expected["rows"]
    assert found["index_columns"] == expected["index_columns"]
    assert found["metadata"]["more"]["note"] == "kept"
    ours, theirs = (c.query().to_arrow(engine="local") for c in (copy, Store.of(source).cube("k")))
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())
    assert check(target, "k", deep=True).problems == ()


def test_kartothek_reads_a_cube_with_tags(store):
    build_with_kartothek(store)
    before = read_with_kartothek(store)
    cube = Store(store.root).cube("k")
    cube.tag("first")
    cube.index("u").tag("second")
    found = read_with_kartothek(store)
    assert found["rows"] == before["rows"] and len(found["rows"]) == 10
    run_cleanup(store, cube_scope("k"), NOTHING)
    assert Store(store.root).cube("k", version="first").specification.index_columns == {"v"}
    assert read_with_kartothek(store)["rows"] == before["rows"]


_REPEAT = """
cube = Cube(["x"], ["p"], "again", index_columns=["v"])
frame = pd.DataFrame({"x": [0, 1], "p": ["a", "b"], "v": [1, 2]})
for _ in range(3):
    build_cube({"seed": frame, "more": frame[["x", "p"]].assign(w=1)}, cube, store, overwrite=True)
append_to_cube(frame.assign(v=3), cube, store)
remove_partitions(cube, store, C("p") == "b", ["seed"])
delete_cube(cube, store, ["more"])
"""


def test_leftovers_of_kartothek(store):
    store.root.mkdir()
    kartothek(store, _REPEAT)
    before = read_with_kartothek(store, "again")
    grow_old(store)
    scope = cube_scope("again")
    done = run_cleanup(store, scope, NOTHING)
    assert len(done.garbage.objects) > 10
    after = read_with_kartothek(store, "again")
    assert after["rows"] == before["rows"] and after["datasets"] == ["seed"]
    snapshot = snapshot_of(store, "again++seed")
    needed = {*snapshot.files["key"].to_pylist(), *snapshot.indices.values()}
    left = {key for key in keys(store, "again++") if key.endswith(".parquet")}
    assert left == needed


BUILD_INDICES = """
import sys
from functools import partial
from kartothek.io.eager import build_dataset_indices
import pyarrow.parquet as pq
from storefact import get_store_from_url

store = partial(get_store_from_url, "hfs://" + sys.argv[1])
read = pq.read_pandas  # it passes a set, which newer versions of Arrow refuse
pq.read_pandas = lambda source, columns=None: read(source, columns=columns and list(columns))
build_dataset_indices(store, "plain", ["b"])
build_dataset_indices(store, "plain", ["b"])
"""


def test_kartotheks_build_dataset_indices(store):
    build_table(store, table=pa.table({"a": [1, 2], "b": ["x", "y"]}))
    done = run_in_oracle(BUILD_INDICES, store.root)
    assert done.returncode == 0, done.stderr
    state = resolve(store, PLAIN)
    assert state.datasets["plain"].same_files and not state.datasets["plain"].problem
    assert state.snapshot("plain").rows == 2 and list(state.snapshot("plain").indices) == ["b"]


TEXT = """ It's "quoted": 100 %, {{ jinja }} {% raw %} \\ $$ -- /* */
Zweite Zeile: größer als ∞ 🚀\t\0"""


READ = """
import json, sys
from kartothek.api.dataset import read_table, update_dataset_from_dataframes
from kartothek.core.factory import DatasetFactory
from functools import partial
from storefact import get_store_from_url
import pandas as pd

store = partial(get_store_from_url, "hfs://" + sys.argv[1])
rows = read_table("plain", store, table="table")["a"].tolist()
update_dataset_from_dataframes(pd.DataFrame({"a": [9]}), store, "plain")
metadata = DatasetFactory("plain", store).dataset_metadata.metadata
print(json.dumps({"rows": rows, "metadata": metadata}))
"""


def test_kartothek_reads_the_dataset_and_keeps_its_comments(store):
    build(store, pa.table({"a": [1, 2]}), WriteRequest("plain"))
    comment_on(store, "plain", Comments(TEXT, {"a": TEXT}))
    done = run_in_oracle(READ, store.root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == [1, 2]
    assert (found["metadata"][RELATION_KEY], found["metadata"][COLUMNS_KEY]) == (TEXT, {"a": TEXT})
    assert snapshot_of(store, "plain").comments == Comments(TEXT, {"a": TEXT})
    assert resolve(store, PLAIN).datasets["plain"].foreign


def test_a_cube_of_kartothek(store):
    build_with_kartothek(store)
    report = make_report(store, "k")
    assert sum(sizes[0] for sizes in report.partitions[report.seed].sizes.values()) == 10
    assert render_html(report)


_API = """
import inspect, json
from kartothek.api import consistency, cube, dataset, discover, serialization
from kartothek.cli import cli

def functions(*modules):
    found = {}
    for module in modules:
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            if callable(value) and not name.startswith("_"):
                try:
                    found[name] = sorted(inspect.signature(value).parameters)
                except (TypeError, ValueError):
                    found[name] = []
    return found

def options(command):
    return sorted(name for p in command.params for name in p.opts if name.startswith("-"))

print(json.dumps([
    functions(cube, discover, consistency), functions(dataset, serialization),
    {"": options(cli), **{name: options(command) for name, command in cli.commands.items()}},
]))
"""


def test_that_is_what_kartothek_offers():
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    told = subprocess.run([ORACLE, "-c", _API], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stderr
    for offered, known in zip(json.loads(told.stdout), (CUBES, DATASETS, COMMANDS), strict=True):
        offered = {name: words for name, words in offered.items() if name not in NO_FUNCTIONS}
        assert offered == {name: sorted(words.split()) for name, words in known.items()}


class TestIndices:
    def test_reads_and_uses_an_index_on_its_own_files(self, store):
        build_with_kartothek(store)
        before = read_with_kartothek(store)
        cube = Store(store.root).cube("k").index("u", "day")
        found = read_with_kartothek(store)
        assert found["rows"] == before["rows"] and len(found["rows"]) == 10
        assert found["index_columns"] == ["day", "u", "v"]
        assert found["metadata"]["more"]["note"] == "kept"
        answer = kartothek(
            store,
            """
cube, _ = discover_cube("k", store)
dataset = DatasetMetadata.load_from_store("k++more", store).load_all_indices(store)
labels = sorted(dataset.indices["u"].query(3))
frames = query_cube(cube, store, conditions=[C("u") == 3], partition_by=["v"])
print(json.dumps([len(labels), [int(n) for f in frames for n in f["x"]]]))
""",
        )
        assert answer == [1, [3]]
        assert not check(store, "k").problems
        cube.drop_index("u", "day")
        assert read_with_kartothek(store) == {**before, "metadata": before["metadata"]} | {
            "metadata": read_with_kartothek(store)["metadata"]
        }

    def test_misses_no_index_of_a_suppressed_dimension(self, store):
        build_with_kartothek(store)
        before = read_with_kartothek(store)
        cube = Store(store.root).cube("k").drop_index("x")
        found = read_with_kartothek(store)
        assert found["suppress_index_on"] == ["x"] and found["rows"] == before["rows"]
        cube.index("x")
        found = read_with_kartothek(store)
        assert found["suppress_index_on"] == [] and found["rows"] == before["rows"]
