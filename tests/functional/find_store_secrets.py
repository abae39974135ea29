"""Runs dbt and ktk with the keys of an S3 store, and looks for them wherever others could see them.

Arguments: folder of the project, of temporary files, address of the store, its endpoint. The secret
comes from the environment, since dbt writes down how it was called.
Prints a list of places as JSON: none, if all is well.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

from tests.servers.s3 import SECRET, S3Server
from tests.support.stores import open_store

found: set[str] = set()


def look(place: str, data: bytes) -> None:
    if SECRET.encode() in data:
        found.add(place)


def files(folder: Path) -> int:
    """Look into all files but the profile; gives how many there are."""
    count = 0
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "profiles.yml":
            look(f"file {path}", path.read_bytes())
            count += 1
    return count


def main() -> None:
    project, temporary, url = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    options = S3Server(sys.argv[4]).options
    os.chdir(project)
    runner, ran = dbtRunner(), []
    for command in (
        ["--debug", "debug"],
        ["--debug", "run"],
        ["--debug", "docs", "generate", "--no-compile"],
        ["--debug", "run-operation", "ktk_info"],
        ["--debug", "run-operation", "ktk_check", "--args", "{name: c}"],
    ):
        ran.append((command[1], runner.invoke(command).success))
    stored = open_store(url, options)
    objects = [info.key for info in stored.list()]
    for key in objects:
        look(f"object {key}", stored.get(key))
    from pyspark import SparkContext

    from ktk_engine.cli.find_store import _from_profile  # deep: a profile alone

    context = SparkContext._active_spark_context
    assert context is not None
    look("Spark's settings", str(context.getConf().getAll()).encode())
    assert SECRET in str(_from_profile(Path.cwd())[2])  # the command ktk has to know it
    data = pickle.dumps(stored)
    looked = files(temporary) + files(project)
    answer = {
        "found": sorted(found),
        "ran": ran,
        "looked": looked,
        "objects": len(objects),
        "in the pickle": data.count(SECRET.encode()),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
