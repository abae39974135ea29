"""Runs the model's operations on a real store through Spark."""

from __future__ import annotations

from unittest import mock

from pyspark.sql import SparkSession

from tests.faults.content import Verb
from tests.faults.verbs import COLUMNS, TARGETS, table
from tests.support.changes import build, compact, find_compaction
from tests.support.committed import resolve
from tests.support.spark import (
    MergeBy,
    Predicates,
    Scanner,
    frame_of_table,
    make_scratch_folder,
    merge,
    replace_where,
)
from tests.support.stores import LocalStore


def make_scanner(session: SparkSession, store: LocalStore) -> Scanner:
    return Scanner(session, store, make_scratch_folder())


def run_by_spark(session: SparkSession, store: LocalStore, verb: Verb) -> None:
    """Do it."""
    scanner, target = make_scanner(session, store), TARGETS[verb.uuid]
    if verb.name == "compact":
        found = find_compaction(resolve(store, target.scope), verb.uuid)
        if found.files.num_rows:
            with mock.patch(
                "ktk_engine.maintain.compact.IN_PROCESS_BYTES",  # deep: patched
                0,
            ):
                compact(found, scanner=lambda: scanner)
        return
    frame = frame_of_table(session, table(verb.uuid, verb.rows))
    if verb.name == "build":
        build(store, frame, target, full_refresh=True)
    elif verb.name in ("append", "overwrite"):
        mode = "append" if verb.name == "append" else "partitions"
        build(store, frame, target, mode=mode)
    elif verb.name == "replace_where":
        replace_where(scanner, frame, target, Predicates([f"{COLUMNS[verb.uuid][2]} < 0"]))
    else:
        merge(scanner, frame, target, MergeBy((COLUMNS[verb.uuid][1],), verb.name))
