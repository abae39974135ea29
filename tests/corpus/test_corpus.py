"""The reference cases, where they lie beside the repository or KTK_CORPUS names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ktk_engine.spark.session import new_session, start_session
from tests.conftest import SPARK_SETTINGS
from tests.corpus.cube_cases import run_case
from tests.corpus.rejects_cases import run_rejects
from tests.corpus.types_cases import run_types

DEFAULT = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"


@pytest.fixture(scope="module")
def corpus() -> Path:
    path = Path(os.environ.get("KTK_CORPUS") or DEFAULT)
    if not path.is_dir():
        pytest.skip(f"no reference cases: {path} is missing; set KTK_CORPUS to their folder")
    return path


def test_types(corpus: Path) -> None:
    outcomes = list(run_types(corpus / "types.jsonl"))
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_rejects(corpus: Path) -> None:
    outcomes = list(run_rejects(corpus / "rejects"))
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_some_cubes(corpus: Path) -> None:
    """A few cases, for their time; `python -m tests.corpus <folder>/cubes` judges all of them."""
    spark = new_session(start_session(SPARK_SETTINGS))
    cases = sorted(path.parent for path in (corpus / "cubes").glob("*/case.json"))
    outcomes = [outcome for case in cases[4::12] for outcome in run_case(case, spark)]
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []
