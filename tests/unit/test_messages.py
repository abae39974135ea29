"""Messages say what to do in the words of who asked; the engine's own text has no word of dbt."""

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import DataError, FormatError, KtkError, TypeClassError
from tests.support.voices import COMMAND, DBT, PYTHON, Message, Remedy, joined, spoken

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "ktk_engine"

# Words of dbt, and commands and options of the command line.
FOREIGN = re.compile(
    r"\bdbt\b|\bmodels?\b|YAML|Jinja|\bmacros?\b|\bconfig\b|materiali[sz]ed|on_schema_change"
    r"|incremental_|unique_key|profiles\.yml|`ktk_|\bref\('|(?<![\w-])--[a-z]|\bktk [a-z]",
    re.IGNORECASE,
)
PROSE = re.compile(r"[a-z,.;:] [a-z]", re.IGNORECASE)
# What a file is stamped with is the same for all who read it.
STAMPED = re.compile(r"of dbt-ktk, commit")
EXCEPT = {
    "messages.py": "Python's words, which name the command where only that can do it",
    "cli": "the command itself",
    "warehouse/source_definitions.py": "the head of a file of dbt's sources",
    "java/find_java.py": "a script of the shell",
    "catalog/view.py": "the comment that stands for a cube in SQL",
}


def literals(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module without its docstrings; of an f-string what stands in it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_the_engine_speaks_no_dbt_and_no_commands():
    found = [
        f"{place}:{line}: {text.strip()}"
        for file in sorted(ENGINE.rglob("*.py"))
        if (place := file.relative_to(ENGINE).as_posix()) not in EXCEPT
        and not place.startswith("cli/")
        for line, text in literals(file)
        if PROSE.search(text) and FOREIGN.search(STAMPED.sub("", text))
    ]
    assert found == []


def names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_voices_say_the_same_kinds_of_the_same_things():
    for voice in (COMMAND, DBT):
        assert set(voice) <= set(PYTHON)
    made = {}  # kind -> arguments that the engine gives
    for file in sorted(ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called, first = ast.unparse(node.func), node.args[0]
            if called in ("Remedy", "cls") and isinstance(first, ast.Constant):
                given = {item.arg for item in node.keywords}
                if file.name == "statement.py":  # whose advice is about a relation, named later
                    given.add("name")
                made.setdefault(first.value, []).append(given)
    for kind, calls in made.items():
        assert kind in PYTHON
        for given in calls:
            if None in given:  # **names
                continue
            for voice in (PYTHON, COMMAND, DBT):
                assert names(voice.get(kind, "")) <= given, kind


NYC = {"name": "nyc", "dataset": "weather"}


@pytest.mark.parametrize(
    ("remedy", "python", "command", "dbt"),
    [
        (
            Remedy.on("drop", "nyc", "weather"),
            "store.cube('nyc').drop('weather')",
            "ktk drop nyc weather",
            "dbt run-operation ktk_drop --args '{cube: nyc, dataset: weather}'",
        ),
        (
            Remedy.on("drop", "fares"),
            "store.drop('fares')",
            "ktk drop fares",
            "dbt run-operation ktk_drop --args '{cube: fares}'",
        ),
        (
            Remedy("drop_seed", **NYC),
            "store.drop('nyc')",
            "ktk drop nyc weather --cascade",
            "dbt run-operation ktk_drop --args '{cube: nyc, dataset: weather, cascade: true}'",
        ),
        (
            Remedy.on("undrop", "nyc", "weather"),
            "`ktk undrop nyc weather` on the command line",
            "ktk undrop nyc weather",
            "dbt run-operation ktk_undrop --args '{cube: nyc, dataset: weather}'",
        ),
        (
            Remedy.on("publish", "nyc", "weather"),
            "store.cube('nyc').publish(dataset='weather')",
            "ktk publish nyc --dataset weather",
            "dbt run-operation ktk_publish --args '{name: nyc, dataset: weather}'",
        ),
        (
            Remedy("untag", name="nyc", tag="q1"),
            "store.relation('nyc').untag('q1')",
            "ktk tag nyc q1 --delete",
            "dbt run-operation ktk_tag --args '{cube: nyc, name: q1, delete: true}'",
        ),
        (
            Remedy("look_at_adoption", name="nyc"),
            "`ktk adopt nyc --dry-run` on the command line",
            "ktk adopt nyc --dry-run",
            "dbt run-operation ktk_adopt --args '{name: nyc, dry_run: true}'",
        ),
        (
            Remedy("rebuild"),
            "build the dataset again with overwrite",
            "build the dataset again",
            "rebuild the dataset with --full-refresh",
        ),
        (
            Remedy("ask_view", name="late"),
            "select * from late",
            "dbt show --inline \"select * from {{ ref('late') }}\"",
            "dbt show --inline \"select * from {{ ref('late') }}\"",
        ),
        (
            Remedy("flag", option="--dry-run", argument="dry_run: true"),
            "dry_run: true",
            "--dry-run",
            "dry_run: true",
        ),
        (
            Remedy("cast", sql="cast(v as bigint)", arrow="table['v'].cast(pa.int64())"),
            "table['v'].cast(pa.int64())",
            "table['v'].cast(pa.int64())",
            "cast(v as bigint)",
        ),
        (
            Remedy("install", extra="s3"),
            *("pip install 'ktk-engine[s3]'",) * 2,
            "pip install 'dbt-ktk[s3]'",
        ),
        (Remedy("upgrade"), *("Upgrade ktk-engine.",) * 2, "Upgrade dbt-ktk."),
        (Remedy("key"), "key", "key", "unique_key"),
        (Remedy("unstaged"), *("outside of a staged run",) * 2, "without `ktk_stage`"),
    ],
)
def test_a_remedy_in_three_voices(remedy, python, command, dbt):
    error = KtkError(Message("It is so. ", remedy, "."))
    assert str(error) == error.said(PYTHON) == f"It is so. {python}."
    assert error.said(COMMAND) == f"It is so. {command}."
    assert error.said(DBT) == f"It is so. {dbt}."
    assert error.remedies == (remedy,)


@pytest.mark.parametrize("kind", [KtkError, TypeClassError, DataError, FormatError])
def test_remedies_pass_where_errors_pass(kind):
    error = kind(Message("Gone: ", Remedy.on("drop", "nyc"), "."))
    for same in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(same), same.remedies) == (kind, error.remedies)
    assert Message.from_json(error.message.to_json()).parts == error.message.parts
    around = kind(Message("nyc: ", error.message.rstrip("."), ". Nothing was done."))
    assert around.said(COMMAND) == "nyc: Gone: ktk drop nyc. Nothing was done."
    assert around.remedies == error.remedies


def test_messages_are_texts():
    message = joined("; ", ["a", Message("b ", Remedy("key")), KtkError("c")])
    assert message == "a; b key; c" and spoken(message, DBT) == "a; b unique_key; c"
    assert joined("; ", []) == "" and spoken("plain", DBT) == "plain"
    assert spoken(ValueError("it"), DBT) == "it"


def test_tables_and_problems_are_said_in_each_voice_too(tmp_path):
    store = Store(tmp_path)
    rows = pa.table({"x": [1, 2], "v": [1, 2]})
    cube = store.build("nyc", rows, dimension_columns=["x"])
    with pytest.raises(TypeClassError) as refused:
        cube.append({"seed": pa.table({"x": [3], "v": ["a"]})})
    in_python, in_dbt = str(refused.value), refused.value.said(DBT)
    assert "| table['v'].cast(pa.int64()) |" in in_python and "| given class |" in in_python
    assert "| cast(v as bigint) |" in in_dbt and "| model's class |" in in_dbt
    for text in (in_python, in_dbt, refused.value.said(COMMAND)):
        assert len({len(line) for line in text.splitlines() if line.startswith("|")}) == 1
    assert [item.kind for item in refused.value.remedies] == ["cast", "change_class"]
    (finding,) = pickle.loads(pickle.dumps(refused.value)).findings
    assert finding.as_dict(DBT)["fix"] == "cast(v as bigint)"
    with pytest.raises(DataError) as repeated:
        cube.append({"seed": pa.table({"x": [3, None], "v": [1, 1]})})
    assert "Fix: " in str(repeated.value) and [r.kind for r in repeated.value.remedies]
    assert "coalesce(x, -1)" in repeated.value.said(DBT)
    assert "pc.fill_null(table['x'], -1)" in str(repeated.value)


def test_secrets_are_masked_in_every_voice():
    error = KtkError(Message("s3://key:S3cret@bucket: ", Remedy("rebuild")))
    assert "S3cret" not in f"{error}{error.said(DBT)}{error.message}"
