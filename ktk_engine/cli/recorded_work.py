"""The workload whose classes `class_archive` archives: writes and queries a cube."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ktk_engine.catalog.view import ViewDocument, render_view, view_key
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.spark.client.classic import end_jvm
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.spark.session.session import new_session, start_session
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.write.build import build

_SEED = "select id, id % 2 as part, cast(id as string) as word from range(100)"
_ENRICHMENT = "select id, id * 2 as value from range(50)"
_QUESTION = """
with recent as (select part, value, row_number() over (partition by part order by id) as number
                from an.c where part = 1 and value > 3)
select part, count(*) as cells, sum(value) as total, max(number) as last
from recent join an.seed using (part) group by part order by part
"""


def record(archive: Path) -> None:
    """Start Spark, work, and wait until Java has written the archive of loaded classes.

    Args:
        archive: the file to be made.
    """
    spark = start_session(java_options=[f"-XX:ArchiveClassesAtExit={archive}"])
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "an")
        session = SqlSession(
            new_session(spark), lambda name: store if name == "an" else None, make_scratch_folder()
        )
        build(store, session.sql(_SEED), WriteRequest("seed", "seed", "c", ("id",), ("part",)))
        build(store, session.sql(_ENRICHMENT), WriteRequest("more", "enrichment", "c", ("id",)))
        store.put(view_key("c"), render_view(ViewDocument("c", "cube", cube="c")))
        session.sql(_QUESTION).collect()
    sys.exit(end_jvm(spark))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
