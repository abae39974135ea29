"""Layouts in the words of other adapters: columns, or what is computed from them."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.foreign_config_table import FOREIGN_CONFIGS
from dbt.adapters.ktk.config.foreign_configs import hints
from dbt.adapters.ktk.config.layout import LAYOUT
from dbt.adapters.ktk.config.model_config import parse_model_config

TABLE = {"materialized": "table"}
OVERWRITTEN = {"materialized": "incremental", "incremental_strategy": "insert_overwrite"}
MERGED = {"materialized": "incremental", "incremental_strategy": "merge", "unique_key": "id"}
BATCHES = {"materialized": "incremental", "incremental_strategy": "microbatch", "event_time": "ts"}
SNAPSHOT = {
    "materialized": "snapshot",
    "unique_key": "id",
    "strategy": "check",
    "check_cols": "all",
}
CUBE = {"materialized": "cube_seed", "cube": "c", "dimension_columns": ["id"]}
COPIED = {"copy_partitions": True, "time_ingestion_partitioning": False, "range": None}
RANGE = {"start": 0, "end": 100, "interval": 10}
# What BigQuery and Iceberg divide rows by, and how it is written in SQL.
COMPUTED: list[tuple[Any, str]] = [
    ({"field": "ts", "data_type": "timestamp"}, "to_date(ts)"),
    ({"field": "ts", "data_type": "datetime", "granularity": "day"}, "to_date(ts)"),
    ({"field": "ts", "data_type": "DATETIME", "granularity": "HOUR"}, "date_trunc('hour', ts)"),
    ({"field": "d", "data_type": "date", "granularity": "month"}, "date_trunc('month', d)"),
    ({"field": "d", "granularity": "year", **COPIED}, "date_trunc('year', d)"),
    ({"field": "n", "data_type": "int64", "range": RANGE}, "n div 10"),
    ({"field": "n", "data_type": "int64", "range": {**RANGE, "start": 5}}, "(n - 5) div 10"),
    (["month(ts)"], "month(ts)"),
    (["bucket(16, id)", "truncate(name, 3)"], "bucket(16, id)`, `truncate(name, 3)"),
    ("days(ts)", "days(ts)"),
]


def target(**config: Any) -> Any:
    return parse_model_config("m", "m", config).target  # type: ignore[attr-defined]


def refused(**config: Any) -> str:
    with pytest.raises(DbtConfigError) as caught:
        parse_model_config("m", "m", config)
    return str(caught.value)


def said(**config: Any) -> list[str]:
    return [hint.text for hint in hints("m", config, True)]


def test_the_keys_are_known():
    layouts = ("partition_by", "clustered_by")
    items = [item for group in FOREIGN_CONFIGS.values() for item in group]
    assert {i.key for i in items if i.key in layouts or i.instead in layouts} == LAYOUT


@pytest.mark.parametrize(
    "more", [{}, {"data_type": "date"}, {"granularity": "DAY"}, COPIED], ids=str
)
def test_days_of_a_date_are_its_values(more):
    config = {"partition_by": {"field": "day", **more}}
    for kind in (TABLE, OVERWRITTEN, MERGED, CUBE):
        assert target(**kind, **config).partition_by == ("day",)
        assert not said(**kind, **config)


@pytest.mark.parametrize(("by", "sql"), COMPUTED, ids=lambda value: str(value))
def test_partitions_that_no_column_has_change_no_rows(by, sql):
    for kind in (
        TABLE,
        MERGED,
        BATCHES,
        SNAPSHOT,
        {**TABLE, "incremental_strategy": "insert_overwrite"},
    ):
        assert target(**kind, partition_by=by).partition_by == ()
        (line,) = said(**kind, partition_by=by)
        assert f"Model m: config `partition_by` asks for `{sql}`, which is not a column" in line


def test_it_is_one_line_a_run():
    about = {hint.about for by, _ in COMPUTED for hint in hints("m", {"partition_by": by}, True)}
    assert len(about) == 1


@pytest.mark.parametrize(("by", "sql"), COMPUTED, ids=lambda value: str(value))
def test_partitions_that_are_replaced_are_refused(by, sql):
    message = refused(**OVERWRITTEN, partition_by=by)
    assert f"`{sql}`, which is not a column, and `insert_overwrite` replaces" in message
    assert "Nothing was written. Select" in message
    assert "address its cells" in refused(**CUBE, partition_by=by)


@pytest.mark.parametrize(("by", "_"), COMPUTED, ids=lambda value: str(value))
def test_what_stores_no_rows_has_no_partitions(by, _):
    view = {"materialized": "view", "partition_by": by}
    parse_model_config("m", "m", view)
    assert not hints("m", view, False)


def test_columns_stay_beside_what_is_computed():
    by = {"partition_by": ["region", "month(ts)"]}
    assert target(**TABLE, **by).partition_by == ("region",)
    assert "`month(ts)`, which is not a column" in said(**TABLE, **by)[0]
    assert "`month(ts)`, which is not a column" in refused(**OVERWRITTEN, **by)
    assert target(**TABLE, partitioned_by=["region", "month(ts)"]).partition_by == ("region",)
    (line,) = said(**TABLE, partitioned_by=["region", "month(ts)"])
    assert "config `partitioned_by` asks for `month(ts)`" in line


@pytest.mark.parametrize("key", sorted(LAYOUT))
def test_names_in_one_text_or_in_quotes(key):
    names = "partition_by" if key.startswith("partition") else "clustered_by"
    for value in ("a, b", ["a", "b"], ("a", "`b`"), "`a`,b"):
        assert getattr(target(**TABLE, **{key: value}), names) == ("a", "b")
    assert getattr(target(**TABLE, **{key: ["a, b", "`month(x)`"]}), names) == ("a, b", "month(x)")
    assert not said(**TABLE, **{key: "a, b"})
    for nothing in ("", [], {}, None, False):
        assert getattr(target(**TABLE, **{key: nothing}), names) == ()
    assert "names a twice" in refused(**TABLE, **{key: "a, A"}).replace("A, a", "a")


@pytest.mark.parametrize("key", sorted(key for key in LAYOUT if not key.startswith("partition")))
def test_sort_keys_that_are_no_columns_are_one_line(key):
    value = ["to_date(ts)", "id DESC", "seen::date", "date_trunc('month', ts)", "a asc nulls last"]
    assert target(**TABLE, **{key: value}).clustered_by == ("id", "a")
    (line,) = said(**TABLE, **{key: value})
    assert "`to_date(ts)`, `seen::date`, `date_trunc('month', ts)`" in line
    assert "files are not sorted by it" in line
    assert target(**TABLE, **{key: "f(ts, g(1), h(i(2), 3)), id, b"}).clustered_by == ("id", "b")


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ({"data_type": "date"}, "a mapping with the `field` of one"),
        ({"field": ["a"]}, "a mapping with the `field` of one"),
        (
            {"field": "d", "granulrity": "day"},
            "unknown key `granulrity`. Did you mean `granularity`?",
        ),
        (
            {"field": "d", "granularity": "mnth"},
            "`partition_by.granularity` is 'mnth'. Did you mean",
        ),
        ({"field": "d", "data_type": "int"}, "Known: date, timestamp, datetime, int64"),
        ({"field": "n", "data_type": "int64"}, "needs a `range`"),
        ({"field": "n", "data_type": "int64", "range": {"start": 0}}, "needs a `range`"),
        (
            {"field": "n", "data_type": "int64", "range": {**RANGE, "interval": 0}},
            "needs a `range`",
        ),
        ({"field": "d", "time_ingestion_partitioning": True}, "`_partitiontime`"),
        ([{"field": "d"}], "must be a list of column names"),
        (7, "must be a list of column names"),
    ],
    ids=str,
)
def test_what_is_no_layout_is_refused(by, why):
    assert why in refused(**TABLE, partition_by=by)
    assert "config `partition_by" in refused(**TABLE, partition_by=by)


def test_numbers_as_jinja_renders_them():
    assert target(**TABLE, buckets="4").buckets == 4
    assert "must be a whole number above 0" in refused(**TABLE, buckets="four")
    assert "must be a whole number above 0" in refused(**TABLE, buckets="0")


def test_indexes_of_postgres():
    for indexes in (
        ["a", {"columns": ["b"]}],
        [{"columns": "a"}, {"columns": ["b"], "type": "hash"}],
    ):
        assert target(**TABLE, indexes=indexes).indexes == ("a", "b")
        assert not said(**TABLE, indexes=indexes)
    for wide in (["a", "c"], ["lower(a)"]):
        indexes = [{"columns": ["a"]}, {"columns": wide, "type": "btree"}]
        assert target(**TABLE, indexes=indexes).indexes == ("a",)
        (line,) = said(**TABLE, indexes=indexes)
        assert "config `indexes` asks for an index on several columns or an expression" in line
        assert not hints("m", {"materialized": "view", "indexes": indexes}, False)
    (line,) = said(**CUBE, indexes=[{"columns": ["a"], "unique": True}])
    assert "an index here does not enforce that" in line
    for other in ({}, {"columns": []}, {"columns": [1]}, ["a", "b"], 3):
        assert "an index here is on one column" in refused(
            **TABLE, indexes=[{"columns": "a"}, other]
        )
