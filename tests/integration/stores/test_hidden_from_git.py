"""A warehouse that is made in a project stays out of its repository."""

from __future__ import annotations

import subprocess

import pytest

from ktk_engine.store.warehouse import Warehouse


@pytest.mark.parametrize("first", ["probe", "build"])
def test_git_ignores_a_new_warehouse(tmp_path, first):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    warehouse = Warehouse(tmp_path / "warehouse")
    if first == "probe":  # dbt debug
        warehouse.probe()
    warehouse.create_schema("s")
    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""
    assert warehouse.schemas() == ["s"]


def test_a_folder_that_was_there_is_left_alone(tmp_path):
    (tmp_path / "warehouse").mkdir()
    Warehouse(tmp_path / "warehouse").create_schema("s")
    assert not (tmp_path / "warehouse" / ".gitignore").exists()
