"""Random values of random types survive Arrow -> file -> Spark -> Arrow."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.session.session import new_session
from tests.spark.times import HAS_TIMES
from tests.support.changes import WriteRequest, build
from tests.support.queries import quote_identifier
from tests.support.random_cubes import TIMES
from tests.support.spark import statements
from tests.support.stores import LocalStore
from tests.unit.types.values import comparable, tables


@settings(deadline=None, max_examples=10 * TIMES, suppress_health_check=list(HealthCheck))
@given(tables())
def test_every_value_of_every_type_comes_back_through_spark(spark, tmp_path_factory, table):
    # What Spark cannot show is not loss: it has no column without a type, and before 4.1 none of
    # times of day, which is refused by name.
    unknown = ("null",) if HAS_TIMES else ("null", "time32", "time64")
    kept = [f.name for f in table.schema if not any(word in str(f.type) for word in unknown)]
    table = table.select(kept)
    store = LocalStore(tmp_path_factory.mktemp("s") / "s")
    build(store, table, WriteRequest("t"))
    session = statements(new_session(spark), store)
    columns = ", ".join(quote_identifier(name) for name in kept)
    found = collect_table(session.sql(f"select {columns} from an.t order by id"))
    assert found.num_rows == table.num_rows
    for field in table.schema:
        back = comparable(found[field.name], field.type)
        assert back == comparable(table[field.name], field.type), field
