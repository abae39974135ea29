import json
from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import ConditionError, QueryError
from ktk_engine.plan.align import semi_join
from ktk_engine.plan.explain import explain, explain_as_dict
from ktk_engine.plan.overlay import keep_overlaying, overlaid_files
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.plan_dataset import plan_dataset, plan_rows
from tests.support.committed import cube_scope, resolve
from tests.support.dataset_builder import (
    build_nyc,
    flights,
    flights_builder,
    weather,
    weather_builder,
)
from tests.support.queries import TrueCondition, parse_condition


@pytest.fixture
def cube(store):
    build_nyc(store)
    return load_cube(resolve(store, cube_scope("nyc")))


def part(plan, name):
    return next(item for item in plan.datasets if item.dataset == name)


def files(plan):
    return {item.dataset: item.files.num_rows for item in plan.datasets}


def steps(plan, name):
    return {step.tier: step.files for step in part(plan, name).steps}


def test_columns_of_the_cube(cube):
    names = ["carrier", "hour", "origin", "delay", "airline", "gust"]
    assert cube.schema.names == names
    assert list(cube.plan().columns) == names


def test_everything(cube):
    plan = cube.plan()
    assert files(plan) == {"flights": 2, "weather": 2, "airlines": 1}
    assert [item.join for item in plan.datasets] == ["seed", "left", "left"]
    assert part(plan, "weather").on == ("origin", "hour")
    assert part(plan, "airlines").on == ("carrier",)


def test_partitions_are_pruned_and_aligned(cube):
    plan = cube.plan(["delay", "gust"], "origin = 'JFK'")
    assert files(plan) == {"flights": 1, "weather": 1}
    assert steps(plan, "flights")["partitions"] == 1
    assert plan.unread == ("airlines",)
    assert plan.condition == TrueCondition()


def test_index(store):
    table = pa.concat_tables([flights(["EWR"]), flights(["JFK"]).slice(0, 1)])
    flights_builder(store).commit_rebuild(table)
    cube = load_cube(resolve(store, cube_scope("nyc")))
    plan = cube.plan(["delay"], "hour = 2")
    assert steps(plan, "flights") == {
        "total": 2,
        "partitions": 2,
        "index": 1,
        "statistics": 1,
        "alignment": 1,
    }
    assert files(cube.plan(["delay"], "hour = 3")) == {"flights": 0}
    # An index does not list nulls: it must not speak for what they fulfil.
    assert steps(cube.plan(["delay"], "hour is null"), "flights")["index"] == 2


def test_statistics(cube):
    assert files(cube.plan(["delay"], "delay > 100")) == {"flights": 0}
    assert files(cube.plan(["delay"], "delay >= 12")) == {"flights": 2}
    assert files(cube.plan(["delay"], "delay is null")) == {"flights": 0}
    reason = {s.tier: s.reason for s in part(cube.plan(["delay"], "delay > 1"), "flights").steps}
    assert reason["partitions"] == "no condition on origin"
    assert reason["index"] == "no index on `delay`"


def test_restricted_dataset_is_joined_inner_and_aligns_the_seed(store):
    flights_builder(store).commit_rebuild(flights())
    weather_builder(store).commit_rebuild(weather(["JFK"]))
    cube = load_cube(resolve(store, cube_scope("nyc")))
    left = cube.plan(["delay", "gust"])
    assert (part(left, "weather").join, files(left)) == ("left", {"flights": 2, "weather": 1})
    inner = cube.plan(["delay"], "gust > 0")
    assert (part(inner, "weather").join, files(inner)) == ("inner", {"flights": 1, "weather": 1})


def test_condition_that_missing_rows_fulfil_restricts_nothing(cube):
    plan = cube.plan(["delay"], "gust is null or gust > 100")
    item = part(plan, "weather")
    assert (item.join, item.condition) == ("left", TrueCondition())
    assert files(plan) == {"flights": 2, "weather": 2}
    assert plan.condition != TrueCondition()


def test_condition_over_several_datasets_waits_for_the_joins(cube):
    plan = cube.plan(["delay"], "gust > 5 and (delay > 3 or airline = 'United')")
    assert part(plan, "weather").condition != TrueCondition()
    assert plan.condition != TrueCondition()


def test_shared_condition_prunes_left_joined_datasets_as_well(cube):
    plan = cube.plan(["gust"], "origin in ('JFK') and hour = 1")
    assert files(plan) == {"flights": 1, "weather": 1}
    assert part(plan, "weather").condition == part(plan, "flights").condition


def test_unknown_columns(cube):
    with pytest.raises(QueryError, match=r"`delai` \(did you mean `delay`\?\)"):
        cube.plan(["delai"])
    with pytest.raises((QueryError, ConditionError), match="gust"):
        cube.plan(["delay"], "gusts > 3")
    with pytest.raises(QueryError, match="named twice: delay"):
        cube.plan(["delay", "delay"])
    with pytest.raises(QueryError, match="at least one column"):
        cube.plan([])
    with pytest.raises(QueryError, match="must be a list"):
        cube.plan("delay")


@pytest.fixture
def overlaid(store):
    """Three commits to JFK (delays 10, 500, 20), one to EWR."""
    builder = flights_builder(store)
    builder.commit_rebuild(flights())
    builder.commit_append(flights(["JFK"], 500))
    builder.commit_append(flights(["JFK"], 20))
    return load_cube(resolve(store, cube_scope("nyc")))


def test_overlaid_files(overlaid):
    snapshot = overlaid.snapshots["flights"]
    assert snapshot.files["partition.origin"].to_pylist() == ["EWR", "JFK", "JFK", "JFK"]
    assert overlaid_files(snapshot, ["origin"]).to_pylist() == [False, True, True, True]
    assert overlaid_files(snapshot, []).to_pylist() == [True] * 4


def test_files_that_overlay_a_matching_one_are_kept(overlaid):
    snapshot = overlaid.snapshots["flights"]

    def keep(*matching):
        return keep_overlaying(snapshot, pa.array(matching), ["origin"]).to_pylist()

    assert keep(False, False, True, False) == [False, False, True, True]
    assert keep(True, False, False, False) == [True, False, False, False]
    assert keep(False, False, False, True) == [False, False, False, True]
    assert keep(False, False, False, False) == [False] * 4


def test_replaced_rows_do_not_come_back(overlaid):
    item = part(overlaid.plan(["delay"], "delay > 100"), "flights")
    # Only the second file of JFK matches; the third one replaces its rows.
    assert item.files["position"].to_pylist() == [2, 3]
    assert item.overlaid
    assert item.cell_columns == ("origin", "carrier", "hour")
    assert not part(overlaid.plan(["delay"], "delay < 15 and origin = 'EWR'"), "flights").overlaid


def test_files_of_another_program_may_overlay_each_other(overlaid):
    snapshot = overlaid.snapshots["flights"]
    unknown = pa.nulls(4, pa.string())
    position = snapshot.files.schema.get_field_index("commit")
    plain = replace(snapshot, file_table=snapshot.files.set_column(position, "commit", unknown))
    assert overlaid_files(plain, ["origin"]).to_pylist() == [False, True, True, True]


def test_semi_join_with_null_and_without_shared_columns(cube):
    both = cube.snapshots["flights"].files
    assert semi_join(both, both.slice(0, 0), []).num_rows == 0
    assert semi_join(both, both.slice(1), []).num_rows == 2
    assert semi_join(both, both.slice(1), ["origin"])["position"].to_pylist() == [1]


def test_explanation(cube):
    plan = cube.plan(["delay"], "gust > 31 and origin = 'JFK'")
    text = explain(plan)
    assert "cube nyc, version 3: 1 column" in text
    assert "inner weather: files 2 -> 1 (partitions 1" in text
    assert "not read: airlines" in text
    data = json.loads(json.dumps(explain_as_dict(plan)))
    assert data["datasets"][0]["rows"] == 2
    assert data["datasets"][1]["join"] == "inner"


def test_dataset_by_itself(overlaid):
    plan = plan_dataset(overlaid.snapshots["flights"], 3)
    (item,) = plan.datasets
    assert item.overlaid
    assert item.cell_columns == ("origin", "carrier", "hour")
    assert plan.columns == ("origin", "carrier", "delay", "hour")


def test_rows_of_a_dataset_by_itself(overlaid):
    snapshot = overlaid.snapshots["flights"]

    def plan(*conditions):
        store, known = overlaid.state.store, overlaid.cache
        return plan_rows(store, snapshot, 3, ["delay"], conditions, known).datasets[0]

    # The later file stays, or the rows that it has replaced would come back.
    middle = parse_condition("delay > 100", snapshot.schema)
    assert plan(middle).files["position"].to_pylist() == snapshot.files["position"].to_pylist()[2:]
    assert plan(middle).overlaid
    ewr = parse_condition("origin = 'EWR'", snapshot.schema)
    assert plan(ewr).files.num_rows == 1
    assert not plan(ewr).overlaid
    assert plan(ewr, middle).files.num_rows == 0
    assert plan(ewr).columns == ("origin", "carrier", "delay", "hour")
    assert plan().files.num_rows == 4
