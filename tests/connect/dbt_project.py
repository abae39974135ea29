"""A small dbt project over Spark Connect: a kind of node each, and models that wait on demand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

SLOW = "range(0, 10000000, 1, 1) a cross join range(0, 99999, 1, 1) b where hash(a.id, b.id) = 1"
_WAITS = "{% if var('wait', '') == model.name %}"
_WAITING = f"{_WAITS}select a.id, 'x' as k from {SLOW}{{% else %}}"
# Its first task writes a file, its second one waits.
_HALF_WRITTEN = """
def model(dbt, session):
    waits = dbt.config.get("wait") == "half_written"

    def rows(batches):
        import time
        for batch in batches:
            if waits and 1 in batch["id"].to_pylist():
                time.sleep(600)
            yield batch

    return session.range(0, 2, 1, 2).mapInArrow(rows, "id bigint")
"""
_OF_JAVA = """
def model(dbt, session):
    return session.sparkContext.parallelize([1]).toDF()
"""
# Its own thread starts the job that does not end.
_THREADED = f"""
def model(dbt, session):
    import threading

    frame = session.range(3)
    if dbt.config.get("wait") == "threaded":
        slow = session.sql("select count(*) from {SLOW}")
        thread = threading.Thread(target=slow.collect)
        thread.start()
        thread.join()
    return frame
"""
FILES = {
    "dbt_project.yml": "{name: p, version: '1.0', profile: p}",
    "seeds/names.csv": "k,name\nx,eks\ny,ypsilon\n",
    "models/numbers.sql": "{{ config(materialized='table') }}"
    + _WAITING
    + "select id, if(id % 2 = 0, 'x', 'y') as k from range(1000){% endif %}",
    "models/cells.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], "
    "partition_by=['k'], indexes=['v']) }} select id, k, id * 0.5D as v from {{ ref('numbers') }}",
    "models/extra.sql": "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=["
    "'id'], partition_by=['k']) }} select id, k, id % 7 as w from {{ ref('numbers') }}",
    "models/whole.sql": "{{ config(materialized='cube') }} "
    "{{ cube_of(ref('cells'), ref('extra')) }}",
    "models/added.sql": "{{ config(materialized='incremental', unique_key='id') }}"
    " select id, {{ 1 if is_incremental() else 0 }} as run from {{ ref('whole') }} where w = 3",
    "models/joined.py": """
def model(dbt, session):
    dbt.ref("whole")
    cells = session.sql("select k, count(*) n, sum(w) s from an.whole where v < 100 group by all")
    return cells.join(dbt.ref("names"), "k")
""",
    "models/half_written.py": _HALF_WRITTEN,
    "models/threaded.py": _THREADED,
    "models/of_java.py": _OF_JAVA,
    "models/fails.sql": "{{ config(materialized='table') }} "
    "select raise_error(string(max(hash(id)))) as x from range(0, 1000000000, 1, 1)",
    "models/schema.yml": """
models:
  - {name: half_written, config: {wait: "{{ var('wait', '') }}"}}
  - {name: threaded, config: {wait: "{{ var('wait', '') }}"}}
  - {name: fails, config: {enabled: "{{ var('fails', false) }}"}}
  - {name: of_java, config: {enabled: "{{ var('java', false) }}"}}
  - {name: cells, data_tests: [cube_cells_unique], columns: [{name: v, data_tests: [not_null]}]}
""",
    "snapshots/kept.sql": "{% snapshot kept %}{{ config(unique_key='id', strategy='check', "
    "check_cols=['run']) }} select * from {{ ref('added') }}{% endsnapshot %}",
}


def make_project(folder: Path, target: Mapping[str, Any]) -> Path:
    """Write the project and its profile.

    Args:
        folder: where it goes.
        target: of the profile, besides type, schema and threads.
    """
    profile = {"type": "ktk", "schema": "an", "threads": 2, "store": "./warehouse", **target}
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    outputs = {"p": {"target": "dev", "outputs": {"dev": profile}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(outputs))
    return folder


def start_dbt(project: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start dbt in a process of its own, in which no Java can be started.

    Args:
        project: its folder.
        arguments: of the command.
        more: of the environment.
    """
    hidden = ("JAVA_HOME", "SPARK_HOME", "SPARK_REMOTE", "DBT_WRITE_JSON")
    kept = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", "from dbt.cli.main import cli; cli()", *arguments],
        cwd=project,
        env={**kept, "PATH": f"{Path(sys.executable).parent}", "DBT_USE_COLORS": "false", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def dbt(project: Path, *arguments: str, **more: str) -> tuple[int, str]:
    """Run dbt; gives its exit status and what it printed."""
    process = start_dbt(project, *arguments, **more)
    said, _ = process.communicate(timeout=300)
    return process.returncode, said


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)
