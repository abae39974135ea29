"""Few versions in datasets of cubes without Spark: as with it, files and messages included."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pyarrow as pa
import pytest

from ktk_engine.change.merge_versions import merge_versions
from ktk_engine.change.versions import Versions
from tests.spark.committed import outcome
from tests.support.changes import WriteRequest, build
from tests.support.spark import queried, watch_executors
from tests.support.stores import LocalStore

pytestmark = pytest.mark.usefixtures("few_rows")

CUBE = WriteRequest("t", "seed", "c", ("id", "dbt_scd_id"), ("region", "even"))
CUBE = replace(CUBE, indexes=("dbt_valid_from",), declared={"u": pa.uint64()})
BY = Versions(unique_key="id")
NOW = datetime(2026, 1, 2, 3, 4, 5, 600, UTC)
REGIONS = ("a/b", "50%", "x=y", "Łódź")
COLUMNS = (
    "id, region, id % 2 = 0 as even, v, if(id % 3 = 0, double('nan'), -0D) as f, null as nothing, "
    "cast(18446744073709551615 - id as decimal(20, 0)) as u, date '1582-10-04' + id as day, "
    "dbt_scd_id, dbt_updated_at, dbt_updated_at as dbt_valid_from, dbt_valid_to"
)


def version(id_, v, scd_id, since="2024-01-01", to="null", kind=""):
    """A version of a row; with a kind it is a row of dbt's staging table."""
    staged = f"'{kind}' as dbt_change_type, {id_} as dbt_unique_key, " if kind else ""
    return (
        f"select {staged}{COLUMNS} from (select {id_} as id, '{REGIONS[id_ % 4]}' as region, "
        f"cast({v} as bigint) as v, '{scd_id}' as dbt_scd_id, cast('{since}' as timestamp) as "
        f"dbt_updated_at, cast({to} as timestamp) as dbt_valid_to)"
    )


FIRST = [version(n, n, f"k{n}") for n in range(8)]
# A later file of the same cells: k5 has another value, k6 has ended, 13 is new.
LATER = [version(5, 50, "k5"), version(6, 6, "k6", to="'2024-01-15'"), version(13, 13, "k13")]
# A file of the same partition for itself, and one that hides the rows of `LATER` again.
OTHERS = [version(17, 17, "k17", "2024-01-20")]
AGAIN = [version(6, 60, "k6")]


def closing(n, scd_id, to="'2024-02-01'", kind="update"):
    return version(n, n, scd_id, to=to, kind=kind)


def adding(n, scd_id, since="2024-02-01", v=7):
    return version(n, v, scd_id, since, kind="insert")


CHANGE = [closing(5, "k5"), adding(5, "n5")]
CHANGES = {
    "a change": CHANGE,
    "one that has ended": [closing(6, "k6"), adding(6, "n6")],
    "a row that went": [closing(2, "k2", kind="delete")],
    "one that went and came back": [closing(6, "k6"), adding(6, "k6", "2024-01-01")],
    "ids that are taken": [adding(n, f"k{n}", "2024-01-01") for n in (5, 13, 18)],
    "new rows": [adding(30, "k30"), adding(31, "k31")],
    "several": [*CHANGE, closing(1, "k1", kind="delete"), adding(40, "k40")],
    "an id without a version": [closing(5, "unknown")],
}
PARTS = {
    "once": [FIRST],
    "overlaid": [FIRST, LATER],
    "beside": [FIRST, OTHERS],
    "again": [FIRST, LATER, AGAIN, OTHERS],
}


@pytest.fixture(scope="module")
def rows(spark):
    """Rows of SQL, as Spark hands them over; the same ones are computed once."""
    return cache(lambda *selects: spark.sql(" union all ".join(selects)).toArrow())


@pytest.fixture
def both(spark, sql, rows, tmp_path, monkeypatch):
    """What happens in this process and in Spark, and whether the first did without Spark."""

    def run(parts, changes, target=CUBE, by=BY):
        found, here = [], []
        monkeypatch.setattr(LocalStore, "now", lambda self: NOW)  # ids are made of it
        for by_arrow in (True, False):
            store = LocalStore(tmp_path / str(len(list(tmp_path.iterdir()))))
            for part in parts:
                build(store, rows(*part), target, mode="append")

            def write(store=store):
                staged = queried(lambda: spark.sql(" union all ".join(changes)))
                return merge_versions(sql.scanner(store), staged, target, by)

            with monkeypatch.context() as patch:
                noted = watch_executors(patch, by_arrow)
                found.append(outcome(monkeypatch, store, target, write))
            here.append(noted == [True])
        return (*found, here[0])

    return run


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        *((name, "again") for name in CHANGES),
        *((name, "once") for name in ("a change", "ids that are taken")),
        *((name, "overlaid") for name in ("one that has ended", "one that went and came back")),
        ("several", "beside"),
    ],
)
def test_it_does_what_spark_does(both, changes, parts):
    found, wanted, here = both(PARTS[parts], CHANGES[changes])
    assert found == wanted
    assert here


def test_what_an_overlay_has_hidden_is_no_version(both):
    """An id that only a hidden row has is free; a version that was closed since is closed."""
    cells = replace(CUBE, dimension_columns=("id",))
    hidden = [FIRST, [version(5, 50, "new")]]
    found, wanted, here = both(hidden, [closing(5, "k5")], cells)
    assert found == wanted
    assert here
    assert found[0][0].updated == 0
    found, wanted, here = both(hidden, [adding(21, "k5", "2024-01-01")], cells)
    assert found == wanted
    assert here


@pytest.mark.parametrize("parts", ["beside", "overlaid"])
def test_a_cell_that_is_taken_is_refused(both, parts):
    cells = replace(CUBE, dimension_columns=("id", "dbt_valid_from"), indexes=())
    taken = [closing(5, "k5"), adding(5, "other", "2024-01-01")]
    found, wanted, here = both(PARTS[parts], taken, cells)
    assert found == wanted
    assert "New rows have cells (region, even, id, dbt_valid_from) of old rows" in found[0]
    assert not here


def test_versions_that_cannot_be_told_apart_are_refused(both):
    cells = replace(CUBE, dimension_columns=("id", "v"))
    twice = [[*FIRST, version(5, 6, "k5")], LATER]
    found, wanted, here = both(twice, [closing(5, "k5")], cells)
    assert found == wanted
    assert "3 current versions have the dbt_scd_id of 1 changed row" in found[0]
    assert not here


def test_current_versions_may_have_a_date(both):
    end = "'9999-12-31'"
    rows = [version(n, n, f"k{n}", to=end) for n in range(8)]
    later = [version(6, 6, "k6", to="'2024-01-15'"), version(5, 5, "k5")]
    changes = [closing(n, f"k{n}") for n in (4, 5, 6)]
    by = replace(BY, current="timestamp '9999-12-31'")
    found, wanted, here = both([rows, later], changes, by=by)
    assert found == wanted
    assert here
    assert found[0][0].updated == 2
