"""Configs that users of other adapters know: none does nothing in silence, and the page says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from dbt.artifacts.resources import ModelConfig, SeedConfig, SnapshotConfig
from dbt.artifacts.resources.v1.components import ColumnInfo
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config import config_reader, incremental, merge_clauses, model_config
from dbt.adapters.ktk.config.foreign_config_table import FOREIGN_CONFIGS, ForeignConfig
from dbt.adapters.ktk.config.foreign_configs import hints
from dbt.adapters.ktk.config.model_config import parse_model_config
from dbt.adapters.ktk.config.time_limit import TimeLimit, time_limit
from tests.foreign_keys import RECORDED

PAGE = (Path(__file__).parents[3] / "docs" / "configs-of-other-adapters.md").read_text(
    encoding="utf-8"
)
ALL = [item for group in FOREIGN_CONFIGS.values() for item in group]
SEED = {"materialized": "cube_seed", "cube": "c", "dimension_columns": ["L"]}
TABLE = {"materialized": "table"}
VALUES = {
    "bucketed_by": {"bucketed_by": ["a"], "bucket_count": 2},
    "bucket_count": {"bucketed_by": ["a"], "bucket_count": 2},
    "compression": {"compression": "snappy"},
    "write_compression": {"write_compression": "snappy"},
    "timeout": {"timeout": 3600},
    "job_execution_timeout_seconds": {"job_execution_timeout_seconds": 60},
    "tblproperties": {"tblproperties": {"owner": "x"}},
    "table_properties": {"table_properties": {"owner": "x"}},
}


def treated(*treatments: str) -> list[ForeignConfig]:
    return [item for item in ALL if item.treatment in treatments]


def given(item: ForeignConfig) -> dict:
    return VALUES.get(item.key, {item.key: "x"})


def target(**config):
    return parse_model_config("m", "m", {**TABLE, **config}).target


def refused(**config) -> str:
    with pytest.raises(DbtConfigError) as caught:
        parse_model_config("m", "m", config)
    return str(caught.value)


def row(item: ForeignConfig) -> str:
    """How the page shows a config."""
    said = {"mapped": f"is `{item.instead}`"}.get(item.treatment, item.treatment)
    if item.fine:
        said += " unless " + " or ".join(f"`{value}`" for value in item.fine)
    if item.likewise:
        likewise = ", ".join(f"`{value}`" for value in item.likewise)
        said += f"; {likewise}: warning, once per run"
    advice = f"; {item.instead}" if item.instead and item.treatment != "mapped" else ""
    return f"| `{item.key}` | {item.adapters} | {said} | {item.why}{advice} |"


def test_the_page_shows_the_table():
    shown = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert shown == [row(item) for item in ALL]
    titles = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
    assert titles[: len(FOREIGN_CONFIGS)] == list(FOREIGN_CONFIGS)


def test_each_config_has_one_fate():
    assert len({item.key for item in ALL}) == len(ALL)


@pytest.mark.parametrize("item", treated("refused"), ids=lambda item: item.key)
def test_what_cannot_be_carried_out_is_refused(item):
    message = refused(**TABLE, **given(item))
    assert f"Model m: config `{item.key}`" in message
    assert item.why in message and item.instead[1:] in message
    assert "Nothing was written." in message


@pytest.mark.parametrize("item", treated("refused", "warning"), ids=lambda item: item.key)
def test_what_asks_for_nothing_is_no_trouble(item):
    for value in (None, False, "", [], {}, *item.fine, *(v.upper() for v in item.fine)):
        config = {**TABLE, item.key: value}
        parse_model_config("m", "m", config)
        assert not hints("m", config, True)


@pytest.mark.parametrize("item", treated("refused"), ids=lambda item: item.key)
def test_views_pass_over_what_concerns_files(item):
    config = {"materialized": "view", **given(item)}
    if item.of_tables:
        parse_model_config("m", "m", config)
    else:
        assert item.why in refused(**config)


@pytest.mark.parametrize("item", treated("warning"), ids=lambda item: item.key)
def test_a_hint_is_a_warning(item):
    config = {**TABLE, **given(item)}
    parse_model_config("m", "m", config)
    if item.key != "grants":  # once a run, not once a model
        (hint,) = hints("m", config, True)
        assert hint.text.startswith(f"Model m: config `{item.key}` does nothing: {item.why}.")
    assert len(hints("m", config, False)) == (not item.of_tables and item.key != "grants")


@pytest.mark.parametrize("item", treated("always so", "carried out", "mapped"), ids=lambda i: i.key)
def test_what_is_done_needs_no_word(item):
    assert not hints("m", {**TABLE, **given(item)}, True)


@pytest.mark.parametrize("item", treated("carried out"), ids=lambda item: item.key)
def test_what_is_carried_out_is_read(item):
    readers = (config_reader, incremental, merge_clauses, model_config)
    source = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in readers)
    assert f'"{item.key}"' in source


@pytest.mark.parametrize(
    "key", [item.key for item in treated("mapped") if item.instead == "clustered_by"]
)
def test_names_of_a_sort_order(key):
    assert target(**{key: ["a", "b"]}).clustered_by == ("a", "b")
    assert target(**{key: "a", "clustered_by": "a"}).clustered_by == ("a",)
    message = refused(**TABLE, **{key: "a", "clustered_by": "b"})
    assert f"`{key}` is another name for `clustered_by`" in message
    (hint,) = hints("m", {**SEED, key: "v"}, True)
    assert f"`{key}` does nothing: the files of a cube" in hint.text and "`indexes`" in hint.text
    assert not hints("m", {**TABLE, key: "v"}, True)


def test_other_names_of_the_layout():
    found = target(partitioned_by=["p"], bucketed_by=["a"], bucket_count=4)
    assert (found.partition_by, found.bucket_by, found.num_buckets) == (("p",), ("a",), 4)
    assert target(write_compression="GZIP", options={"row_group_rows": 5}).compression == "gzip"
    assert target(write_compression="gzip", options={"row_group_rows": 5}).row_group_rows == 5
    message = refused(**TABLE, compression="gzip", options={"compression": "zstd"})
    assert "`compression` is another name for `options.compression`" in message
    assert "`options` must be a mapping" in refused(**TABLE, compression="gzip", options=["x"])


def test_insert_overwrite_by_another_name_of_partitions():
    config = {"materialized": "incremental", "incremental_strategy": "insert_overwrite"}
    found = parse_model_config("m", "m", {**config, "partitioned_by": ["p"]})
    assert found.target.partition_by == ("p",)


@pytest.mark.parametrize("item", [item for item in ALL if item.likewise], ids=lambda i: i.key)
def test_another_table_format_is_one_warning_for_all_models(item):
    for value in (*item.likewise, item.likewise[0].upper()):
        config = {**TABLE, item.key: value}
        parse_model_config("m", "m", config)
        (hint,), (other,) = hints("m", config, True), hints("n", config, True)
        assert hint.about == other.about
        assert f"as all models with `{item.key}: {value}`" in hint.text
        assert "not in the format" in hint.text
    assert f"`{item.key}` is 'orc'" in refused(**TABLE, **{item.key: "orc"})


def test_properties_are_noted():
    found = target(tblproperties={"owner": "ops", "tier": 1}, labels={"team": "a"})
    assert found.metadata == {"owner": "ops", "tier": 1, "labels": {"team": "a"}}
    assert "must be a mapping" in refused(**TABLE, tblproperties="owner")
    assert "is reserved" in refused(**TABLE, tblproperties={"creation_time": "x"})
    assert "cannot be written as JSON" in refused(**TABLE, tblproperties={"x": float("nan")})


def test_orders_to_other_engines_are_a_warning():
    config = {**TABLE, "tblproperties": {"delta.appendOnly": "true", "owner": "ops"}}
    (hint,) = hints("m", config, True)
    assert "delta.appendOnly is noted and does nothing else" in hint.text
    assert "owner" not in hint.text
    view = {"materialized": "view", "tblproperties": {"owner": "ops"}}
    (hint,) = hints("m", view, False)
    assert "only what stores rows has properties" in hint.text


ACCESS = [item for item in FOREIGN_CONFIGS["Who may read"] if item.treatment == "refused"]
OF_COLUMNS = [item for item in ACCESS if not item.of_tables]


@pytest.mark.parametrize("materialized", ["table", "view", "ephemeral", "seed", "snapshot"])
@pytest.mark.parametrize("item", OF_COLUMNS, ids=lambda item: item.key)
def test_who_may_read_is_refused_of_columns_and_of_all_that_has_rows(materialized, item):
    config = {"materialized": materialized, "unique_key": "a", "strategy": "check"}
    for column in ({item.key: {"function": "f"}}, {"config": {item.key: ["x"]}}):
        with pytest.raises(DbtConfigError) as caught:
            parse_model_config("m", "m", config, {"ssn": {"name": "ssn", **column}})
        said = f"Model m, column ssn: config `{item.key}` cannot be carried out: a store has no "
        assert said in str(caught.value)
    parse_model_config("m", "m", {"materialized": "view"}, {"ssn": {item.key: [], "config": {}}})
    assert f"config `{item.key}`" in refused(**{**config, item.key: {"function": "f"}})


def test_configs_of_columns_as_dbt_parses_them():
    column = ColumnInfo.from_dict({"name": "a", "config": {"column_mask": {"function": "f"}}})
    with pytest.raises(DbtConfigError, match="column a: config `column_mask`"):
        parse_model_config("m", "m", TABLE, {"a": column})
    column = ColumnInfo.from_dict({"name": "a", "policy_tags": ["t"]})
    with pytest.raises(DbtConfigError, match="column a: config `policy_tags`"):
        parse_model_config("m", "m", TABLE, {"a": column})


@pytest.mark.parametrize("item", ACCESS, ids=lambda item: item.key)
def test_who_may_read_is_refused_in_meta_too(item):
    meta = {"meta": {item.key: "p", "owner": "x"}}
    said = f"config `meta.{item.key}` cannot be carried out: {item.why}"
    assert f"Model m: {said}" in refused(**TABLE, **meta)
    columns = (meta, {"config": meta}, ColumnInfo.from_dict({"name": "a", **meta}))
    for column in () if item.of_tables else columns:
        with pytest.raises(DbtConfigError) as caught:
            parse_model_config("m", "m", TABLE, {"a": column})
        assert f"Model m, column a: {said}" in str(caught.value)
    unused = {"meta": {item.key: None, "location": "x", "databricks_tags": {"pii": 1}}}
    parse_model_config("m", "m", {**TABLE, **unused}, {"a": unused, "b": {"meta": None}})
    assert not hints("m", {**TABLE, **unused}, True, {"a": unused})


@pytest.mark.parametrize(
    "expression",
    ["masking policy p", "WITH MASKING POLICY a.p USING (x)", "mask f", "with tag (pii = 'x')",
     "MASKED WITH (FUNCTION = 'default()')", "projection policy q", "row filter f on (a)",
     "options (policy_tags = ['x'])", "tags ('a' = 'b')"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["custom", ConstraintType.custom])
def test_a_constraint_that_hides_rows_is_refused(expression, kind):
    item = {"type": kind, "expression": expression, "warn_unenforced": False}
    config = {**TABLE, "contract": {"enforced": True}}
    for columns, own in (({"constraints": [item]}, []), ({}, [item])):
        columns = {"a": {"name": "a", "data_type": "int", **columns}}
        with pytest.raises(DbtConfigError, match="Nothing was written") as caught:
            parse_model_config("m", "m", config, columns, constraints=own)
        assert expression in str(caught.value) and "a store has no users" in str(caught.value)


@pytest.mark.parametrize("expression", ["encode zstd", "default 'x'", "comment 'x'", "stage 1", ""])
def test_another_custom_constraint_is_not_checked(expression):
    item = {"type": "custom", "expression": expression}
    columns = {"a": {"name": "a", "data_type": "int", "constraints": [item]}}
    config = {**TABLE, "contract": {"enforced": True}}
    found = parse_model_config("m", "m", config, columns)
    assert found.unchecked == ("Model m: the constraint custom (a) is not checked.",)


def test_tags_of_columns_are_a_warning():
    columns = {
        "a": {"databricks_tags": {"pii": "1"}},
        "b": {"config": {"databricks_tags": {"x": 1}}},
    }
    parse_model_config("m", "m", TABLE, columns)
    first, second = hints("m", TABLE, True, columns)
    assert (
        first.about == second.about and "Model m, column a: config `databricks_tags`" in first.text
    )
    assert not hints("m", TABLE, True, {"a": {"description": "x", "format": "date"}})


@pytest.mark.parametrize(
    "options",
    [
        {"type": "cow", "precombineKey": "ts", "primaryKey": "id"},  # of dbt-spark's page on Hudi
        {"compression": "snappy", "overwriteSchema": "true"},
    ],
)
def test_options_of_other_formats_are_a_warning(options):
    config = {**TABLE, "file_format": "hudi", "options": options}
    parse_model_config("m", "m", config)
    _, unknown = sorted(hints("m", config, True), key=lambda hint: "options" in hint.text)
    others = ", ".join(key for key in options if key != "compression")
    assert f"config `options`: {others} does nothing: it is for another" in unknown.text
    assert "Did you mean `row_group_rows`" in refused(**TABLE, options={"row_group_row": 9})


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"timeout": 3600}, (3600, "the config `timeout`")),
        ({"timeout": 3600, "query_timeout": 5}, (5, "the config `query_timeout`")),
        ({}, (9, "`query_timeout` in the profile")),
    ],
)
def test_the_time_limit_of_a_python_model(config, limit):
    node = SimpleNamespace(config=config, resource_type="model", name="m")
    assert time_limit(node, 9) == TimeLimit(*limit)
    assert "`query_timeout` must be a number of seconds" in refused(**TABLE, timeout="long")
    node.config = {"timeout": "long"}
    with pytest.raises(DbtConfigError, match="`timeout` must be a number of seconds"):
        time_limit(node, 9)


# Of sources, functions, dictionaries, plugins and arguments, or dbt's own: no configs of models.
OF_OTHERS = frozenset(
    """
    Args Ex SparkProperties __dbt_internal_microbatch_event_time_end
    __dbt_internal_microbatch_event_time_start append as_of_datetime as_of_version attach_options
    aws_access_key_id aws_secret_access_key bucket catchup column_names csv_read_options
    data_cell_filters date_format datetime_format depends_on depends_on_validation duckdb_alias
    engine_kwargs entry_point expected_rows expected_sql external_id fast fields filters
    float_format fmt formatter glue_database header_styling http_headers iceberg_table
    ignore_sheet_too_large_error index inf_rep inherited_tags interval json_read_options
    labels_from_meta layout lazy_close lifetime merge_cells mode mv_on_schema_change na_rep name
    notebook_scoped overrides parameters params parquet_read_options partition_columns path
    persist_constraints pg_schema plugin principals randomize range read_only refreshable
    repopulate_from_mvs_on_full_refresh role_arn runtime_version save_mode secret settings
    sheet_name skip_empty_sheet snapshot_table_column_names snowflake sort_by source_type
    storage_options structure substitute_variables table tags_columns type update_field update_lag
    url views_enabled volatility
    """.split()  # noqa: SIM905
)


def test_every_config_that_other_adapters_read_is_in_the_table():
    """The recorded keys are made from the adapters' wheels: see `tests/foreign_keys.py`."""
    of_dbt = {
        name
        for config in (ModelConfig, SnapshotConfig, SeedConfig)
        for name in config.__dataclass_fields__
    }
    known = {*of_dbt, *OF_OTHERS, *model_config._KEYS, *model_config._KEYS_OF_DBT}
    known |= model_config._OTHERS
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        adapter, _, keys = line.partition(": ")
        assert set(keys.split()) - known == set(), adapter
