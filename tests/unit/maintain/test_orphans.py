"""What a project has built and builds no more; of others' datasets nothing is said."""

from __future__ import annotations

import json

import pyarrow as pa

from ktk_engine.maintain.orphans import ProjectNodes, find_orphans, read_manifest
from tests.support.changes import WriteRequest, build
from tests.support.committed import DbtNode, Owner
from tests.support.dataset_builder import build_table, write_plain_nyc

ROWS = pa.table({"id": [1, 2]})


def write(store, node, dataset, cube=""):
    owner = Owner(DbtNode(node, node.split(".")[1]))
    role, dimensions = ("seed", ("id",)) if cube else ("table", ())
    build(store, ROWS, WriteRequest(dataset, role, cube, dimensions, owner=owner))


def test_only_what_the_project_itself_left_behind(store):
    write_plain_nyc(store)
    build_table(store)
    write(store, "model.p.old", "old", "c")
    write(store, "model.q.old", "old", "d")
    write(store, "model.p.kept", "kept", "e")
    write(store, "seed.p.gone", "gone")
    found = find_orphans(store, ProjectNodes("p", {"e++kept": "model.p.kept"}))
    assert [item.message for item in found] == [
        "c++old (was built by model.p.old; under a new name, its builder keeps it by "
        "dataset='old'; to drop its rows: store.cube('c').drop('old'))",
        "gone (was built by seed.p.gone; to drop its rows: store.drop('gone'))",
    ]


def test_a_manifest_tells_what_a_project_builds(tmp_path):
    assert read_manifest(tmp_path) is None
    nodes = {
        "model.p.a": {
            "alias": "a",
            "schema": "s",
            "config": {"materialized": "cube_seed", "cube": "c", "dataset": "x"},
        },
        "model.p.b": {"alias": "bb", "schema": "s", "config": {"materialized": "table"}},
        "model.p.v": {"alias": "v", "schema": "s", "config": {"materialized": "view"}},
        "test.p.t": {"alias": "t", "schema": "s", "config": {"materialized": "test"}},
    }
    metadata = {"project_name": "p", "generated_at": "2026-01-02T03:04:05Z"}
    (tmp_path / "target").mkdir()
    path = tmp_path / "target" / "manifest.json"
    path.write_text(json.dumps({"metadata": metadata, "nodes": nodes}))
    manifest = read_manifest(tmp_path)
    assert manifest.project == "p"
    assert manifest.schemas["s"].datasets == {"c++x": "model.p.a", "bb": "model.p.b"}
    path.write_text("{}")
    assert read_manifest(tmp_path) is None
