"""What is computed again is read again: subqueries, sources, other relations, and the table itself.

Another process commits between what a statement reads and what it commits.
"""

from __future__ import annotations

import pytest

from ktk_engine.change.merge_versions import merge_versions
from ktk_engine.change.versions import Versions
from ktk_engine.errors import CommitConflictError
from tests.spark.changing import run
from tests.support.changes import (
    Relations,
    ScopeTransaction,
    WriteRequest,
    build,
    read_statement,
    run_statement,
)
from tests.support.spark import (
    MergeBy,
    Predicates,
    Reads,
    Source,
    merge,
    replace_where,
)

pytestmark = pytest.mark.usefixtures("few_rows")

TABLE, OTHER = WriteRequest("t"), WriteRequest("o")


@pytest.fixture
def ready(spark, store):
    """Rows (1, 10), (2, 20), (3, 30) of `an.t`, and 1 in `an.o`."""
    build(store, rows(spark, (1, 10), (2, 20), (3, 30)), TABLE)
    build(store, rows(spark, (1, 0)), OTHER)


def rows(spark, *values):
    return spark.createDataFrame(values, "a long, b long")


def content(sql, name="t"):
    return {tuple(row) for row in sql.sql(f"select a, b from an.{name}").collect()}


@pytest.fixture
def meanwhile(store, monkeypatch):
    """Let something happen when the next write to `t` has begun, once."""

    def let(change, tries=1):
        put, left = type(store).put, iter(range(tries))

        def first(self, key, data):
            put(self, key, data)
            if "/dataset/t/intent/" in key and not busy and next(left, None) is not None:
                busy.append(1)
                change()
                busy.clear()

        busy = []
        monkeypatch.setattr(type(store), "put", first)

    return let


def append(spark, store, *values, to=TABLE):
    return lambda: build(store, rows(spark, *values), to, mode="append")


def statement(sql, store, text):
    """Run any statement on the schema `an`, as dbt does."""
    relations = Relations(OneSchema(store))
    return run_statement(lambda: sql, relations, read_statement(text))


class OneSchema:
    """A warehouse whose only schema is `an`."""

    def __init__(self, store):
        self.store = store

    def find_schema(self, name):
        return self.store if name == "an" else None

    create_schema = find_schema


def test_a_subquery_on_the_table_itself(spark, sql, store, ready, meanwhile):
    meanwhile(append(spark, store, (4, 1000)))
    run(sql, store, "delete from an.t where a not in (select max(a) from an.t)")
    assert content(sql) == {(4, 1000)}


def test_a_value_from_the_table_itself(spark, sql, store, ready, meanwhile):
    meanwhile(append(spark, store, (4, 1000)))
    run(sql, store, "update an.t set b = b + (select max(b) from an.t) where a = 1")
    assert content(sql) == {(1, 1010), (2, 20), (3, 30), (4, 1000)}


@pytest.mark.parametrize("both", [True, False])
def test_another_relation(spark, sql, store, ready, meanwhile, both):
    """Its rows have changed, also where those of the table have not."""

    def change():
        build(store, rows(spark, (2, 0)), OTHER)
        if both:
            append(spark, store, (1, 1000))()

    meanwhile(change)
    run(sql, store, "delete from an.t where a in (select a from an.o)")
    assert content(sql) == {(1, 10), (3, 30)} | ({(1, 1000)} if both else set())


def test_a_view_over_another_relation(spark, sql, store, ready, meanwhile):
    statement(sql, store, "create view an.v as select a from an.o")
    meanwhile(lambda: build(store, rows(spark, (2, 0)), OTHER))
    run(sql, store, "delete from an.t where a in (select a from an.v)")
    assert content(sql) == {(1, 10), (3, 30)}


def test_a_version_of_another_relation_stays(spark, sql, store, ready, meanwhile):
    meanwhile(lambda: build(store, rows(spark, (2, 0)), OTHER))
    run(sql, store, "delete from an.t where a in (select a from an.o version as of 1)")
    assert content(sql) == {(2, 20), (3, 30)}


def test_a_merge_from_the_table_itself(spark, sql, store, ready, meanwhile):
    meanwhile(append(spark, store, (4, 1000)))
    run(
        sql,
        store,
        "merge into an.t as t using (select max(a) as a, max(b) as b from an.t) as s "
        "on t.a = s.a when matched then update set b = -1 "
        "when not matched by source then delete",
    )
    assert content(sql) == {(4, -1)}


def test_a_merge_from_another_relation(spark, sql, store, ready, meanwhile):
    meanwhile(lambda: build(store, rows(spark, (2, 5), (9, 9)), OTHER))
    run(
        sql,
        store,
        "merge into an.t as t using an.o as s on t.a = s.a when matched then update set b = s.b "
        "when not matched then insert *",
    )
    assert content(sql) == {(1, 10), (2, 5), (3, 30), (9, 9)}


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "insert into an.t select max(a) + 1, 0 from an.t",
            {(1, 10), (2, 20), (3, 30), (4, 1), (5, 0)},
        ),
        ("insert overwrite an.t select a, b + 1 from an.t", {(1, 11), (2, 21), (3, 31), (4, 2)}),
        (
            "insert into an.t replace where a <= 4 select a, b + 1 from an.t",
            {(1, 11), (2, 21), (3, 31), (4, 2)},
        ),
        ("create or replace table an.t as select max(a) as a, 0L as b from an.t", {(4, 0)}),
    ],
)
def test_inserts_that_read_the_table(spark, sql, store, ready, meanwhile, text, expected):
    meanwhile(append(spark, store, (4, 1)))
    statement(sql, store, text)
    assert content(sql) == expected


def test_an_insert_is_as_if_made_when_it_read(spark, sql, store, ready, meanwhile):
    """Rows that are added hold whatever others commit, to the table or to what they come from."""
    writes = []

    def change():
        writes.append(1)
        append(spark, store, (4, 1))()
        build(store, rows(spark, (7, 7)), OTHER)

    meanwhile(change, tries=9)
    statement(sql, store, "insert into an.t select a + 100, b from an.o")
    assert content(sql) == {(1, 10), (2, 20), (3, 30), (4, 1), (101, 0)}
    assert len(writes) == 1


def test_several_inserts_read_what_there_was_before(spark, sql, store, ready):
    statement(
        sql,
        store,
        "from an.t insert into an.t select a + 10, b insert into an.t select a + 20, b "
        "insert into an.o select a, b",
    )
    added = {(a + n, b) for n in (0, 10, 20) for a, b in [(1, 10), (2, 20), (3, 30)]}
    assert content(sql) == added
    assert content(sql, "o") == {(1, 0), (1, 10), (2, 20), (3, 30)}


def test_several_inserts_beside_another_commit(spark, sql, store, ready, meanwhile):
    meanwhile(append(spark, store, (4, 1)))
    with pytest.raises(CommitConflictError, match="cannot be computed again here"):
        statement(
            sql,
            store,
            "from an.t insert into an.t select a + 10, b where a > 0 insert into an.o select a, b",
        )
    assert content(sql) == {(1, 10), (2, 20), (3, 30), (4, 1)} and content(sql, "o") == {(1, 0)}


def test_frames_that_read_the_table(spark, sql, store, ready, meanwhile):
    """Those that can be asked again are; others are refused, and the acknowledged row stays."""

    def last():
        return sql.sql("select max(a) as a, 0L as b from an.t")

    by, scanner = MergeBy(("a",)), sql.scanner(store)
    meanwhile(append(spark, store, (4, 1)))
    merge(scanner, Source.query(sql, last), TABLE, by)
    assert content(sql) == {(1, 10), (2, 20), (3, 30), (4, 0)}
    with sql.noting_reads() as noted:
        frame = last()
    build(store, rows(spark, (5, 1)), TABLE, mode="append")
    for change in (
        lambda source: merge(scanner, source, TABLE, by),
        lambda source: replace_where(scanner, source, TABLE, Predicates(["b = 0"])),
    ):
        with pytest.raises(CommitConflictError, match="cannot be computed again here"):
            change(Source.given(frame, Reads(tuple(noted))))
    assert content(sql) == {(1, 10), (2, 20), (3, 30), (4, 0), (5, 1)}
    merge(scanner, frame, TABLE, by)  # what is given without a word of what it has read


def test_it_gives_up_after_some_attempts(spark, sql, store, ready, meanwhile):
    meanwhile(append(spark, store, (4, 1000)), tries=100)
    with pytest.raises(CommitConflictError, match="was changed after this run had read it"):
        run(sql, store, "delete from an.t where a not in (select max(a) from an.t)")
    assert {a for a, _ in content(sql)} == {1, 2, 3, 4}


def test_what_was_read_for_a_look_is_what_is_written_first():
    """A model with documented types is planned once; what is computed again is read again."""
    read = []

    def rows():
        read.append(len(read))
        return read[-1], Reads()

    source, first = Source(rows, True).begun()
    assert (first, read) == (0, [0])
    assert source.read()[0] == 0
    assert source.read()[0] == 1 and read == [0, 1]


# What becomes of a row 9 that comes meanwhile, and whether conditions tell that a row 4 is other.
LEFT_ALONE = {
    "delete from an.t where a = 9": (set(), True),
    "delete from an.t where a % 10 = 9": (set(), False),
    "delete from an.t where a in (select a + 8 from an.o)": (set(), False),
    "update an.t set b = 0 where a = 9": ({(9, 0)}, True),
    "merge into an.t as t using an.o as s on t.a = s.a + 8 when matched then update set b = 1": (
        {(9, 1)},
        False,
    ),
    "merge into an.t as t using an.o as s on t.a = s.a when not matched by source and t.a = 9 "
    "then delete": (set(), True),
    "insert into an.t replace where a = 9 select a, b from an.o where a = 5": (set(), True),
}


@pytest.fixture
def at_the_end(monkeypatch):
    """Let something happen before a statement that found nothing says so, once."""

    def let(change):
        attempts, end = [], ScopeTransaction.checked

        def checked(self):
            attempts.append(self)
            if len(attempts) == 1:
                change()
            return end(self)

        monkeypatch.setattr(ScopeTransaction, "checked", checked)
        return attempts

    return let


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_a_statement_that_found_nothing(spark, sql, store, ready, at_the_end, text):
    """A row that it would have changed is a conflict; another one is none."""
    row, is_narrow = LEFT_ALONE[text]
    before = content(sql) | {(4, 40)}
    attempts = at_the_end(append(spark, store, (4, 40)))
    assert statement(sql, store, text).message == "nothing changed"
    assert len(attempts) == (1 if is_narrow else 2) and content(sql) == before
    at_the_end(append(spark, store, (9, 90)))
    statement(sql, store, text)
    assert content(sql) == before | row


def test_a_statement_that_found_nothing_in_what_it_read(spark, sql, store, ready, at_the_end):
    at_the_end(append(spark, store, (2, 0), to=OTHER))
    statement(sql, store, "delete from an.t where a in (select a from an.o where a > 1)")
    assert content(sql) == {(1, 10), (3, 30)}


def test_a_snapshot_that_found_nothing(spark, sql, store, at_the_end):
    """Versions that another run stores meanwhile are compared with the source, too."""
    version = "id long, dbt_scd_id string, dbt_valid_from long, dbt_valid_to long"
    times = Versions(updated_at="dbt_valid_from")
    build(store, spark.createDataFrame([(1, "a", 1, None)], version), TABLE)
    staging = f"{version}, dbt_change_type string"

    def changes():
        known = sql.sql("select count(*) as n from an.t").first().n
        found = [(1, "b", 2, None, "insert")] if known == 2 else []
        return spark.createDataFrame(found, staging)

    new = spark.createDataFrame([(2, "c", 1, None)], version)
    attempts = at_the_end(lambda: build(store, new, TABLE, mode="append"))
    done = merge_versions(sql.scanner(store), Source.query(sql, changes), TABLE, times)
    assert len(attempts) == 1 and done is not None and done.rows
