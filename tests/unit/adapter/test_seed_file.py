"""CSV files become Arrow tables exactly as they are written."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
import random
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from dbt_common.clients import agate_helper
from dbt_common.exceptions import CompilationError

from dbt.adapters.ktk.materialize.seed_file import read_seed, seed_delimiter, seed_ragged
from ktk_engine.errors import DataError
from ktk_engine.types.arrow_name import parse_type  # deep: as dbt names types


def read(tmp_path, text, **options):
    path = tmp_path / "seed.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_seed(path, **options)


def test_types_are_inferred_from_every_row(tmp_path):
    rows = "\n".join(f"{i},{i},{i}" for i in range(3000))
    table = read(tmp_path, f"a,b,c\n{rows}\n9007199254740993,0.5,x\n")
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string()]
    assert table["a"][-1].as_py() == 9007199254740993
    assert table["c"][0].as_py() == "0"


WIDE = ["12345678901234567890", "12345678901234567891"]


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (WIDE, pa.decimal128(38, 0)),
        (["1", "", "-18446744073709551616"], pa.decimal128(38, 0)),
        (["9" * 38, "-" + "9" * 38, "000" + "9" * 38], pa.decimal128(38, 0)),
        (["+" + "9" * 20], pa.decimal128(38, 0)),
        (["9" * 39, "1"], pa.string()),
        (["9223372036854775807", "-9223372036854775808"], pa.int64()),
        (["1e300", "2.5"], pa.float64()),
        (["9007199254740992", "2.5"], pa.float64()),
        (["1e20", "100000000000000000000"], pa.decimal128(38, 0)),
    ],
)
def test_integers_of_any_size_are_exact(tmp_path, texts, type_):
    lines = "\n".join(f"{i},{text}" for i, text in enumerate(texts))
    column = read(tmp_path, f"n,a\n{lines}\n")["a"]
    assert column.type == type_
    kind = {pa.string(): str, pa.float64(): float}.get(type_, int)
    assert column.to_pylist() == [
        kind(Decimal(text)) if text and kind is int else kind(text) if text else None
        for text in texts
    ]


@pytest.mark.parametrize("other", ["0.5", "1e-3", "nan"])
@pytest.mark.parametrize("large", [WIDE[1], "9007199254740993", "-" + "9" * 40])
def test_large_integers_beside_fractions_need_a_type(tmp_path, large, other):
    text = f"a\n{other}\n{large}\n"
    with pytest.raises(DataError, match=rf"row 3, column `a`: {large} is an integer.*column_types"):
        read(tmp_path, text)
    assert read(tmp_path, text, column_types={"a": pa.string()})["a"].to_pylist() == [other, large]
    assert read(tmp_path, text, column_types={"a": pa.float64()})["a"][1].as_py() == float(large)


@pytest.mark.parametrize("text", ["", '""', "null", "NULL", '"Null"'])
def test_an_empty_cell_is_null(tmp_path, text):
    table = read(tmp_path, f"a,b\n1,{text}\n,x\n")
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_apostrophes_quotes_line_breaks_and_marks(tmp_path):
    table = read(tmp_path, '\ufeffname,note\nO\'Brien,"a ""b"", c\nd"\n')
    assert table.to_pylist() == [{"name": "O'Brien", "note": 'a "b", c\nd'}]


def test_another_delimiter(tmp_path):
    assert read(tmp_path, "a|b\n1|x,y\n", delimiter="|").to_pylist() == [{"a": 1, "b": "x,y"}]


@pytest.mark.parametrize(("header", "delimiter"), [("a|b", ";"), ("a,b", "|"), ("a\tb", ",")])
def test_a_wrong_delimiter_shows_in_the_header(tmp_path, header, delimiter):
    with pytest.raises(DataError, match="Set the seed's `delimiter`"):
        read(tmp_path, f"{header}\n1\n", delimiter=delimiter)
    table = read(tmp_path, f"{header}\n1\n", delimiter=delimiter, quote_columns=True)
    assert table.column_names == [header]


@pytest.mark.parametrize("value", ["", "||", 3])
def test_a_delimiter_is_one_character(value):
    assert seed_delimiter("s", {"delimiter": "|"}) == "|"
    assert seed_delimiter("s", {}) == seed_delimiter("s", {"delimiter": None}) == ","
    with pytest.raises(CompilationError, match="Seed s: config `delimiter` must be one character"):
        seed_delimiter("s", {"delimiter": value})


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_header_alone_is_an_empty_table(tmp_path, end):
    table = read(tmp_path, f"a,b{end}")
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)


def test_a_file_without_a_header_is_refused(tmp_path):
    with pytest.raises(DataError, match="Nothing was written"):
        read(tmp_path, "")


def test_dates_times_and_instants(tmp_path):
    table = read(
        tmp_path, "d,t,i,z\n2020-01-01,10:00:00,2020-01-01 10:00:00,2020-01-01T10:00:00Z\n"
    )
    instant = dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)
    assert table.to_pylist() == [
        {"d": dt.date(2020, 1, 1), "t": "10:00:00", "i": instant, "z": instant}
    ]


def test_booleans(tmp_path):
    assert read(tmp_path, "b\ntrue\nFalse\n")["b"].to_pylist() == [True, False]


def test_configured_types(tmp_path):
    types = {
        "u": pa.uint8(),
        "m": pa.decimal128(10, 2),
        "s": pa.string(),
        "i": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"),
    }
    text = "u,m,s,i,n\n255,1.20,007,2020-01-01 10:00:00+02:00,2020-01-01 10:00:00\n"
    table = read(tmp_path, text, column_types=types)
    assert table.schema == pa.schema(types)
    assert table.to_pylist() == [
        {
            "u": 255,
            "m": Decimal("1.20"),
            "s": "007",
            "i": dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC),
            "n": dt.datetime(2020, 1, 1, 10),
        }
    ]


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        (
            "a,b\n1,2\n\n3\n",
            {},
            "row 3: 1 cell instead of 2: 3. Set the seed's config `ragged:",
        ),
        ("a,b\n1,2\n3,4\n5,6,7\n", {}, "row 4: 3 cells instead of 2: 5,6,7. Put quotes"),
        ("a,b\n1,2\n3,300\n", {"b": pa.uint8()}, "row 3, column `b`: "),
        (
            "a,t\n1,2020-01-01\n2,\n3,soon\n",
            {"t": pa.timestamp("us", "UTC")},
            "row 4, column `t`: 'soon' does not fit timestamp",
        ),
    ],
)
def test_the_place_of_what_is_refused_is_named(tmp_path, text, types, message):
    """Rows and columns count from 1, the header is row 1; empty lines are not rows."""
    with pytest.raises(DataError) as error:
        read(tmp_path, text, column_types=types)
    assert f"seed.csv: {message}" in str(error.value)
    assert "#" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        ("a,a\n1,2\n", {}, "twice"),
        ("a,\n1,2\n", {}, "no name for column 2 of 2"),
        ("a,b\n1\n", {}, "1 cell instead of 2"),
        ("a\n300\n", {"a": pa.uint8()}, "300"),
        (b"a\n\xff\n", {}, "line 2: byte 0xff is not UTF-8. Save"),
        ("a\n1\n".encode("utf-16"), {}, "is in UTF-16. Save"),
        ("", {}, "the file is empty"),
        ("\ufeff\r\n", {}, "the file is empty"),
        ('a,b\n1,2\n3,"x\n4,5\n', {}, "row 3: a quote is opened and never closed"),
        ('"a,b\n1,2\n', {}, "row 1: a quote is opened and never closed"),
    ],
)
def test_what_is_no_table_is_refused_by_name(tmp_path, text, types, message):
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path, text, column_types=types)
    assert "seed.csv" in str(error.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "{end}", "{end}{end}"])
def test_ends_of_lines(tmp_path, end, last):
    lines = ["a,b", "1,x", "", '2,"y']
    text = end.join(lines) + end + 'z"' + last.format(end=end)
    assert read(tmp_path, text).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y\nz"}]


def test_a_quote_inside_a_cell_is_a_letter(tmp_path):
    table = read(tmp_path, 'a,b\n5" pipe,"x\n"\n')
    assert table.to_pylist() == [{"a": '5" pipe', "b": "x\n"}]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_short_rows_are_filled_where_that_is_said(tmp_path, mark, delimiter):
    text = 'a,b,c\n1\n2,"x\n""y"""\n\n3,,z\n,\n'.replace(",", delimiter)
    table = read(tmp_path, mark + text, delimiter=delimiter, ragged=True)
    assert table.to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": 2, "b": 'x\n"y"', "c": None},
        {"a": 3, "b": None, "c": "z"},
        {"a": None, "b": None, "c": None},
    ]


@pytest.mark.parametrize("row", ['1,{}5"\n', '1,"{}"\n2\n', '1,"{}\ny"\n'])
def test_cells_of_any_size(tmp_path, row):
    """A lone quote is looked at row by row, and short rows are filled so."""
    large = "x" * 200_000
    table = read(tmp_path, "a,b\n" + row.format(large), ragged=True)
    assert table["b"][0].as_py().startswith(large)


def test_long_rows_are_refused_where_short_ones_are_filled(tmp_path):
    with pytest.raises(DataError, match=r"row 3: 3 cells instead of 2: 1,2,3\. Put quotes"):
        read(tmp_path, "a,b\n1\n1,2,3\n", ragged=True)


def test_the_config_of_short_rows():
    assert not seed_ragged("s", {})
    assert seed_ragged("s", {"ragged": "fill"})
    with pytest.raises(CompilationError, match=r"Seed s: config `ragged` must be fill.*'true'"):
        seed_ragged("s", {"ragged": "true"})


@pytest.mark.parametrize(
    ("text", "types", "said"),
    [
        ("zip,n\n00892,1\n01234,2\n", {}, ["`zip` ('00892')", "{zip: string}"]),
        ("a,b\n1,2\n7,-007\n", {}, ["`b` ('-007')"]),
        ('a,b\n"007.5",00\n1,2\n', {}, ["`a` ('007.5'), `b` ('00')", "{a: string, b: string}"]),
        (f"a\n0{'1' * 25}\n", {}, ["`a` ('0111"]),
        ("zip\n00892\n", {"zip": pa.string()}, []),
        ("zip\n00892\n", {"zip": pa.int32()}, []),
        ("a,b,c,d\n0,0.5,2020-01-01,100\n10,1.0,2020-10-01,x00\n", {}, []),
        ("a,t\n1,x 007\n2,007\n", {}, []),
    ],
)
def test_leading_zeros_that_types_take_away_are_said_once(tmp_path, text, types, said):
    warnings = []
    read(tmp_path, text, column_types=types, warn=warnings.append)
    assert len(warnings) == bool(said)
    assert all(part in warnings[0] for part in said)
    if said:
        assert "seed.csv: leading zeros and marks are lost" in warnings[0]


def test_types_of_columns_that_a_file_lacks_are_said(tmp_path):
    """Those of a folder are configured at once, and not every file has all of its columns."""
    warnings = []
    types = {"total": pa.int8(), "a": pa.int32()}
    table = read(tmp_path, "a,totals\n1,2\n", column_types=types, warn=warnings.append)
    assert table.schema.types == [pa.int32(), pa.int64()]
    (said,) = warnings
    assert "seed.csv: column_types names total, which it lacks. Did you mean `totals`?" in said


def test_columns_without_any_value_are_integers_as_to_dbt(tmp_path):
    assert read(tmp_path, "a,b\nx,\ny,null\n").schema.types == [pa.string(), pa.int64()]
    assert read(tmp_path, "a\n").schema.types == [pa.int64()]


@pytest.mark.parametrize(
    "text", [" 2021-02-26 09:10:59.5", "2021-02-26 09:10:59.5 UTC", "2021-02-26T09:10:59.5 GMT"]
)
def test_instants_as_spark_casts_them(tmp_path, text):
    table = read(tmp_path, f"a\n{text}\n", column_types={"a": pa.timestamp("us", "UTC")})
    at = dt.datetime(2021, 2, 26, 9, 10, 59, 500000, tzinfo=dt.UTC)
    assert table["a"].to_pylist() == [at]


@pytest.mark.parametrize(
    "text",
    [
        *("0x0A", "0X1f", " 0x1F", "-0x1F", "0xFFFFFFFFFFFFFFFF", "0xZ"),
        *("nan(abc)", "NaN(1)", "-nan(1)", " NAN()", "nan(_x"),
    ],
)
def test_what_is_no_number_to_dbt_is_text(tmp_path, text):
    table = read(tmp_path, f"n,code,other\n1,{text},7\n2,8,8\n")
    assert table["code"].to_pylist() == [text, "8"]
    assert table["other"].to_pylist() == [7, 8]
    with pytest.raises(DataError, match=r"seed\.csv: row 2, column"):
        read(tmp_path, f"n,code\n1,{text}\n", column_types={"code": pa.int64()})
    assert read(tmp_path, f"code\n1\n{text}\n")["code"].to_pylist() == ["1", text]


CELLS = [
    *("0x0A", "1_000", "+1", " 1", "1 ", "1.", ".5", "1e5", "1E-3", "inf", "-inf", "nan", "NaN"),
    *("NA", "N/A", "null", "NULL", "None", "TRUE", "true", "tRUE", "t", "yes", "no", "f", "on"),
    *("12345678901234567890", "00123", "-0", "0", "2024-1-2", "2024-01-02", "2024-02-30"),
    *(
        "2024-01-02T03:04:05Z",
        "2024-01-02 03:04:05",
        "2024-01-02 03:04",
        "٣",
        "1%",
        "$5",
        "1d",
        "1f",
    ),
    *(
        "--1",
        "- 1",
        "1-",
        "1,5",
        "0b1",
        "0o7",
        "1L",
        "٫5",
        "½",
        "²",
        "",
        "x",
        "a b",
        "1 000",
        "(1)",
    ),
    *("2024/01/02", "01.02.2024", "12:30", "20240102", "2024-01", "true ", "-", ".", "e5", "1e"),
    *("+5", "1,000", "1,000,000.50", "5%", "$3.00", "-$5", "€ 7", "2024-1-5", "1e400", "1e-400"),
    *("1.0", "10.00", "1e300", "9" * 25, "9" * 38, "9" * 40, "1." + "3" * 40, "sNaN", "NaN123"),
    *("2021-03-01 17:09:42.323000000", "2021-03-01 17:09:42.1234567", "2021-03-01 00:00:00"),
    *("2021-3-1 1:2:3", "2024-01-02T03:04:05.123+02:00", "20240102T101010", "2024-W01-1T10"),
    *("2024-01-02 03:04:05+02", "2024-01-02 03:04:05 UTC", "0000-01-01", "2024-01-02T24:00:00"),
    *("10:00:00", "  ", " null ", "fal,se", "Yes", "9007199254740993", "0.1", "123.456", "\n"),
]
LETTERS = "0123456789.-+eExX_ abTFtruefals:/%$,nN"
SAID = "dbt's own reader"


def beside_dbt(tmp_path, cells):
    """Whether both readers agree, and whether a line says that they do not."""
    path = tmp_path / "seed.csv"
    rows = "".join('n,"{}"\n'.format(cell.replace('"', '""')) for cell in cells)
    path.write_text(f"n,v\n{rows}", encoding="utf-8")
    said = []
    ours = read_seed(path, warn=said.append)["v"]
    theirs = agate_helper.from_csv(str(path), ()).columns["v"]
    return alike(ours, theirs), any(SAID in line for line in said), ours, theirs.values()


def test_cells_have_the_class_and_value_of_dbts_own_reader(tmp_path):
    """Or a line says that a column is read differently, of the kinds that docs/seeds.md lists."""
    rng = random.Random(int(os.environ.get("KTK_SEED", "49")))
    letters = ["".join(rng.choices(LETTERS, k=rng.randint(1, 6))) for _ in range(300)]
    columns = [[cell] for cell in [*CELLS, *letters]]
    columns += [rng.sample(CELLS, k=rng.randint(2, 3)) for _ in range(300)]
    wrong = []
    for cells in columns:
        try:
            agree, said, *values = beside_dbt(tmp_path, cells)
        except DataError as error:
            assert "is an integer that a double does not hold" in str(error), cells
            continue
        if agree == said:
            wrong.append((cells, said, *values))
    assert wrong == []


@pytest.mark.parametrize(
    ("cells", "type_", "values"),
    [
        (["2021-03-01 17:09:42.323"], pa.timestamp("us", "UTC"), None),
        (["2021-03-01 17:09"], pa.timestamp("us", "UTC"), None),
        (["2021-03-01 17:09:42+02"], pa.timestamp("us", "UTC"), None),
        (["2021-03-01", "2021-03-01 00:00:00"], pa.timestamp("us", "UTC"), None),
        (["1,5"], pa.string(), ["1,5"]),
        (["1e400", "2"], pa.string(), ["1e400", "2"]),
        (["9" * 39], pa.string(), ["9" * 39]),
        (["9" * 29], pa.decimal128(38, 0), [int("9" * 29)]),
    ],
)
def test_kinds_that_are_read_differently_are_said_and_listed(tmp_path, cells, type_, values):
    """The line's own `column_types` silences it, and changes nothing."""
    agree, said, ours, _ = beside_dbt(tmp_path, cells)
    assert (agree, said, ours.type) == (False, True, type_)
    assert values in (None, ours.to_pylist())
    lines = []
    read_seed(tmp_path / "seed.csv", warn=lines.append)
    _, _, typed = lines[0].partition("column_types: {v: ")
    again = read_seed(
        tmp_path / "seed.csv", column_types={"v": parse_type(typed.rstrip("}."))}, warn=pytest.fail
    )["v"]
    assert again == ours


def test_empty_lines_are_said(tmp_path):
    said = []
    table = read(tmp_path, 'a,b\n1,"x\n\ny"\n\n2,z\n\n', warn=said.append)
    assert table.num_rows == 2
    assert len(said) == 1
    assert "seed.csv: left out 2 empty lines, which dbt's own reader" in said[0]


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        *(("2021-03-01 17:09:42.323000000", t, dt.datetime(2021, 3, 1, 17, 9, 42, 323000))
          for t in ("timestamp", "timestamp_ntz")),
        ("2021-03-01 17:09:42.1234567", "timestamp", dt.datetime(2021, 3, 1, 17, 9, 42, 123456)),
        ("2021-03-01T17:09", "timestamp", dt.datetime(2021, 3, 1, 17, 9)),
        ("2021-3-1", "timestamp_ntz", dt.datetime(2021, 3, 1)),
        ("20210301T170900", "timestamp", dt.datetime(2021, 3, 1, 17, 9)),
        ("2021-3-1", "date", dt.date(2021, 3, 1)),
        ("2021-03-01 00:00:00", "date", dt.date(2021, 3, 1)),
        ("2021-03-01 00:00:00.000", "date", dt.date(2021, 3, 1)),
        ("2021-03-01T00:00:00Z", "date", dt.date(2021, 3, 1)),
        *((t, "boolean", True) for t in ("yes", "Y", "t", "TRUE", "1", " true ")),
        *((t, "boolean", False) for t in ("no", "N", "f", "False", "0")),
        ("+5", "int", 5),
        ("1,000", "bigint", 1000),
        ("5.0", "smallint", 5),
        ("$3.00", "decimal(10,2)", Decimal("3.00")),
        ("5%", "double", 5.0),
        ("1e3", "int", 1000),
        ("-inf", "double", float("-inf")),
        ("10:30:00", "time", dt.time(10, 30)),
        *(("  ", t, None) for t in ("int", "string", "date", "boolean", "timestamp", "decimal")),
        ("é", "binary", "é".encode()),
    ],
)  # fmt: skip
def test_a_declared_type_reads_what_inference_or_sparks_cast_reads(tmp_path, text, type_, value):
    wanted = parse_type(type_)
    column = read(tmp_path, f'a\n"{text}"\n', column_types={"a": wanted})["a"]
    assert column.type == wanted
    (found,) = column.to_pylist()
    assert (found.replace(tzinfo=None) if isinstance(found, dt.datetime) else found) == value


@pytest.mark.parametrize(
    ("text", "type_", "reason"),
    [
        ("soon", "timestamp", "does not fit timestamp (it is not a timestamp). Correct the cell"),
        ("2021-03-01 10:00:00+02:00", "timestamp_ntz", "names a zone"),
        ("2021-03-01 10:00:00", "date", "has a time of day"),
        ("2021-02-30", "date", "does not fit date"),
        ("maybe", "boolean", "write true or false"),
        ("300", "tinyint", "does not fit int8"),
        ("1.5", "int", "is not a whole number"),
        ("1,5", "double", "commas do not separate thousands"),
        ("1e400", "double", "no double is that large"),
        ("1.239", "decimal(10,2)", "does not fit decimal"),
        ("nan", "decimal(10,2)", "is not a finite number"),
        ("x", "int", "is not a number"),
        ("10h", "time", "does not fit"),
        ("[1]", "array<int>", "Name string in column_types"),
    ],
)
def test_what_does_not_fit_its_declared_type_is_named(tmp_path, text, type_, reason):
    """With file, row, column and a reason, in nobody else's words."""
    types = {"b": parse_type(type_)}
    with pytest.raises(DataError) as error:
        read(tmp_path, f'a,b\n1,\n2,"{text}"\n', column_types=types)
    said = str(error.value)
    assert "seed.csv: " in said
    assert "`b`" in said
    assert "row 3" in said or "[1]" in text
    assert reason in said
    assert not re.search(r"CSV conversion|Rescaling|[Cc]onver\w+ error", said)


def alike(ours: pa.ChunkedArray, theirs) -> bool:
    """Whether both readers give the same class of values, and the same values."""
    wanted = theirs.values()
    numbers = [value for value in wanted if isinstance(value, Decimal)]
    if numbers and all(map(Decimal.is_finite, numbers)):
        whole = all(value == value.to_integral_value() for value in numbers)
        if whole == pa.types.is_floating(ours.type):
            return False
    return all(itertools.starmap(equal, zip(ours, wanted, strict=True)))


def equal(ours: pa.Scalar, wanted) -> bool:
    value = ours.as_py()
    if isinstance(wanted, Decimal):
        if isinstance(value, str):
            return False
        if wanted.is_nan():
            return math.isnan(value)
        return value == (float(wanted) if isinstance(value, float) else wanted)
    if wanted is None:
        return value is None
    if isinstance(wanted, dt.datetime):
        instant = wanted if wanted.tzinfo else wanted.replace(tzinfo=dt.UTC)
        return value == instant
    return type(value) is type(wanted) and value == wanted
