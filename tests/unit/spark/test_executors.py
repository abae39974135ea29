"""What goes to executors, and what is said about those that lack something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ktk_engine.errors import SessionError
from ktk_engine.spark.session import executors, worker_modules
from ktk_engine.spark.session.spark_job import worker_mismatch


def test_the_same_files_have_the_same_name():
    files = executors._files()
    assert executors._digest(files) == executors._digest(dict(files))
    assert executors._digest(files) != executors._digest({**files, "more.py": b""})
    assert not [name for name in files if name.startswith("ktk_engine/cli/")]
    engine = Path(executors.__file__).parents[2]
    assert all((engine / room).exists() for room in executors._NOT_SHIPPED)


@pytest.mark.parametrize(
    ("version", "said"), [("12.0.1", "has pyarrow 12.0.1 in its Python 3."), ("17.0.0", "")]
)
def test_packages_that_are_too_old(monkeypatch, version, said):
    monkeypatch.setattr("pyarrow.__version__", version)
    if not said:
        worker_modules.check_packages()
        return
    with pytest.raises(SessionError, match=said) as caught:
        worker_modules.check_packages()
    assert "need pyarrow 17.0 or newer" in str(caught.value)
    assert "`spark.pyspark.python`" in str(caught.value)


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(SessionError, match="has numpy not installed"):
        worker_modules.check_packages()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
            "driver: 3.11, PySpark cannot run",
            "run Python 3.9,",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version (3, 8) than that in "
            "driver 3.11, PySpark cannot run",
            "run Python 3.8,",
        ),
        (
            'java.io.IOException: Cannot run program "/none/python3": error=2, No such file',
            "no Python at /none/python3.",
        ),
        ("ModuleNotFoundError: No module named 'pyarrow'", "lacks pyarrow,"),
        ("ModuleNotFoundError: No module named 'numpy.core'", "lacks numpy,"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed", "lacks pyarrow,"),
        (
            'Error from python worker:\n  Traceback\n    File "/opt/lib/python3.8/runpy.py", line 1'
            "\n  TypeError: 'type' object is not subscriptable\nPYTHONPATH was:\n  /x",
            "run Python 3.8,",
        ),
        (
            "Error from python worker:\n  /usr/bin/python3: No module named pyspark\n"
            "PYTHONPATH was:\n  /x",
            "workers: /usr/bin/python3: No module named pyspark.",
        ),
        ("ModuleNotFoundError: No module named 'pandas'", ""),
        ("ValueError: on purpose", ""),
    ],
)
def test_why_workers_did_not_start(text, said):
    assert said in worker_mismatch(f"Job aborted.\n{text}\nmore")
    assert bool(said) == bool(worker_mismatch(text))
