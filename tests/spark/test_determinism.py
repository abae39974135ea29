"""Which texts give the same rows of the same relations, as Spark has it."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from pyspark.errors import PySparkException

from ktk_engine.sql.determinism import unknowns
from ktk_engine.sql.spark_functions import (
    DETERMINISTIC,
    FUNCTIONS,
    WITHOUT_PARENTHESES,
)
from ktk_engine.sql.token import tokenize
from tests.spark.statement_sources import of_functions
from tests.support.random_cubes import TIMES
from tests.support.spark import is_connect

# In plans: what holds for a run or a session. The zone is a setting.
_OF_THE_RUN = (
    "current_timestamp(",
    "current_date(",
    "current_time(",
    "now(",
    "localtimestamp(",
    "current_user(",
    "current_database(",
    "current_catalog(",
    "current_path(",
)


def test_each_function_of_the_list_is_deterministic(spark):
    """Spark says so of what its documentation shows of each."""
    if is_connect(spark):
        pytest.skip("a server shows no plan")
    known = {row[0] for row in spark.sql("show functions").collect()} & DETERMINISTIC
    shown = set()
    for text in of_functions(spark):
        text = text.rstrip("; ")
        called = {text[token.start : token.end].lower() for token in tokenize(text)} & known
        if not called or any(item.what.startswith(("calls", "reads")) for item in unknowns(text)):
            continue
        try:
            plan = spark.sql(text)._jdf.queryExecution().analyzed()
        except PySparkException:
            continue
        assert plan.deterministic(), text
        assert not [each for each in _OF_THE_RUN if each in plan.toString().lower()], text
        shown |= called
    assert len(shown) > 0.8 * len(known), known - shown


def test_each_function_without_parentheses_is_known(spark):
    def is_function(name: str) -> bool:
        try:
            return bool(spark.sql(f"select `{name}`").columns)
        except PySparkException:
            return False

    assert {name for name in FUNCTIONS if is_function(name)} <= WITHOUT_PARENTHESES


_TEXTS = ["'to'", "'day'", "'tod'", "'ay'", "'xtoday'", "'yadot'", "' '", "'TO'", "'o'", "'x'"]
_FORMS = [
    *("{} || {}", "{} {}", "concat({}, {})", "lower({})", "upper({})", "reverse({})", "trim({})"),
    *("coalesce(null, {})", "substring({}, 2)", "replace({}, 'x', 'to')", "cast({} as string)"),
    *("array({}, {})[0]", "case when 1 = 1 then {} else {} end", "if(true, {}, {})", "({})"),
    *("nullif({}, {})", "greatest({}, {})", "{}::string", "named_struct('a', {}).a"),
    *("map({}, 'x', 'a', {})['a']", "split({}, ' ')[0]", "trim('x' from {})", "concat_ws('', {})"),
    *("try_cast({} as varchar(5))", "left({}, 5)", "regexp_replace({}, 'x', '')", "min_by({}, 1)"),
]


def test_no_text_that_passes_is_the_day_of_the_run(spark):
    """Random expressions of literals that Spark reads as a day are found."""
    chance, found, passed = Random(3), 0, 0
    for _ in range(400 * TIMES):
        text = chance.choice(_TEXTS)
        for _ in range(chance.randint(1, 3)):
            form = chance.choice(_FORMS)
            others = itertools.chain([text], iter(lambda: chance.choice(_TEXTS), None))
            text = form.format(*itertools.islice(others, form.count("{}")))
        query = f"select 1 from values (date '2026-01-01') as t (d) where d = {text}"
        if chance.random() < 0.5:
            query = f"select cast({text} as timestamp)"
        try:
            is_day = spark.sql(query).collect() and "d = " not in query
        except PySparkException:
            is_day = False
        else:
            is_day = is_day or "d = " in query  # a text that is no date is an error
        if is_day and "null" not in str(spark.sql(query).collect()).lower():
            assert unknowns(query), query
            found += 1
        passed += not unknowns(query)
    assert found > 10
    assert passed > 10
