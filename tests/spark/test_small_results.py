"""A small result is as few files with any strategy as it is as a table."""

from __future__ import annotations

import pytest

from tests.spark.statements_of_store import Statements
from tests.support.changes import Source, WriteRequest, build
from tests.support.spark import MergeBy, Predicates, merge, replace_where

# Each has its rows shuffled, with `day` as a key.
SHAPES = {
    "group by": "select id % 366 as day, count(*) as n from range(20000) group by 1",
    "join": "select /*+ merge(b) */ a.id as day, b.id as n from range(366) a join range(366) b "
    "using (id)",
    "outer join": "select /*+ merge(b) */ a.id as day, b.id as n from range(366) a full join "
    "range(5) b using (id)",
    "distinct": "select distinct id % 366 as day, 1 as n from range(20000)",
    "union": "select id as day, 1 as n from range(366) union select id, 1 from range(366)",
    "window": "select day, n from (select id % 366 as day, id as n, row_number() over (partition "
    "by id % 366 order by id) as place from range(20000)) where place = 1",
}
SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "40",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
T = WriteRequest("t")


def by_key(strategy: str):
    def write(ours, query):
        return merge(ours.session.scanner(ours.store), query, T, MergeBy(("day",), strategy))

    return write


def where(ours, query):
    scanner = ours.session.scanner(ours.store)
    return replace_where(scanner, query, T, Predicates(("day >= 0",)))


STRATEGIES = {
    "append": lambda ours, query: build(ours.store, query.read()[0], T, mode="append"),
    "merge": by_key("merge"),
    "delete+insert": by_key("delete+insert"),
    "replace_where": where,
}


@pytest.fixture(scope="module")
def ours(spark, tmp_path_factory):
    found = Statements(spark, tmp_path_factory.mktemp("small"), SETTINGS)
    yield found
    found.close()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_small_result_is_few_files(ours, shape, strategy):
    text = SHAPES[shape]
    query = Source.query(ours.session, lambda: ours.session.sql(text))
    as_table = build(ours.store, ours.session.sql(text), WriteRequest("as_table"))
    for round_ in ("first", "later"):
        written = STRATEGIES[strategy](ours, query)
        assert written.rows == as_table.rows == 366, round_
        assert written.files <= as_table.files, round_
    ours.run("drop table an.t")
