"""The configs of a whole project for dbt-spark: none is refused but typos, and a part is run."""

from __future__ import annotations

from collections import Counter

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.foreign_configs import hints
from dbt.adapters.ktk.config.model_config import DatasetConfig, parse_model_config
from tests.projects.conftest import SCHEMA, Project
from tests.projects.production import a_part, nodes, write


def test_the_shape():
    found = nodes()
    formats = Counter(config.get("file_format") for config in found.values())
    overwriting = [
        config
        for config in found.values()
        if config.get("incremental_strategy") == "insert_overwrite" and "partition_by" not in config
    ]
    assert (len(found), formats["delta"], len(overwriting)) == (477, 190, 87)
    assert sum("location_root" in config for config in found.values()) == 7


def test_nothing_is_refused_and_little_is_said():
    said = set()
    for name, config in nodes().items():
        read = parse_model_config(name, name, config)
        said |= {hint.about for hint in hints(name, config, isinstance(read, DatasetConfig))}
    assert len(said) <= 12, said  # lines of a run of all 477 nodes


@pytest.mark.parametrize(
    ("name", "typo", "right"),
    [
        ("fct_90", "incremental_stratgy", "incremental_strategy"),
        ("fct_90", "uniqe_key", "unique_key"),
        ("dim_5", "clusterd_by", "clustered_by"),
        ("dim_5", "parition_by", "partition_by"),
        ("snap_1", "check_col", "check_cols"),
    ],
)
def test_typos_are(name, typo, right):
    with pytest.raises(DbtConfigError, match=f"`{typo}` is unknown. Did you mean `{right}`?"):
        parse_model_config(name, name, {**nodes()[name], typo: "id"})


def test_a_part_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("DBT_LOG_PATH", str(tmp_path / "logs"))
    wanted = a_part(nodes())
    write(tmp_path, wanted)
    project = Project(tmp_path)
    assert project.statuses("build") == {}
    assert project.statuses("build", "--exclude", "config.materialized:table") == {}
    for name, config in wanted.items():
        doubled = config.get("incremental_strategy") == "append"
        assert len(project.rows(SCHEMA, name)) == (12 if doubled else 6), name
