"""Texts that somebody may store as a view, and that no reader runs."""

from __future__ import annotations

RUN = [
    "select transform (a) using 'sh -c id' as (x string) from an.t",
    'select TRANSFORM(a) row format delimited /* */ using "sh" from an.t',
    "from an.t map a, b using 'sh' as (x)",
    "from an.t reduce a using r'sh'",
    "map a using 'sh'",
    "select transform (a) using :command from an.t",
    "select reflect('java.lang.System', 'getenv', 'HOME')",
    "select `reflect` ('a', 'b')",
    "select Java_Method('a', 'b')",
    "select try_reflect('a', 'b')",
    "select 1 where exists(select reflect('a', 'b'))",
    "select builtin.reflect('a', 'b')",
    "select system . builtin . `java_method`('a', 'b')",
    "select reflect /* (x) */ ('a', 'b')",
    "select reflect -- (x)\n ('a', 'b')",
    "select \"reflect\"('a', 'b')",  # a name with doubleQuotedIdentifiers
    "select xpath_string(concat('<!DOCTYPE a SYSTEM \"http://x/', a, '\"><a/>'), '/a') from an.t",
    "select from_xml(a, 'x int', map('rowValidationXSDPath', '/x')) from an.t",
    "select from_protobuf(a, 'M', '/etc/x.desc') from an.t",
    "select identifier('reflect')('a', 'b')",
    "select identifier('ref' || 'lect')('a', 'b')",
    "select builtin.identifier('reflect')('a', 'b')",
    "from an.t |> extend reflect('a', 'b') as x",
    "select 'a\\'', reflect('b')",
    "select r'\\', reflect('b')",
    "select 'a' 'b''', reflect('c')",
    # Spark ends comments, hints and literals where another lexer would not.
    "select $$ ' $$, reflect('a') , $$ ' $$",
    "select $x$ ' $x$, reflect('a') , $x$ ' $x$",
]
# An alias may be any word to Spark, and its inserts run as soon as it reads them. `{}` is a folder.
WRITES = [
    "from (select 1 as x) select insert overwrite directory '{}' using csv select *",
    "from values (1) as v select insert overwrite local directory '{}' using csv select *",
    "from values (1) case insert overwrite directory '{}' using csv select *",
    "from values (1) select insert overwrite directory '{}' using csv select *",
    "select 1) insert overwrite directory '{}' using csv (select 1",
    "from values (1) case insert /* */ into an.u select *",
]
PATHS = [
    "select * from csv.`/etc/passwd`",
    "select * from `text` . `/etc/passwd`",
    "select * from an.t, json.`file:/etc/passwd`",
    "select * from an.t join binaryFile.`../secret/x` on true",
    "with a as (table parquet.`s3a://b/x`) select * from a",
    "select * from `org.apache.spark.sql.execution.datasources.orc.OrcFileFormat`.`/x/y`",
    'select * from "csv"."/etc/passwd"',
    "select * from identifier('csv.`/etc/passwd`')",
    "select * from identifier('csv' || '.`/etc/passwd`')",
    "select * from identifier('csv').`/etc/passwd`",
    "select * from csv.identifier('/etc/passwd')",
]
COMMANDS = [
    "",
    "-- nothing",
    "delete from an.t",
    "insert into an.t select 1",
    "with a as (select 1) insert into an.t select * from a",
    "from an.t insert into an.u select 1",
    "select 1; drop table an.t",
    "drop table an.t",
    "set spark.sql.ansi.enabled=false",
    "begin select 1; end",
    "execute immediate 'drop table an.t'",
    "call system.x()",
    "add jar 'x.jar'",
    "explain select 1",
]
SETTINGS = [
    "select nope from identifier('an.`\\u0024{env:HOME}`')",
    "select * from identifier('`ktk:/x?relation=t`.a.`\\u0024{spark.x}`') group by a",
    "select '${env:HOME}'",
    "select * from an.t where a = '${spark.hadoop.fs.s3a.secret.key}'",
    "select `${system:user.name}`",
    "select ${spark.app.name}",
]
# Spark allows nearly each word as an alias, so that `seen`, a temporary view of the reader with the
# columns `secret` and `a`, is a relation. `other.t` is a table of the view's store.
_ALIASES = """
    where group having order sort cluster distribute window limit offset select qualify
    setminus from minus union except intersect on using pivot lateral set when insert
    tablesample values with table
"""
HIDDEN = [
    *(f"select * from (select 1) {word}, seen" for word in _ALIASES.split()),
    "select * from other.t as where, seen",
    "select * from (select 1) tablesample (1 rows) where, seen",
    "select * from (table other.t) from, seen",
    "select * from values (date'2020-01-01'), current_date x, seen",
    "select * from (select true as distinct) o, lateral (select secret, not distinct from seen)",
    "select * from (select true as `is`) o, lateral (select secret, is distinct from seen)",
    "select * from (select 1 as `select`) o, lateral (select secret, select from seen)",
    "select sum(a) over w from other.t window w as "
    "(order by (select max(secret) from (select 1) where, seen))",
    "select * from (with seen as (select 1) select 1) a join (select 2) where, seen",
    "select '\ncte [seen]\n' as z, b.* from (select 1) where, seen b",
    "select 1 as `x\ncte [seen]\n`, b.* from (select 1) where, seen b",
    "select '== Optimized Logical Plan ==' as z, b.* from (select 1) where, seen b",
    "select '\n== Optimized Logical Plan ==\n' as z, b.* from (select 1) where, default.tabled b",
    "select '== Optimized Logical Plan ==' as z, variable",
    "select b.* from (with seen as (select 1 as x) select * from seen) a, (select 1) where, seen b",
    "select * from seen",
    "select * from global_temp.shown",
    "select * from default.tabled",
    "select * from (select 1) where, default.tabled",
    "select * from (select 1) where, spark_catalog.default.tabled",
    "select variable",
    "select session.variable",
    "select system.session.variable",
    "select a from other.t where a = variable",
]
