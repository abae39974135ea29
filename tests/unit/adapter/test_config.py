"""What a model's configuration may say, and what is refused with a way out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.model_config import parse_model_config
from dbt.adapters.ktk.config.skip_unchanged import SkipUnchanged, skip_unchanged_of
from dbt.adapters.ktk.credentials import KtkCredentials
from ktk_engine.spark.session.session import REQUIRED_SETTINGS  # deep: refused in profiles

SEED = {"materialized": "cube_seed", "cube": "c", "dimension_columns": ["L"]}


def refused(**config) -> str:
    with pytest.raises(DbtConfigError) as caught:
        parse_model_config("m", "m", {**SEED, **config})
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("indices", "indexes"),
        ("index", "indexes"),
        ("secondary_indices", "indexes"),
        ("index_columns", "indexes"),
        ("partition_on", "partition_by"),
        ("partition_columns", "partition_by"),
        ("dimensions", "dimension_columns"),
        ("autocompact", "auto_compact"),
        ("number_of_buckets", "num_buckets"),
        # Without a key rows are appended, without a strategy merged: never in silence.
        ("unique_kay", "unique_key"),
        ("unique_keys", "unique_key"),
        ("incremental_stratgy", "incremental_strategy"),
        ("incremental_predicate", "incremental_predicates"),
        ("on_schema_chnage", "on_schema_change"),
        ("merge_update_colums", "merge_update_columns"),
        ("materialised", "materialized"),
        ("full_refesh", "full_refresh"),
        ("event_tme", "event_time"),
        ("batchsize", "batch_size"),
        ("hard_delete", "hard_deletes"),
        ("column_type", "column_types"),
        ("post-hooks", "post_hook"),
        ("clusterd_by", "clustered_by"),
    ],
)
def test_a_key_near_one_of_ours_is_refused(written, meant):
    assert f"`{written}` is unknown. Did you mean `{meant}`?" in refused(**{written: ["a"]})


@pytest.mark.parametrize(
    "key",
    [
        "owner",
        "team",
        "grain",
        "keys",
        "description",
        "tests",
        "event_type",
        "updated_on",
        "updated_by",
        "created_at",
        "unique_id",
        "primary_key",
        "merge_key",
        "tag",
        "hook",
    ],
)
def test_keys_of_others_are_left_alone(key):
    parse_model_config("m", "m", {**SEED, key: "x"})


def test_one_is_no_switch():
    """In Python, 1 equals True."""
    assert "to be compacted; but is 1" in refused(auto_compact=1)
    assert "must be true or false, but is 1" in refused(cascade=1)
    assert parse_model_config("m", "m", {**SEED, "auto_compact": True}).auto_compact == 10


def test_an_empty_list_of_dimension_columns_is_not_missing():
    assert "`dimension_columns` must not be empty" in refused(dimension_columns=[])
    assert "needs `dimension_columns`" in refused(dimension_columns=None)


def test_what_plans_rely_on_is_not_for_the_profile():
    key, value = next(iter(REQUIRED_SETTINGS.items()))
    KtkCredentials(schema="s", server_side_parameters={key: value})
    with pytest.raises(ValidationError, match=f"`{key}` to true, but plans rely on false"):
        KtkCredentials(schema="s", server_side_parameters={key: True})


def test_a_store_with_a_key_in_its_address_is_refused_without_it():
    for name in ("store", "defer_store"):
        with pytest.raises(ValidationError, match=f"`{name}` holds a user") as caught:
            KtkCredentials(schema="s", **{name: "s3://key:S3cret@bucket"})
        assert "S3cret" not in str(caught.value)


def merged(**config):
    return {"materialized": "incremental", "unique_key": "L", **config}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (merged(matched_condition=5), "`matched_condition` must be text, but is 5"),
        (merged(skip_matched_step="yes"), "`skip_matched_step` must be true or false"),
        (merged(not_matched_by_source_action="drop"), "it is `delete` or `update set"),
        (merged(not_matched_by_source_action="update set a"), "is not an assignment"),
        (merged(not_matched_by_source_condition="a = 1"), "needs `not_matched_by_source_action`"),
        (merged(matched_condition="a", skip_matched_step=True), "`matched_condition` does nothing"),
        (
            merged(merge_update_columns=["a"], skip_matched_step=True),
            "`merge_update_columns` does nothing with `skip_matched_step: true`",
        ),
        (merged(skip_matched_step=True, skip_not_matched_step=True), "nothing to do without"),
        (merged(target_alias="S", source_alias="s"), "target_alias and source_alias are both"),
        (
            merged(matched_condition="a", incremental_strategy="delete+insert"),
            "matched_condition belong to the strategy merge, not to delete+insert",
        ),
        (merged(match_condition="a"), "Did you mean `matched_condition`"),
    ],
)
def test_clauses_of_merges_are_refused(config, message):
    with pytest.raises(DbtConfigError) as caught:
        parse_model_config("m", "m", config)
    assert message in str(caught.value)


def test_clauses_of_merges():
    def clauses(**config):
        return parse_model_config("m", "m", merged(**config)).incremental.clauses

    assert clauses() is None
    assert clauses(skip_matched_step=False, merge_with_schema_evolution=False) is None
    found = clauses(not_matched_by_source_action="delete", target_alias="t")
    assert (found.target_alias, found.source_alias) == ("t", "DBT_INTERNAL_SOURCE")
    change = found.change(["L", "a`b"], ["t.x > 1 -- so"], ["L", "v"], ["v"])
    key, other = (f"`t`.{name} = `DBT_INTERNAL_SOURCE`.{name}" for name in ("`L`", "`a``b`"))
    assert change.on == f"{key} and {other} and (t.x > 1 -- so\n)"
    assert [(item.kind, item.action) for item in change.clauses] == [
        ("matched", "update"),
        ("not matched", "insert"),
        ("not matched by source", "delete"),
    ]
    assert change.clauses[0].values == {"v": "`DBT_INTERNAL_SOURCE`.`v`"}


def test_publish_names_formats_that_exist():
    def publish(value):
        return parse_model_config("m", "m", {**SEED, "publish": value}).publish

    assert publish(None) is None
    assert publish("none") == publish(False) == publish([]) == ()
    assert publish("delta") == publish(["delta"]) == ("delta",)
    assert publish("delta, iceberg") == publish(["delta", "iceberg"]) == ("delta", "iceberg")
    assert "'hudi' is not a format to publish in. Known: delta, iceberg." in refused(publish="hudi")
    assert "Did you mean `delta`?" in refused(publish="Delta")
    assert "must be a list" in refused(publish={"delta": True})
    view = parse_model_config("m", "m", {"materialized": "view", "publish": "delta"})
    assert not hasattr(view, "publish")  # of a folder: it stores no rows


def test_indices_of_dimensions():
    def without(**config):
        return parse_model_config("m", "m", {**SEED, **config}).target.suppress_index_on

    dimensions = tuple(SEED["dimension_columns"])
    assert without() == without(index_dimensions="always") == ()
    assert without(index_dimensions="never") == dimensions
    assert "must be always or never, but is 'auto'" in refused(index_dimensions="auto")
    both = refused(index_dimensions="always", suppress_index_on=[dimensions[0]])
    assert "Give one of the two" in both
    enrichment = refused(materialized="cube_enrichment", index_dimensions="never")
    assert "is for the seed dataset" in enrichment
    assert "cube" in refused(materialized="table", index_dimensions="never")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, SkipUnchanged()),
        (False, SkipUnchanged()),
        (True, SkipUnchanged(is_on=True)),
        ("True", SkipUnchanged(is_on=True)),
        ("check", SkipUnchanged(is_on=True, checks=True)),
        ({"at_most": "1 hour"}, SkipUnchanged(is_on=True, at_most=timedelta(hours=1))),
        ({"at_most": "7 days"}, SkipUnchanged(is_on=True, at_most=timedelta(days=7))),
    ],
)
def test_whether_what_is_unchanged_runs(value, found):
    assert skip_unchanged_of({"skip_unchanged": value}) == found


@pytest.mark.parametrize(
    "value",
    ["maybe", 3, [], {}, {"at_most": "soon"}, {"at_most": "0 days"}, {"at_least": "1 day"},
     {"at_most": "1 day", "x": 1}, {"at_most": None}],
)  # fmt: skip
def test_other_values_of_skip_unchanged(value):
    said = refused(skip_unchanged=value)
    assert "config `skip_unchanged` must be true, false, check or {at_most: 7 days}" in said
    assert "Did you mean `skip_unchanged`" in refused(skip_unchange=True)
