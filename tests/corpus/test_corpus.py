"""The reference cases, where they lie beside the repository or KTK_CORPUS names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
