"""What commands, the public face and shipped modules import, each in a process of its own."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ktk_engine.spark.session import executors
from tests.support.dataset_builder import build_nyc


def test_commands_without_a_query_import_no_pandas(store):
    build_nyc(store)
    code = """if True:
        import sys
        from ktk_engine.cli.main import main
        for command in (["info", "nyc"], ["info"], ["history", "nyc"], ["cleanup"]):
            main(["--store", sys.argv[1], *command], standalone_mode=False)
        print({"pandas", "pyarrow.dataset", "pyspark", "sqlglot"} & set(sys.modules))
    """
    run = [sys.executable, "-c", code, str(store.root)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("ktk_engine", ["pyarrow"]),
        ("ktk_engine.cli.main", ["pyarrow.parquet", "rich.table", "yaml", "pandas", "pyspark"]),
        ("ktk_engine.describe.info", ["pandas", "pyspark", "sqlglot", "rich"]),
        ("ktk_engine.api", ["pyspark"]),
    ],
)
def test_imports_are_cheap(module, unwanted):
    code = f"import {module}, sys; print(*(set(sys.modules) & set({unwanted!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_neither_java_nor_pyspark_is_needed(tmp_path):
    program = f"""
import sys
import pyarrow as pa
from ktk_engine import Store
store = Store({str(tmp_path / "s")!r})
cube = store.build("c", pa.table({{"a": [1, 2], "v": [1, 2]}}), dimension_columns=["a"])
cube = cube.append({{"seed": pa.table({{"a": [3], "v": [3]}})}}).delete("v = 1")
assert cube.query().count() == 2
store.write_table("t", pa.table({{"a": [1]}}))
store.write_table("t", pa.table({{"a": [1]}}), "merge", key=["a"])
assert not [name for name in sys.modules if name.startswith(("pyspark", "py4j", "dbt"))]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_conditions_need_no_pandas():
    program = """
import sys
class NoPandas:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ImportError("there is no pandas")
sys.meta_path.insert(0, NoPandas())
import datetime
import pyarrow as pa
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.conditions.parse import parse_condition
at = pa.timestamp("us", "UTC")
table = pa.table({"at": pa.array([0, 1], at), "day": pa.array([0, 1], pa.date32())})
text = "at > '1970-01-01 00:00:00+00:00' and day in (date '1970-01-02')"
assert evaluate(parse_condition(text, table.schema), table).to_pylist() == [False, True]
moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
assert evaluate(comparison("at", at, ">", moment), table).to_pylist() == [False, True]
assert evaluate(is_in("at", at, [moment]), table).to_pylist() == [True, False]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_of_pyspark_is_imported():
    code = (
        "import ktk_engine.local.answer, sys; assert not {'pyspark', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# What Python workers import, directly or as pickles name it.
MODULES = (
    "ktk_engine.files.file_writer",
    "ktk_engine.files.read_rows",
    "ktk_engine.local.join_task",
    "ktk_engine.spark.read.task_frame",
    "ktk_engine.spark.session.worker_modules",
    "ktk_engine.store.local.local_store",
)


INSTALLED = ("pyarrow", "numpy", "numpy.libs", "pyspark", "py4j")


def test_what_is_shipped_needs_nothing_but_spark_pyarrow_and_numpy(tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    spec = importlib.util.find_spec("pyarrow")
    for name in INSTALLED:
        installed = Path(spec.origin).parents[1] / name
        if installed.exists():
            (packages / name).symlink_to(installed)
    archive = tmp_path / "engine.zip"
    executors._write_archive(archive, executors._files())
    program = (
        f"import sys; sys.path[:0] = [{str(archive)!r}, {str(packages)!r}]\n"
        f"import {', '.join(MODULES)}\n"
        "print(ktk_engine.__file__)"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(archive))
    assert archive.stat().st_size < 600_000
