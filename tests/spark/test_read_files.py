"""Plain files as relations: what is in them arrives, and what is not there is an error."""

from __future__ import annotations

import datetime
import gzip
import json
import math
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import (
    ConfigurationError,
    DataError,
    DatasetNotFoundError,
    SourceWarning,
)
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.spark.sql.read_files import read_files
from tests.support.queries import FileAddress

pytestmark = pytest.mark.usefixtures("few_rows")


def read(spark, *args, **options):
    address = FileAddress(*args, **{key: tuple(value.items()) for key, value in options.items()})
    return [tuple(row) for row in read_files(spark, address, "raw.t").collect()]


def test_folders_keep_every_partition_value_as_text(spark, tmp_path):
    values = ["a/b", "100%", "x=y", "ö", "007", "true"]
    frame = spark.createDataFrame(list(enumerate(values)), "id bigint, p string")
    frame.write.partitionBy("p").parquet(str(tmp_path / "d"))
    found = read(spark, str(tmp_path / "d"), "parquet")
    assert sorted(found) == list(enumerate(values))


def test_parquet_keeps_unsigned_nan_and_nothing(spark, tmp_path):
    path = tmp_path / "a [b].parquet"
    large = 2**64 - 1
    pq.write_table(
        pa.table(
            {
                "u": pa.array([large, None], pa.uint64()),
                "f": [math.nan, None],
                "s": ["", None],
                "n": pa.nulls(2, pa.string()),
            }
        ),
        path,
    )
    (first, second) = read(spark, str(path), "parquet")
    assert (int(first[0]), first[2], first[3]) == (large, "", None)
    assert math.isnan(first[1])
    assert second == (None,) * 4


def test_csv_has_null_for_empty_cells_as_seeds_do_and_keeps_large_integers(spark, tmp_path):
    (tmp_path / "a.csv").write_text('s,i,b\n"",9007199254740993,true\n,2,false\n')
    assert read(spark, str(tmp_path / "*.csv"), "csv") == [
        (None, 9007199254740993, True),
        (None, 2, False),
    ]


def test_declared_types_win_by_name(spark, tmp_path):
    (tmp_path / "a.csv").write_text("i,s\n1,007\n")
    found = read(spark, str(tmp_path / "a.csv"), "csv", columns={"s": "string"})
    assert found == [(1, "007")]
    found = read(spark, str(tmp_path / "a.csv"), "csv", columns={"s": "int", "i": "string"})
    assert found == [("1", 7)]
    (tmp_path / "a.json").write_text(json.dumps({"i": 1, "s": 7}))
    found = read(spark, str(tmp_path / "a.json"), "json", columns={"s": "string"})
    assert found == [(1, "7")]


def test_options_are_sparks_in_any_case(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1;2\n")
    options = {"Header": "false", "SEP": ";"}
    assert read(spark, str(tmp_path / "a.csv"), "csv", options=options) == [(1, 2)]


def write(folder, files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(
    ("other", "columns"),
    [
        ("id,qty,price\n1,2,3\n", {}),
        ("id,qty,price\n1,2,3\n", {"id": "int", "price": "int", "qty": "int"}),
        ("id,price\n1,2\n", {}),
        ("id,price,qty,more\n1,2,3,4\n", {}),
        ("id,price,amount\n1,2,3\n", {}),
    ],
)
def test_files_with_other_headers_are_refused(spark, tmp_path, other, columns):
    write(tmp_path, {"a.csv": "id,price,qty\n1,2,3\n", "x/b.csv": other})
    said = r"different headers\. .*/a\.csv has id, price, qty; .*/b\.csv has id, "
    for location in ("", "/a.csv", "/{a.csv,x}"):
        if location != "/a.csv":
            with pytest.raises(ConfigurationError, match=said):
                read(spark, f"{tmp_path}{location}", "csv", columns=columns)
    assert read(spark, f"{tmp_path}/a.csv", "csv", columns=columns) == [(1, 2, 3)]


@pytest.mark.parametrize("other", ["\ufeffid,s\n2,y", '"id","s"\r\n2,y\r\n', "\nID,s\n2,y\n\n"])
def test_headers_that_name_the_same_columns_are_one(spark, tmp_path, other):
    write(tmp_path, {"a.csv": "id,s\n1,x\n", "b.csv": other, "empty.csv": ""})
    assert sorted(read(spark, str(tmp_path), "csv")) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ('id,s,x\n1,"5"" disk",x\n', {}, [(1, '5" disk', "x")]),
        ('s\n""""\n"a,""b"""\n', {}, [('"',), ('a,"b"',)]),
        ('s,t\n"a\nb",1\nc,2\n', {}, [("a\nb", 1), ("c", 2)]),
        ('s,t\r\n"a\nb",1\r\n\r\nc,2', {}, [("a\nb", 1), ("c", 2)]),
        ('s,t\r\n"a\r\nb",1\r\nc,2\r\n', {}, [("a\r\nb", 1), ("c", 2)]),
        ('\ufeffs,t\n"a\nb",1', {}, [("a\nb", 1)]),
        ('s,t\n"a\n2,b",1\n', {}, [("a\n2,b", 1)]),
        ('s,t\nC:\\,"\\"\na\\"b,\\N\n', {}, [("C:\\", "\\"), ('a\\"b', "\\N")]),
        ("s,t\n'it''s',1\n", {"quote": "'"}, [("it's", 1)]),
        ('s,t\n"it\\"s",1\n', {"escape": "\\"}, [('it"s', 1)]),
        ("id\n1\n\n  \n2\n", {}, [(1,), (2,)]),
        (",v\n0,a\n", {}, [(0, "a")]),
        ("#x;y\ni,s\n1,a\n", {"comment": "#"}, [(1, "a")]),
        ("a;b\nx\n", {"sep": ","}, [("x",)]),
        ('"h\ni"\n', {"header": "false"}, [("h\ni",)]),
        ('"h\ni"', {"header": "false"}, [("h\ni",)]),
        ('s,t\na, "b\nc"\n', {"ignoreLeadingWhiteSpace": "true"}, [("a", "b\nc")]),
        ('s,t\n"a\\",1\n', {"escape": ""}, [("a\\", 1)]),
        # Where a quote opens no cell, each line is a row, whatever ends it.
        ("id,v\r1,2\r3,4\r", {}, [(1, 2), (3, 4)]),
        ('id,v\r\n1,5" disk\n2,c\n', {}, [(1, '5" disk'), (2, "c")]),
        ('id,v\r1,5" disk\n2,"a"b\r\n', {}, [(1, '5" disk'), (2, '"a"b')]),
        ('s,t\n5" or 6",1\n"a\nb",2\n', {}, [('5" or 6"', 1), ("a\nb", 2)]),
        ('s,t\n5" disk,"a\nb"\n', {}, [('5" disk', "a\nb")]),
        ('s,t\r"a\nb\r\nc",1\rd,2\r', {}, [("a\nb\r\nc", 1), ("d", 2)]),
        ('s,t\n"a\r\nb",1\nc,2\n', {}, [("a\r\nb", 1), ("c", 2)]),
        ('"h\ni","t"\n"a",1\n', {}, [("a", 1)]),
        ('\ufeff"h,i","t"\r"a",1\r', {}, [("a", 1)]),
        ('s,t\n"a\\"\nb",1\n', {"escape": "\\"}, [('a"\nb', 1)]),
        ('s||t\n"a\nb"||1\n', {"sep": "||"}, [("a\nb", 1)]),
        ('s,t\n"a\nb" ,1\n', {}, [("a\nb", 1)]),
        ('#x,"y\ns,t\n#"\n"a",1\n', {"comment": "#"}, [("a", 1)]),
        ('s,t\n1,"a\n2,b\n', {"multiLine": "false"}, [(1, "a"), (2, "b")]),
        ('s,t\n"a",1\n', {"quote": ""}, [('"a"', 1)]),
        ("s\nZ\ufffdrich\n", {}, [("Z\ufffdrich",)]),
        ("s\nZürich\n".encode("latin-1"), {"encoding": "ISO-8859-1"}, [("Zürich",)]),
        ("s,i\nZürich,1\n".encode("utf-16"), {"encoding": "UTF-16"}, [("Zürich", 1)]),
    ],
)
def test_csv_is_read_as_rfc_4180_says(spark, tmp_path, text, options, rows):
    write(tmp_path, {"a.csv": text})
    assert read(spark, f"{tmp_path}/a.csv", "csv", options=options) == rows
    types = {"s": "string"} if "s" in str(text)[:5] else {}
    assert read(spark, f"{tmp_path}/*.csv", "csv", options=options, columns=types)[0][0] is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s\nZürich\n".encode("latin-1"), "a.csv is not in UTF-8, for instance the line 'Z.rich'"),
        ("s\nZürich\n".encode("utf-16"), "a.csv is not in UTF-8"),
        ("id;name\n1;x\n", "'id;name' would be the only column .* the option sep, here ';'"),
        ("id\tname\n1\tx\n", r"the option sep, here '\\t'"),
        ("id|name\n1|x\n", r"the option sep, here '\|'"),
        ('id,v\n1,"a\n2,b\n3,c\n', r"""a\.csv has a quote .*, in the line '1,"a'\. Close"""),
        ('id,v\n1,"a\n2,"b"\n3,c', r"""never closed, in the line '1,"a'"""),
        ('id,v\n1,"b ""x""\n2,"b"\n', "never closed"),
        ('id,v\r1,2\r3,"a', "never closed"),
        ('"id,v\n1,2\n', "never closed"),
        ('id,v\n1,"a\nb"\r\n2,c\n', r"lines of .*a\.csv end in several ways"),
        ("id,${env:HOME}\n1,2\n", r"a column \$\{env:HOME\}. Spark reads it as a setting"),
        ("id,_Metadata\n1,2\n", "a column _Metadata. Spark reads"),
        ("k,k\n1,2\n", "names k and k, which SQL cannot tell apart"),
        ("k,v,K\n1,2,3\n", "names k and K, which SQL cannot tell apart"),
    ],
)
def test_csv_that_would_be_read_wrong_is_refused(spark, tmp_path, text, said):
    write(tmp_path, {"a.csv": text})
    for columns in ({}, {"s": "string"}):
        with pytest.raises(ConfigurationError, match=said):
            read(spark, f"{tmp_path}/a.csv", "csv", columns=columns)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_beside_one_with_line_breaks_in_quotes(spark, tmp_path, end):
    """Such as gzip's, which Spark alone reads."""
    files = {"a.csv": 's,t\r\n"a\r\nb",1\r\n', "b.csv": end.join(("s,t", "c,2", "d,3", ""))}
    write(tmp_path, {**files, "c.csv.gz": gzip.compress(f's,t{end}"x\ny",4'.encode())})
    broken = "a\r\nb" if end == "\r\n" else "a\nb"
    assert sorted(read(spark, str(tmp_path), "csv")) == [
        (broken, 1),
        ("c", 2),
        ("d", 3),
        ("x\ny", 4),
    ]
    write(tmp_path, {"b.csv": "s,t\nc,2\r\nd,3\n", "c.csv.gz": gzip.compress(b's,t\n"x,4')})
    with pytest.raises(
        ConfigurationError, match=r"c\.csv\.gz has a quote that is opened and never"
    ):
        read(spark, str(tmp_path), "csv")
    (tmp_path / "c.csv.gz").unlink()
    with pytest.raises(ConfigurationError, match=r"lines of .*b\.csv end in several ways"):
        read(spark, str(tmp_path), "csv")


@pytest.mark.parametrize("wanted", ["a", "b", "*"])
def test_rows_of_another_length_are_an_error_whatever_is_read_of_them(spark, tmp_path, wanted):
    write(tmp_path, {"a.csv": "a,b\n1,2\n3\n"})
    for columns in ((), (("a", "int"), ("b", "int"))):
        address = FileAddress(f"{tmp_path}/a.csv", "csv", (), columns)
        names_file = spark_version() >= (4, 0)  # Spark 3.5 shows the row alone
        with pytest.raises(Exception, match=r"a\.csv" if names_file else "Malformed records"):
            read_files(spark, address, "raw.t").select(wanted).collect()


VALUES = {
    "decimal(10,2)": (
        ["1.5", "-0.250", "007.10", "1e2", "0E-18", " 3 "],
        ["1.005", "1.005e0", "x"],
    ),
    "decimal(2,2)": ([".25", "0.250"], ["."]),
    "date": (["2024-02-03", "2024-2-3"], ["2024-02-03 23:59:59", "2024-02-30", "2024", "x"]),
    "timestamp": (
        [
            "2024-02-03 10:00:00.123456",
            "2024-02-03T10:00:00Z",
            "2024-02-03",
            "2024-02-03 10:00:00+02:00",
        ],
        ["2024-02-03 10:00:00.1234567", "2024-02-03 25:00:00", "10:00"],
    ),
    "timestamp_ntz": (["2024-02-03 10:00:00"], ["2024-02-03 10:00:00Z", "2024-02-03 10:00+01:00"]),
    "bigint": (["7", " 7 ", "+7", "007"], ["1.0", "1e3", "9223372036854775808", "0x1F", "1_000"]),
    "uint8": (["7", "0", "-0", "+300"], ["-1", "1.0", "18446744073709551616", "1e3"]),
    "double": (["1.5", "-.5", "1.", "NaN", "-Infinity", "1e5"], ["1e999", "1d", "0x1p3", "1,5"]),
    "boolean": (["true", "FALSE"], ["yes", "1", "t"]),
    "varchar(3)": (["abc", "äöü"], ["abcd"]),
}
BAD = [(t, text) for t, (_, texts) in VALUES.items() for text in texts]


@pytest.mark.parametrize(("type_", "text"), BAD)
@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_value_that_does_not_fit_its_type_is_shown(spark, tmp_path, format_, type_, text):
    line = f'v\n"{text}"\n' if format_ == "csv" else json.dumps({"v": text})
    write(tmp_path, {f"a.{format_}": line})
    said = (
        rf"raw\.t: column v has {re.escape(text)}, which does not fit {re.escape(type_)}, in .*/a\."
    )
    with pytest.raises(Exception, match=said):
        read(spark, f"{tmp_path}/a.{format_}", format_, columns={"v": type_})


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("format_", ["csv", "json"])
def test_values_that_fit_are_read_as_written(spark, tmp_path, format_, type_):
    texts = VALUES[type_][0]
    lines = [json.dumps({"v": text}) for text in texts]
    content = "v\n" + "\n".join(texts) if format_ == "csv" else "\n".join(lines)
    write(tmp_path, {f"a.{format_}": content})
    found = [
        row[0] for row in read(spark, f"{tmp_path}/a.{format_}", format_, columns={"v": type_})
    ]
    cast = {"uint8": "decimal(20,0)"}.get(type_, type_)
    cast = cast if type_ == "uint8" or "decimal" not in type_ else "decimal(38,2)"
    values = ", ".join(f"('{text.strip()}')" for text in texts)
    wanted = spark.sql(f"select cast(a as {cast}) from values {values} as t(a)").collect()
    assert list(map(str, found)) == [str(row[0]) for row in wanted]


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", " 2 ", "-3"], "int"),
        (["1", "9999999999"], "bigint"),
        (["1", "12345678901234567890"], "decimal(38,0)"),
        (["1", "2.5", "NaN"], "double"),
        (["9007199254740993", "2.5"], "string"),
        (["1", "9" * 39], "string"),
        (["1d", "2"], "string"),
        (["0x1F"], "string"),
        (["true", "False"], "boolean"),
        (["2024-01-01"], "date"),
        (["2024-01-01", "2024-01-01 10:00:00"], "timestamp"),
        (["2024-01-01 10:00:00.1234567"], "string"),
        (["1", "x"], "string"),
        (["NAN", "INF "], "string"),
    ],
)
def test_inferred_types_keep_what_is_written(spark, tmp_path, texts, type_):
    write(tmp_path, {"a.csv": "n,v\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts))})
    frame = read_files(spark, FileAddress(f"{tmp_path}/a.csv", "csv"), "raw.t")
    assert dict(frame.dtypes)["v"] == type_
    if type_ == "string":
        assert [row.v for row in frame.collect()] == texts


def test_lost_zeros_are_said_and_formats_that_are_given_win(spark, tmp_path):
    write(tmp_path, {"a.csv": "z,d\n007,03/02/2024\n"})
    with pytest.warns(SourceWarning, match="leading zeros are lost.*: z"):
        read(spark, f"{tmp_path}/a.csv", "csv")
    for columns in ({"z": "string", "d": "date"}, {"z": "string"}):
        options = {"dateFormat": "dd/MM/yyyy"}
        found = read(spark, f"{tmp_path}/a.csv", "csv", columns=columns, options=options)
        assert found == [("007", datetime.date(2024, 2, 3))]
    options = {"mode": "PERMISSIVE"}
    found = read(spark, f"{tmp_path}/a.csv", "csv", columns={"z": "date"}, options=options)
    assert found[0][0] != "007"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"a": 1} {"a": 2}\n', {}),
        ('{"a": 1}{"a": 2}\n', {}),
        ('{"a": 1},{"a": 2}\n', {}),
        ('{"a": 1},\n', {}),
        ('{"a": 1}}\n', {}),
        ('{"a": 1}]\n', {}),
        ('{"a": 1} x\n', {}),
        ('[{"a": 1}] [{"a": 2}]\n', {}),
        ('{"a": 1\n', {}),
        ("5\n", {}),
        ("null\n", {}),
        ("null\n", {"multiLine": "true"}),
        ('[{"a": 1}, null]\n', {}),
        ("[1, 2]\n", {}),
        ('[[{"a": 1}]]\n', {}),
        ('{"a": "\\ud800"}\n', {}),
        ('[{"a": "x\\udc00"}]\n', {}),
        ('{"a": "\\\\\\uD83D\\\\\\ude00"}\n', {}),
        ('{"\\ud83d\\n\\ude00": 1}\n', {}),
        ('{"a": "\\ude00\\ud83d"}\n', {"multiLine": "true"}),
        ('{"a": 1}\n{"a": 2}\n', {"multiLine": "true"}),
        ('{"a": "Zürich"}\n'.encode("latin-1"), {}),
        ('{"a": "Zürich"}\n'.encode("utf-16"), {}),
    ],
)
def test_a_line_of_json_is_one_document(spark, tmp_path, text, options):
    write(tmp_path, {"a.json": text, "b.json": '{"a": 0}\n'})
    with pytest.raises(DataError, match=r"a\.json has text that is not one JSON document in UTF-8"):
        read(spark, str(tmp_path), "json", options=options)


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ('[{"a": 1}, {"a": 2}]\n\n {"a": 3}\r\n', {}, [(1,), (2,), (3,)]),
        ('\ufeff[\n{"a": 1},\n{"a": 2}\n]\n', {"multiLine": "true"}, [(1,), (2,)]),
        ('{"a": "x} {y"}\n', {}, [("x} {y",)]),
        ('{"a": "Z\ufffd"}\n', {}, [("Z\ufffd",)]),
        (r'{"a": "\ud83d\ude00\\ud800 \u00fc\\\uD83D\uDE00"}', {}, [("😀\\ud800 ü\\😀",)]),
    ],
)
def test_documents_of_json(spark, tmp_path, text, options, rows):
    write(tmp_path, {"a.json": text})
    assert read(spark, f"{tmp_path}/a.json", "json", options=options) == rows


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"A": 1, "a": 2}', '{"b": [{"a": 1, "a": 2}]}\n{"b": []}']
)
def test_a_key_of_json_that_comes_twice_is_refused(spark, tmp_path, text):
    write(tmp_path, {"a.json": text})
    for columns in ({}, {"a": "int"}, {"b": "array<struct<a: int>>"}):
        with pytest.raises(DataError, match=r"raw\.t: the files at .* with the key `a` twice"):
            read(spark, f"{tmp_path}/a.json", "json", columns=columns)


def test_nested_values_of_json_are_as_exact(spark, tmp_path):
    type_ = "struct<b: array<struct<c: decimal(5,1)>>, m: map<string, date>>"
    good = (
        '{"a": {"b": [{"c": 1.5}, null], "m": {"k": "2024-01-01"}}}\n{"a": null}\n{"a": {"b": []}}'
    )
    write(tmp_path, {"good.json": good, "bad.json": '{"a": {"b": [{"c": 1.55}]}}'})
    found = [row[0] for row in read(spark, f"{tmp_path}/good.json", "json", columns={"a": type_})]
    assert found[0].b == [(Decimal("1.5"),), None] and found[0].m["k"].year == 2024
    assert found[1] is None and found[2].b == []
    with pytest.raises(Exception, match=r"column a has 1\.55, which does not fit struct"):
        read(spark, f"{tmp_path}/bad.json", "json", columns={"a": type_})
    unsigned = "struct<z: int, b: list<item: struct<c: uint16>>, m: map<string, uint8>>"
    for text in ('{"b": [{"c": -1}]}', '{"m": {"k": -1}}'):
        write(tmp_path, {"bad.json": f'{{"a": {text}}}'})
        with pytest.raises(Exception, match=r"column a has -1, which does not fit struct"):
            read(spark, f"{tmp_path}/bad.json", "json", columns={"a": unsigned})


@pytest.mark.parametrize(
    "text", ['{"%s": 1}', '{"b": {"%s": 1}}', '{"b": [{"%s": 1}]}', '{"b": [[{"%s": 1}]]}']
)
def test_keys_of_json_that_spark_takes_for_something_else(spark, tmp_path, text):
    for name in ("${env:HOME}", "_metadata"):
        write(tmp_path, {"a.json": text % name})
        if name == "_metadata" and "b" in text:
            assert name in str(read_files(spark, FileAddress(str(tmp_path), "json"), "s.t").schema)
            continue
        with pytest.raises(ConfigurationError, match=re.escape(f"a column {name}. Spark reads")):
            read(spark, f"{tmp_path}/a.json", "json")


@pytest.mark.parametrize(
    ("number", "type_"),
    [("1e400", {}), ("1.005", {"a": "decimal(10,2)"}), ("1.5", {"a": "bigint"})],
)
def test_numbers_of_json_that_do_not_fit(spark, tmp_path, number, type_):
    write(tmp_path, {"a.json": f'{{"a": {number}}}'})
    seen = '"Infinity"' if number == "1e400" and spark_version() < (4, 0) else number
    with pytest.raises(Exception, match=f"column a has {seen}, which does not fit"):
        read(spark, f"{tmp_path}/a.json", "json", columns=type_)


@pytest.mark.skipif(spark_version() < (4, 0), reason="Spark 3.5 reads such numbers as doubles")
def test_long_decimals_of_json_are_exact(spark, tmp_path):
    write(tmp_path, {"a.json": '{"a": 1.12345678901234567}'})
    found = read(spark, f"{tmp_path}/a.json", "json", columns={"a": "decimal(38,17)"})
    assert found == [(Decimal("1.12345678901234567"),)]


MARKS = {
    "Delta": "{}/_delta_log/00000000000000000000.json",
    "Iceberg": "{}/metadata/v1.metadata.json",
    "Hudi": "{}/.hoodie/hoodie.properties",
    "dataset of Kartothek": "{}.by-dataset-metadata.json",
    "dataset of Kartothek or of this library": ".ktk/dataset/{}/log/1.json",
}


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("location", ["t", "t/p=1", "*", "t/*/a.csv", "{t,u}", ""])
def test_files_of_a_table_are_no_plain_files(spark, tmp_path, monkeypatch, kind, location, here):
    write(tmp_path, {"t/p=1/a.csv": "a\n1\n", MARKS[kind].format("t"): "{}"})
    if not here:  # as in a file system that only Spark knows
        monkeypatch.setattr("ktk_engine.spark.sql.read_files.find_files", lambda *_: [])
    with pytest.raises(ConfigurationError, match=rf"Source raw\.t: {tmp_path}/t is an? {kind}"):
        read(spark, f"{tmp_path}/{location}".rstrip("/"), "csv")


def test_plain_files_beside_a_table_and_metadata_of_others_are_read(spark, tmp_path):
    write(tmp_path, {"t/a.csv": "a\n1\n", "u/_delta_log/0.json": "{}", "metadata/x.json": "{}"})
    assert read(spark, f"{tmp_path}/t", "csv") == [(1,)]
    write(tmp_path, {".ktk/dataset/u/log/1.json": "{}", "u.by-dataset-metadata.json": "{}"})
    assert read(spark, f"{tmp_path}/t/*.csv", "csv") == [(1,)]


@pytest.mark.parametrize("name", ["_in.csv", ".in.csv", "a:b.csv"])
def test_files_that_spark_hides_are_named(spark, tmp_path, name):
    write(tmp_path, {name: "a\n1\n", "c.csv": "a\n2\n"})
    location = f"{tmp_path}/{name}" if ":" not in name else f"{tmp_path}/a*.csv"
    with pytest.raises(ConfigurationError, match=rf"Spark does not read {tmp_path}/{name}\. "):
        read(spark, location, "csv")
    assert (2,) in read(spark, f"{tmp_path}/c.csv", "csv")


@pytest.mark.parametrize("other", ["a.csv", "q=1/a.csv", "p=1/q=1/a.csv"])
def test_files_in_folders_of_other_layouts_are_refused(spark, tmp_path, other):
    write(tmp_path, {"p=1/b.csv": "a\n1\n", other: "a\n2\n"})
    with pytest.raises(ConfigurationError, match=r"in folders of different layouts\. Let "):
        read(spark, str(tmp_path), "csv")
    found = read(spark, str(tmp_path), "csv", options={"recursiveFileLookup": "true"})
    assert sorted(found) == [(1,), (2,)]


def test_columns_of_folders_stay_text_and_choose_files(spark, tmp_path):
    write(tmp_path, {"p=1/a.csv": "a\n1\n", "p=2/a.csv": "a\n2\n"})
    frame = read_files(spark, FileAddress(str(tmp_path), "csv"), "raw.t")
    assert frame.dtypes == [("a", "int"), ("p", "string")]
    chosen = frame.where("p = '2'")
    assert "PartitionFilters: [isnotnull(p" in chosen._jdf.queryExecution().toString()
    assert [tuple(row) for row in chosen.collect()] == [(2, "2")]
    assert sorted(read(spark, str(tmp_path), "csv", columns={"p": "int"})) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("location", ["nothing.csv", "*.csv", "empty"])
def test_where_nothing_is(spark, tmp_path, location):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetNotFoundError, match=r"Source raw\.t: there are no csv files at "):
        read(spark, str(tmp_path / location), "csv", columns={"a": "string"})


def test_columns_that_the_files_lack_are_named(spark, tmp_path):
    (tmp_path / "a.csv").write_text("amout\n1\n")
    with pytest.raises(ConfigurationError, match=r"no column amount.*Did you mean amout\?"):
        read(spark, str(tmp_path / "a.csv"), "csv", columns={"amount": "int"})
    said = r"no header and 1 columns, but 2 are declared with a data_type\. Declare all of them"
    with pytest.raises(ConfigurationError, match=said):
        options = {"header": "false"}
        columns = {"a": "int", "b": "int"}
        read(spark, str(tmp_path / "a.csv"), "csv", columns=columns, options=options)


def test_dbt_is_told_that_columns_are_declared_in_yaml(spark, tmp_path):
    (tmp_path / "a.csv").write_text("amout\n1\n")
    for header, said in (
        ("true", "which is declared in YAML with a data_type. Did you mean amout?"),
        ("false", "but 2 are declared in YAML with a data_type. Declare all of them"),
    ):
        columns, options = {"amount": "int", "amout": "int"}, {"header": header}
        with pytest.raises(ConfigurationError) as error:
            read(spark, str(tmp_path / "a.csv"), "csv", columns=columns, options=options)
        assert said in error.value.said(DBT)
