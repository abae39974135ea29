"""The reference cases: what Kartothek 5.3.0 answered, and what it refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SPARK_SETTINGS
from tests.corpus.cases import cases_folder
from tests.corpus.cube_cases import run_case
from tests.corpus.rejects_cases import run_rejects
from tests.corpus.types_cases import run_types
from tests.support.spark import connect_address, connect_session, new_session, start_session
from tests.support.stores import open_store


@pytest.fixture(scope="module")
def corpus() -> Path:
    return cases_folder()


def test_types(corpus: Path) -> None:
    outcomes = list(run_types(corpus / "types.jsonl"))
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_rejects(corpus: Path) -> None:
    outcomes = list(run_rejects(corpus / "rejects"))
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_many_cubes_in_this_process(corpus: Path) -> None:
    """A third of the cases; `python -m tests.corpus --engine local` judges all of them."""
    cases = sorted(path.parent for path in (corpus / "cubes").glob("*/case.json"))
    outcomes = [outcome for case in cases[::3] for outcome in run_case(case, None)]
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_some_cubes_on_s3(corpus: Path, s3_server) -> None:
    """A few cases as they would lie in a bucket; `--store s3://...` judges all of them."""
    cases = sorted(path.parent for path in (corpus / "cubes").glob("*/case.json"))
    outcomes = []
    for case in cases[1::24]:
        store = open_store(s3_server.new_url(), s3_server.options)
        outcomes += run_case(case, None, store)
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []


def test_some_cubes(corpus: Path, request: pytest.FixtureRequest) -> None:
    """A few cases, for their time; `python -m tests.corpus <folder>/cubes` judges all of them."""
    if remote := connect_address(request):
        spark = connect_session(remote)
    else:
        spark = new_session(start_session(SPARK_SETTINGS))
    cases = sorted(path.parent for path in (corpus / "cubes").glob("*/case.json"))
    outcomes = [outcome for case in cases[4::12] for outcome in run_case(case, spark)]
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []
