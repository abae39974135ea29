"""Runs the model's operations on a real store through Spark."""

from __future__ import annotations

from unittest import mock

from pyspark.sql import SparkSession

from ktk_engine.log.state import resolve
from ktk_engine.maintain.compact import compact
from ktk_engine.maintain.compactable import find_compaction
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.write.build import build
from ktk_engine.write.retained import Retained
from ktk_engine.write.rewrite.merge import MergeBy, merge
from ktk_engine.write.rewrite.predicates import Predicates
from ktk_engine.write.rewrite.replace_where import replace_where
from ktk_engine.write.write_context import WriteContext
from tests.faults.content import Verb
from tests.faults.verbs import COLUMNS, TARGETS, table


def make_scanner(session: SparkSession, store: LocalStore) -> Scanner:
    return Scanner(session, store, make_scratch_folder())


def run_by_spark(session: SparkSession, store: LocalStore, verb: Verb) -> None:
    """Do it."""
    scanner, target = make_scanner(session, store), TARGETS[verb.uuid]
    if verb.name == "compact":
        found = find_compaction(resolve(store, target.scope), verb.uuid)
        if found.files.num_rows:
            with mock.patch("ktk_engine.maintain.compact.IN_PROCESS_BYTES", 0):
                compact(found, scanner=lambda: scanner)
        return
    frame = frame_of_table(session, table(verb.uuid, verb.rows))
    if verb.name == "build":
        build(store, frame, target, WriteContext(full_refresh=True))
    elif verb.name in ("append", "overwrite"):
        mode = "append" if verb.name == "append" else "partitions"
        build(store, frame, target, retained=Retained(mode))
    elif verb.name == "replace_where":
        replace_where(scanner, frame, target, Predicates([f"{COLUMNS[verb.uuid][2]} < 0"]))
    else:
        merge(scanner, frame, target, MergeBy((COLUMNS[verb.uuid][1],), verb.name))
