"""What docs/from-dbt-duckdb.md says of SQL: what is refused, and what to write in its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-dbt-duckdb.md"
ROW = re.compile(r"^\| `+ ?(.+?) ?`+ \| (?:`+ ?(.+?) ?`+|[^`].*) \|$", re.MULTILINE)
# What Spark 3.5 has no word for.
SINCE_4 = ("string_agg",)


def table(start: str) -> list[tuple[str, str]]:
    """The rows of the table below a line: what DuckDB knows, and what to write here."""
    text = PAGE.read_text(encoding="utf-8").split(start)[1]
    return ROW.findall(re.split(r"\n\n", text.strip(), maxsplit=1)[0])


REFUSED = table("`id`, `name`, `day`, `v` and a list `l`:\n")


@pytest.fixture(scope="module")
def asked(spark):
    spark.sql(
        "select * from values (1, 'a', date'2024-03-05', 2.5D, array(1, 2)),"
        " (2, 'b', date'2024-04-06', 3.5D, array(3, 4)) as t(id, name, day, v, l)"
    ).createOrReplaceTempView("t")

    def ask(text: str):
        whole = re.match(r"(select|with|pivot|from)\b", text)
        return spark.sql(text if whole else f"select {text} from t").collect()

    yield ask
    spark.catalog.dropTempView("t")


def test_the_table_is_read():
    assert len(REFUSED) > 25
    assert ("select * exclude (v) from t", "select * except (v) from t") in REFUSED


@pytest.mark.parametrize(("theirs", "ours"), REFUSED, ids=[theirs for theirs, _ in REFUSED])
def test_it_is_refused_and_has_another_word(asked, theirs, ours):
    with pytest.raises(PySparkException):
        asked(theirs)
    if ours:
        assert asked(ours)


def test_the_same_words_with_another_meaning(asked):
    assert [row[0] for row in asked('"id"')] == ["id", "id"]
    assert [row[0] for row in asked("l[1]")] == [2, 4]
    assert [row[0] for row in asked("element_at(l, 1)")] == [1, 3]
    assert len(asked("select * from t positional join t")) == 4


@pytest.mark.parametrize(
    "text",
    [
        "select name, count(*) from t group by all order by all",
        "select id from t qualify row_number() over (order by v) = 1",
        "id::bigint",
        "try_cast(name as int)",
        "name ilike 'A'",
        "count(*) filter (where v > 3)",
        "select a.id from t a semi join t b using (id)",
        "any_value(name)",
        "median(v)",
        "date_trunc('month', day)",
        "md5(name)",
        "select 1 as one, one + 1 as two",
        "string_agg(name, ',')",
        "from t select id",
    ],
)
def test_the_same_in_both(spark, asked, text):
    if spark.version < "4" and any(word in text for word in SINCE_4):
        pytest.skip("since Spark 4")
    assert asked(text)
