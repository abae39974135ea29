"""What this process answers is what Spark answers: dbt's generic tests over random cubes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.errors import LocalEngineError
from ktk_engine.local.sql.generic_test_sql import (  # deep: compared with Spark
    coverage_query,
    orphans_query,
)
from ktk_engine.local.sql.local_sql import LocalSql  # deep: compared with Spark
from ktk_engine.spark.arrow_types import seen_by_spark
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.sql.sql_session import SqlSession
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import KnownStores, quote_identifier, quote_literal
from tests.support.random_cubes import (
    CLASSES,
    COMPARABLE,
    RandomDataset,
    columns_of,
    comparable,
    conditions,
    cubes,
    examples,
    write,
)
from tests.support.stores import LocalStore

TOTALS = (
    "select {calc} as failures, {calc} {warn} as should_warn, {calc} {error} as should_error "
    "from ({rows}) dbt_internal_test"
)


@st.composite
def relations(draw: st.DrawFn, cube: list[RandomDataset]) -> tuple[str, dict[str, pa.DataType]]:
    """A dataset or the cube, perhaps with a condition, and its columns."""
    chosen = draw(st.sampled_from([None, *cube]))
    types = columns_of(cube) if chosen is None else chosen.types
    name = f"an.{'whole' if chosen is None else chosen.name}"
    condition = draw(conditions(cube if chosen is None else [chosen]))
    if draw(st.booleans()):
        return name, types
    return f"(select * from {name} where {condition.text}) dbt_subquery", types


@st.composite
def queries(draw: st.DrawFn, cube: list[RandomDataset]) -> tuple[str, str]:
    """The rows of a test, and how they are counted."""
    rows, types = draw(relations(cube))
    name = draw(st.sampled_from(sorted(types)))
    key = quote_identifier(name)
    kind = draw(st.sampled_from(["not_null", "unique", "values", "relation", "cells", "orphans"]))
    if kind == "not_null" or types[name] not in COMPARABLE:
        return f"select {draw(st.sampled_from(['*', key]))} from {rows} where {key} is null", ""
    if kind == "unique":
        return (
            f"select {key} as unique_field, count(*) as n_records from {rows} "
            f"where {key} is not null group by {key} having count(*) > 1"
        ), draw(st.sampled_from(["", "n_records"]))
    if kind == "values":
        values = [v for v in CLASSES[types[name]] if v == v]
        listed = ", ".join(quote_literal(pa.scalar(v, types[name])) for v in values[:2])
        return (
            f"with all_values as (select {key} as value_field, count(*) as n_records from {rows} "
            f"group by {key}) select * from all_values where value_field not in ({listed})"
        ), "n_records"
    if kind == "relation":
        others = [(d, c) for d in cube for c, t in d.types.items() if t == types[name]]
        if not others:
            return f"select * from {rows}", ""
        other, field = draw(st.sampled_from(others))
        return (
            f"with child as (select {key} as from_field from {rows} where {key} is not null), "
            f"parent as (select {field} as to_field from an.{other.name}) select from_field from "
            "child left join parent on child.from_field = parent.to_field "
            "where parent.to_field is null"
        ), ""
    enrichment = draw(st.sampled_from(cube[1:]))
    keys = enrichment.address
    if kind == "cells":
        listed = ", ".join(keys)
        return (
            f"select {listed}, count(*) as n from an.{enrichment.name} group by {listed}"
        ), draw(st.sampled_from(["", "n"]))
    share = draw(st.sampled_from([0.0, 0.3, 0.75, 1.0]))
    maker = draw(st.sampled_from([orphans_query, coverage_query]))
    return maker(f"an.{enrichment.name}", "an.seed", keys, share), ""


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), cube=cubes(enrichments=3))
@examples(4)
def test_both_engines_agree(sql, tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    names = tuple(dataset.name for dataset in cube)
    add_view(store, ViewDocument("whole", "cube", "", "c", names))
    stores = {"an": store}
    session = SqlSession(sql.session, stores.get, sql.scratch)
    local = LocalSql(KnownStores(stores.get))
    for _ in range(8):
        rows, summed = data.draw(queries(cube))
        calc = f"sum({summed})" if summed else "count(*)"
        total = TOTALS.format(calc=calc, warn="!= 0", error="> 2", rows=rows)
        answer, frame = local.totals(total), session.sql(total)
        assert answer.rows == tuple(tuple(row) for row in frame.collect()), rows
        assert answer.columns == tuple(frame.dtypes)
        found, expected = seen_by_spark(local.rows(rows)), collect_table(session.sql(rows))
        assert found.schema.names == expected.schema.names, rows
        assert found.schema.types == expected.schema.types, rows
        listed = found.schema.names
        assert comparable(found.to_pylist(), listed) == comparable(expected.to_pylist(), listed)
        _shown_alike(local, session, rows)
        relation, types = data.draw(relations(cube))
        names = sorted(name for name in types if types[name] in COMPARABLE)
        name = quote_identifier(data.draw(st.sampled_from(names)))
        kind = data.draw(st.sampled_from(["min", "max"]))
        _shown_alike(local, session, f"select {kind}({name}) from {relation}")
        _shown_alike(local, session, f"select {kind}({name}) as m, count(*) as n from {relation}")


def _shown_alike(local: LocalSql, session: SqlSession, query: str) -> None:
    """Values of Python are those that PySpark gives, and a limit gives some of them."""
    try:
        found = local.shown(query)
    except LocalEngineError:
        return  # types whose values are Spark's alone
    frame = session.sql(query)
    expected = [repr(tuple(row)) for row in frame.collect()]
    assert found.columns == tuple(frame.dtypes), query
    assert sorted(map(repr, found.rows)) == sorted(expected), query
    if len(expected) == 1:
        return  # totals, perhaps
    few = [repr(row) for row in local.shown(f"select * from ({query}) x limit 2").rows]
    assert len(few) == min(2, len(expected)), query
    assert set(few) <= set(expected), query
