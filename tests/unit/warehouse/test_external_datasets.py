"""A cube's virtual table over datasets of other schemas and stores, and of clones."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import ConfigurationError, ConsistencyError, QueryError, TypeClassError
from ktk_engine.local.sql.local_sql import LocalSql  # deep: as tests of models are answered
from ktk_engine.warehouse.actor import Actor
from ktk_engine.warehouse.create_cube import create_cube
from tests.support.changes import Relations, WriteRequest, build, build_module
from tests.support.committed import resolve, scope_of
from tests.support.documents import cube_comment, shown_by
from tests.support.queries import KnownStores, Moment, NamedRelations
from tests.support.stores import Warehouse, tree
from tests.support.voices import DBT

SEED = WriteRequest("cs", "seed", "c", ("L",), ("P",))
EXTRA = WriteRequest("ce", "enrichment", "c", ("L",), ("P",))
CELLS = pa.table({"P": [0, 0, 1], "L": [1, 2, 3], "v": [10, 20, 30]})
ROWS = pa.table({"P": [0, 0, 1], "L": [1, 2, 3], "w": [1.5, 2.5, 3.5]})
ACTOR = Actor({})


@pytest.fixture
def warehouse(tmp_path):
    """Production has the seed dataset and an old enrichment; `dev` is empty."""
    found = Warehouse(tmp_path)
    prod = found.create_schema("prod")
    build(prod, CELLS, SEED)
    build(prod, ROWS.slice(0, 1), EXTRA)
    found.create_schema("dev")
    return found


def beside(warehouse, target=EXTRA) -> WriteRequest:
    """A dataset of a cube whose seed dataset is in another store."""
    state = resolve(warehouse.find_schema("prod"), scope_of(SEED.uuid))
    return replace(target, external={"cs": state.snapshot(SEED.uuid)})


def create(warehouse, place=("prod", "cs"), deferred=(("prod", "cs"),)):
    text = cube_comment([place, ("dev", "ce")])
    return create_cube(Relations(warehouse), "dev", "c", text, ACTOR, deferred)


def rows(warehouse, sql: str) -> list[dict]:
    return LocalSql(KnownStores(warehouse.find_schema, warehouse.trust)).rows(sql).to_pylist()


@pytest.mark.parametrize("by_address", [False, True])
def test_a_cube_reads_both(warehouse, tmp_path, by_address):
    where = f"{tmp_path}/prod" if by_address else "prod"
    before = tree(tmp_path / "prod")
    build_module.build(warehouse.find_schema("dev"), ROWS, beside(warehouse))
    view = create(warehouse, (where, "cs"), [(where, "cs")])
    assert view.external == {"cs": where}
    assert rows(warehouse, "select L, v, w from dev.c where w > 2") == [
        {"L": 2, "v": 20, "w": 2.5},
        {"L": 3, "v": 30, "w": 3.5},
    ]
    assert tree(tmp_path / "prod") == before


def test_a_clone_stands_for_its_dataset(warehouse):
    relations = Relations(warehouse)
    relations.create_view("dev", "cs", "select * from prod.cs", {"L": "bigint"}, ACTOR)
    relations.create_view("dev", "of_clone", "select  *\nfrom dev.cs", {"L": "bigint"}, ACTOR)
    build(warehouse.find_schema("dev"), ROWS, EXTRA)
    assert create(warehouse, ("dev", "of_clone"), ()).external == {"cs": "prod"}
    assert len(rows(warehouse, "select * from dev.c")) == 3


def test_without_leave_it_is_refused(warehouse):
    build(warehouse.find_schema("dev"), ROWS, EXTRA)
    with pytest.raises(ConfigurationError, match="not a cube dataset of schema dev") as refused:
        create(warehouse, deferred=())
    assert "--defer --state" in refused.value.said(DBT)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"L": ["1", "2", "3"]}, "L"),
        ({"v": [1, 2, 3]}, "v"),
    ],
)
def test_what_is_written_is_checked_against_what_lies_elsewhere(warehouse, columns, match):
    table = ROWS
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, pa.array(values))
    dev = warehouse.find_schema("dev")
    before = tree(dev.root)
    with pytest.raises(TypeClassError, match=match):
        build_module.build(dev, table, beside(warehouse))
    assert tree(dev.root) == before


def test_what_was_not_checked_together_is_checked_when_it_is_read(warehouse):
    dev = warehouse.find_schema("dev")
    build_module.build(dev, ROWS, beside(warehouse))
    create(warehouse)
    text = CELLS.set_column(1, "L", pa.array(["1", "2", "3"]))
    prod = warehouse.find_schema("prod")
    cascade = WriteRequest("cs", "seed", "c", ("L",), ("P",), cascade=True)
    build(prod, text, cascade, full_refresh=True)
    with pytest.raises(ConsistencyError, match="Column `L` is"):
        rows(warehouse, "select * from dev.c")


def test_letter_case_is_that_of_the_seed_dataset_elsewhere(warehouse):
    dev = warehouse.find_schema("dev")
    table = ROWS.rename_columns(["p", "l", "w"])
    target = WriteRequest("ce", "enrichment", "c", ("l",), ("p",))
    build_module.build(dev, table, beside(warehouse, target))
    create(warehouse)
    assert len(rows(warehouse, "select * from dev.c where L = 2")) == 1


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select * from a.b", ("a", "b")),
        ("SELECT *\nFROM `a`.`b`", ("a", "b")),
        ("select * from `ktk:/x/y?relation=z`.a.b", ("/x/y", "z")),
        ("select * from a.b where x", None),
        ("select x from a.b", None),
        ("select * from a.b version as of 3", None),
        ("select * from a.b, a.c", None),
        ("select * from b", None),
    ],
)
def test_which_views_only_show_a_relation(sql, shown):
    assert shown_by(sql) == shown


def test_versions_of_several_stores_are_refused(warehouse):
    build_module.build(warehouse.find_schema("dev"), ROWS, beside(warehouse))
    create(warehouse)
    relations = NamedRelations(KnownStores(warehouse.find_schema, warehouse.trust))
    with pytest.raises(QueryError, match="Ask for a time"):
        relations.cube("dev", "c", Moment(version=1))


def test_a_cube_without_its_seed_dataset_says_which_one_to_list(warehouse):
    """To build it first would not help: it exists, and the list lacks it."""
    relations = Relations(warehouse)
    with pytest.raises(ConfigurationError, match=r"has the seed dataset (cs), which is not listed"):
        create_cube(relations, "prod", "c", cube_comment([("prod", "ce")]), ACTOR)
    view = create_cube(
        relations, "prod", "c", cube_comment([("prod", "ce"), ("prod", "cs")]), ACTOR
    )
    assert set(view.datasets) == {"ce", "cs"}
    build(warehouse.find_schema("dev"), ROWS, replace(EXTRA, cube="d"))
    with pytest.raises(ConsistencyError, match="Cube d has no seed dataset yet"):
        create_cube(relations, "dev", "d", cube_comment([("dev", "ce")]), ACTOR)
