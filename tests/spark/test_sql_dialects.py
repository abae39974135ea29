"""What docs/from-dbt-duckdb.md and docs/from-snowflake.md say: what to write in place of what."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| `+ ?(.+?) ?`+(?: of a text)? \| (?:`+ ?(.+?) ?`+|[^`].*) \|$", re.MULTILINE)
# What Spark 3.5 has no word for.
SINCE_4 = ("string_agg",)


def table(page: str, start: str) -> list[tuple[str, str]]:
    """The rows of the table below a line: what others know, and what to write here."""
    text = (DOCS / page).read_text(encoding="utf-8").split(start)[1]
    return ROW.findall(re.split(r"\n\n", text.strip(), maxsplit=1)[0])


DUCKDB = table("from-dbt-duckdb.md", "`id`, `name`, `day`, `v` and a list `l`:\n")
SNOWFLAKE = table("from-snowflake.md", "a list `l`, and JSON as text, `js`:\n")
ROWS = """
select * from values
    (1, 'a', date'2024-03-05', timestamp_ntz'2024-03-05 12:30:45', 2.5D, array(1, 2),
     '{"a": {"b": [10, 20]}, "n": 5}'),
    (2, 'b', date'2024-04-06', timestamp_ntz'2024-04-06 01:00:00', 3.5D, array(3, 4),
     '{"a": {"b": [30]}, "n": null}')
    as t(id, name, day, at, v, l, js)
"""
REFUSED = [*dict.fromkeys([*DUCKDB, *SNOWFLAKE])]


@pytest.fixture(scope="module")
def asked(spark):
    spark.sql(ROWS).createOrReplaceTempView("t")

    def ask(text: str):
        whole = re.match(r"(select|with|pivot|from)\b", text)
        return spark.sql(text if whole else f"select {text} from t").collect()

    yield ask
    spark.catalog.dropTempView("t")


def test_the_tables_are_read():
    assert len(DUCKDB) > 25
    assert len(SNOWFLAKE) > 55
    for rows in (DUCKDB, SNOWFLAKE):
        assert ("select * exclude (v) from t", "select * except (v) from t") in rows


@pytest.mark.parametrize(("theirs", "ours"), REFUSED, ids=[theirs for theirs, _ in REFUSED])
def test_it_is_refused_and_has_another_word(asked, theirs, ours):
    with pytest.raises(PySparkException):
        asked(theirs)
    if ours:
        assert asked(ours) or "percent" in ours  # a sample of two rows can be empty


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('"id"', ["id", "id"]),
        ("l[1]", [2, 4]),
        ("element_at(l, 1)", [1, 3]),
        ("get(l, 9)", [None, None]),
        ("'\\d'", ["d", "d"]),
        ("regexp_replace('a1', '\\\\d', 'x')", ["ax", "ax"]),
        ("regexp_replace('a1', r'\\d', 'x')", ["ax", "ax"]),
        ("select v from values (1), (null) as u(v) order by v", [None, 1]),
        ("select v from values (1), (null) as u(v) order by v desc", [1, None]),
        ("select v from values (1), (null) as u(v) order by v nulls last", [1, None]),
        ("cast(2.7 as int)", [2, 2]),
        ("cast(round(2.7) as int)", [3, 3]),
        ("typeof(id::float)", ["float", "float"]),
        ("7 / 2", [3.5, 3.5]),
        ("try_divide(1, 0)", [None, None]),
        ("regexp_replace('aa', 'a', 'x')", ["xx", "xx"]),
        ("split('a.b', '.')", [["", "", "", ""]] * 2),
        ("split('a.b', '[.]')", [["a", "b"]] * 2),
        ("concat('a', null)", [None, None]),
        ("concat_ws('', 'a', null)", ["a", "a"]),
        ("select array_agg(v) from values (1), (null) as u(v)", [[1]]),
        ("dayofweek(date'2024-03-03')", [1, 1]),
        ("datediff(month, date'2024-01-31', date'2024-02-01')", [0, 0]),
        (
            "datediff(month, trunc(date'2024-01-31', 'month'), trunc(date'2024-02-01', 'month'))",
            [1, 1],
        ),
        ("regexp_like('abc', 'b')", [True, True]),
        ("regexp_like('abc', '^b$')", [False, False]),
        ("greatest(1, null)", [1, 1]),
        ("least(1, null)", [1, 1]),
        ("listagg(name, ',') filter (where id > 9)", [None]),
        ("last_value(v) over (order by id)", [2.5, 3.5]),
        (
            "last_value(v) over"
            " (order by id rows between unbounded preceding and unbounded following)",
            [3.5, 3.5],
        ),
        ("typeof(date_trunc('month', day))", ["timestamp", "timestamp"]),
        ("typeof(dateadd(day, 1, day))", ["timestamp", "timestamp"]),
        ("trunc(day, 'month')", [datetime.date(2024, 3, 1), datetime.date(2024, 4, 1)]),
        ("date_add(day, 1)", [datetime.date(2024, 3, 6), datetime.date(2024, 4, 7)]),
        ("typeof(to_timestamp('2024-03-05'))", ["timestamp", "timestamp"]),
        ("typeof('2024-03-05'::timestamp)", ["timestamp", "timestamp"]),
        ("typeof(to_timestamp_ntz('2024-03-05'))", ["timestamp_ntz", "timestamp_ntz"]),
        ("random() between 0 and 1", [True, True]),
        ("regexp_extract_all('x12y34', '[0-9]+', 0)[1]", ["34", "34"]),
        ("array_join(l, ',')", ["1,2", "3,4"]),
        ("slice(l, 1, 1)", [[1], [3]]),
        ("extract(dayofweek_iso from day)", [2, 6]),
        ("coalesce(try_divide(1, 0), 0)", [0.0, 0.0]),
        ("transform(array_sort(collect_list(struct(id, name))), x -> x.name)", [["a", "b"]]),
        ("variant_get(parse_json(js), '$.n', 'int')", [5, None]),
        ("parse_json(js):a.b[0]::int", [10, 30]),
        ("to_date('05.03.2024', 'dd.MM.yyyy')", [datetime.date(2024, 3, 5)] * 2),
        ("select ID from t", [1, 2]),
        ("typeof(day + interval 1 month)", ["date", "date"]),
        ("typeof(day - day)", ["interval day", "interval day"]),
        ("regexp_extract('ab12', '([a-z])([0-9]+)')", ["b", "b"]),
        ("regexp_extract('ab12', '([a-z])([0-9]+)', 0)", ["b12", "b12"]),
        ("ltrim('xxa', 'x')", ["", ""]),
        ("ltrim('x', 'xxa')", ["a", "a"]),
        ("round(log(100), 1)", [4.6, 4.6]),
        ("dayname(date'2024-01-31')", ["Wed", "Wed"]),
        ("substr('abc', 0, 2)", ["ab", "ab"]),
        ("'it''s'", ["it's", "it's"]),
        ("'a\\nb'", ["a\nb", "a\nb"]),
    ],
)
def test_the_same_words_with_another_meaning(asked, text, values):
    assert [row[0] for row in asked(text)] == values


def test_the_positions_of_a_positional_join_are_no_condition(asked):
    assert len(asked("select * from t positional join t")) == 4


def test_an_empty_list_stays_in_an_outer_explode(asked):
    lists = "(select 1 as id, array() as l)"
    assert not asked(f"select id, e from {lists}, lateral explode(l) as x(e)")
    assert asked(f"select id, e from {lists} left join lateral explode_outer(l) as x(e)")


@pytest.mark.parametrize("text", ["l[9]", "1 / 0"])
def test_an_error_where_others_give_a_value(asked, text):
    with pytest.raises(PySparkException):
        asked(text)


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
        "name like any ('a%', 'c%')",
        "name rlike 'a'",
        "select id from t minus select 1",
        "with recursive r as (select 1 as n union all select n + 1 from r where n < 3)"
        " select * from r",
        "select name, sum(v) from t group by grouping sets ((name), ())",
        "select name, sum(v) from t group by rollup (name)",
        "select * from t pivot(sum(v) for name in ('a', 'b'))",
        "select * from (select id, v from t) unpivot(x for c in (v))",
        "select * from t natural join t u",
        "select * from t order by id limit 1 offset 1",
        "id::int, id::string, id::decimal(38, 0)",
        "nvl(null, 1), nvl2(null, 1, 2), ifnull(null, 1), nullif(1, 1), coalesce(null, 1)",
        "decode(id, 1, 'one', 'other'), zeroifnull(null), nullifzero(0), equal_null(null, null)",
        "null is not distinct from null",
        "dateadd(day, 1, day), last_day(day), next_day(day, 'monday'), dayname(day)",
        "monthname(day), extract(month from day), to_date('2024-03-05'), try_to_date('x')",
        "convert_timezone('UTC', 'Europe/Berlin', at)",
        "split_part('a,b', ',', 2), contains(name, 'a'), startswith(name, 'a'), len(name)",
        "endswith(name, 'a'), left(name, 1), right(name, 1), regexp_substr(name, 'a')",
        "regexp_count('aab', 'a'), lpad(name, 3, '0'), initcap('ab cd')",
        "listagg(name, ',') within group (order by name), array_agg(name), count_if(v > 2)",
        "max_by(name, v), min_by(name, v), percentile_cont(0.5) within group (order by v)",
        "approx_count_distinct(v)",
        "lag(v) ignore nulls over (order by id)",
        "try_parse_json('x')",
    ],
)
def test_the_same_in_both(spark, asked, text):
    if spark.version < "4" and any(word in text for word in SINCE_4):
        pytest.skip("since Spark 4")
    assert asked(text)
