"""Runs dbt with secrets in the profile, and looks for them wherever others could see them.

Arguments: folder of the project, of the store of temporary files. Prints a list of places as
JSON: none, if all is well. Runs as a process of its own, since Spark's settings are fixed.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import urllib.request
from pathlib import Path

from dbt.cli.main import dbtRunner

CANARY, VISIBLE = "canary-7f3a", "visible-7f3a"
found: set[str] = set()
seen: set[str] = set()


def processes() -> None:
    """Look at the arguments and the environment of this process's descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            except OSError:
                continue
    for number in parents:
        above = number
        while above in parents and above != os.getpid():
            above = parents[above]
        if number == os.getpid() or above != os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                text = (Path("/proc") / str(number) / name).read_bytes().decode(errors="replace")
            except OSError:
                continue
            look(f"{name} of {text.split(chr(0))[0] if name == 'cmdline' else 'a child'}", text)


def look(place: str, text: str) -> None:
    if CANARY in text:
        found.add(place)
    if VISIBLE in text:
        seen.add(place.partition(" ")[0])


def files(folder: Path, others_only: bool = False) -> None:
    """Look into files; of temporary ones only at those that others can read, or that stay."""
    for path in folder.rglob("*"):
        try:
            if path.is_file() and path.name != "profiles.yml":
                look(f"file {path}", path.read_bytes().decode(errors="replace"))
        except OSError:
            continue


def pages() -> None:
    """Look at Spark's own pages and at what its API says."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None
    url, app = context.uiWebUrl, context.applicationId
    for page in ("/environment/", f"/api/v1/applications/{app}/environment", "/SQL/", "/jobs/"):
        with urllib.request.urlopen(f"{url}{page}") as answer:
            look(f"page {page}", answer.read().decode())
    hadoop = context._jsc.hadoopConfiguration()
    assert hadoop.get("fs.s3a.secret.key") == f"{CANARY} = :#!\\ü"
    assert context.getConf().get("spark.driver.memory") == "1g"
    options = context._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    assert "-Xmx1g" in options.getInputArguments()


def main() -> None:
    project, temporary = Path(sys.argv[1]), Path(sys.argv[2])
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            processes()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        options = ["--project-dir", str(project), "--profiles-dir", str(project)]
        for command in (["--debug", "debug"], ["--debug", "run"], ["--debug", "build"]):
            dbtRunner().invoke([*command, *options])
        pages()
    finally:
        done.set()
        watcher.join()
    files(temporary)
    files(project)
    from dbt.adapters.ktk.credentials import KtkCredentials

    credentials = KtkCredentials(schema="s", server_side_parameters={"spark.x": CANARY})
    look("repr of credentials", repr(credentials) + str(list(credentials.connection_info())))
    assert CANARY in pickle.dumps(credentials).decode("latin-1")  # it has to hold them
    print(json.dumps({"found": sorted(found), "seen": sorted(seen)}))


if __name__ == "__main__":
    main()
