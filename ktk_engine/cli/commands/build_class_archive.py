"""`ktk build-class-archive`."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say
from ktk_engine.extras import need
from ktk_engine.formatting import size
from ktk_engine.java.class_archive import archive_folder, make_archive

WORKLOAD = "ktk_engine.cli.recorded_work"


@click.command("build-class-archive")
def build_class_archive() -> None:
    """Make Spark start faster; takes half a minute, once.

    Keeps the classes that Spark loads in an archive of about 200 MB in the environment. Run it
    again after an update of Java or PySpark.
    """
    need("spark", "Spark", "pyspark")
    path = make_archive(archive_folder(), WORKLOAD)
    say(f"Spark starts from {path} ({size(path.stat().st_size)}) from now on.")
