import json
import os
from pathlib import Path

import pytest

from ktk_engine.store.local import LocalStore
from tests.unit.faulty_store import FaultyStore


def corpus_cases():
    """Descriptions of the reference cubes, wherever the corpus lies."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "corpus"
    return sorted((Path(os.environ.get("KTK_CORPUS", beside)) / "cubes").glob("*/case.json"))


def pytest_generate_tests(metafunc):
    if "reference_cube" in metafunc.fixturenames:
        cases = corpus_cases()
        names = [path.parent.name for path in cases] or ["none"]
        metafunc.parametrize("reference_cube", cases or [None], ids=names, indirect=True)


@pytest.fixture
def reference_cube(request):
    """A cube that Kartothek wrote: its description and its store."""
    if request.param is None:
        pytest.skip("no reference cases: set KTK_CORPUS to the corpus's folder")
    return json.loads(request.param.read_text()), LocalStore(request.param.parent / "store")


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty store, which can be made to fail. Its syncs, tested elsewhere, cost nothing."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    return FaultyStore(tmp_path / "store")
