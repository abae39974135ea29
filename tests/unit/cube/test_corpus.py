import pytest

from ktk_engine import Store
from ktk_engine.cube.consistency import check_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConsistencyError
from tests.support.committed import cube_scope, describe, resolve
from tests.support.queries import load_cube, normalize, parse_type


def test_reference_cube_opens(reference_cube):
    case, store = reference_cube
    name = case["cube"]["uuid_prefix"]
    state = resolve(store, cube_scope(name))
    given = None
    if case["family"] == "extra_index":
        # Kartothek itself dropped the specification from the documents; the case says so.
        with pytest.raises(ConsistencyError, match="no seed dataset yet"):
            load_cube(state)
        cube = dict(case["cube"])
        given = CubeSpecification(cube.pop("uuid_prefix"), **cube)
    loaded = load_cube(state, specification=given)
    found = loaded.specification
    for key in ("seed_dataset", "dimension_columns", "partition_columns"):
        expected = case["cube"][key]
        assert getattr(found, key) == (tuple(expected) if isinstance(expected, list) else expected)
    for key in ("index_columns", "suppress_index_on"):
        assert getattr(found, key) == set(case["cube"][key])
    assert set(loaded.snapshots) == set(case["schema"])
    for dataset, snapshot in loaded.snapshots.items():
        expected = {n: normalize(parse_type(t)) for n, t in case["schema"][dataset].items()}
        assert dict(zip(snapshot.schema.names, snapshot.schema.types, strict=True)) == expected
        assert list(snapshot.partition_keys) == case["partition_keys"][dataset]
        assert snapshot.files.num_rows == case["files"][dataset]
    check_cube(name, loaded.snapshots, found)
    assert all(item.files.num_rows for item in loaded.plan().datasets)


def test_reference_cube_is_described(reference_cube):
    case, store = reference_cube
    name = case["cube"]["uuid_prefix"]
    assert Store(store.root).cubes() == [name]
    description = describe(store, name)
    assert (description.version, description.last_commit) == (0, None)
    assert {item.id: item.files for item in description.datasets} == case["files"]
    assert all(item.bytes and item.rows is None for item in description.datasets)
    assert (description.specification is None) == bool(description.problem)
    if description.specification is not None:
        assert description.datasets[0].role == "seed"
