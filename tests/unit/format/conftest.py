import json
import os
from pathlib import Path

import pytest

from ktk_engine.store.local import LocalStore


def _corpus():
    beside = Path(__file__).resolve().parents[4] / "shared" / "corpus"
    return Path(os.environ.get("KTK_CORPUS", beside))


def _cases():
    return sorted((_corpus() / "cubes").glob("*/case.json"))


def pytest_generate_tests(metafunc):
    if "corpus_case" in metafunc.fixturenames:
        cases = _cases()
        names = [path.parent.name for path in cases] or ["none"]
        metafunc.parametrize("corpus_case", cases or [None], ids=names, indirect=True)


@pytest.fixture
def corpus_case(request):
    """A reference cube: its description and its store."""
    if request.param is None:
        pytest.skip("no reference cases: set KTK_CORPUS to the corpus's folder")
    case = json.loads(request.param.read_text())
    return case, LocalStore(request.param.parent / "store")
