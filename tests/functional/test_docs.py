"""What README.md and docs/ show is true: each page's snippets run in a copy of the sample project.

How a page says what to run is in `snippets.py`. The copy has the flights of a few days.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from dbt.cli.main import dbtRunner

from ktk_engine.cli.main import main as ktk
from tests.conftest import SPARK_SETTINGS
from tests.functional.snippets import Snippet, snippets_of
from tests.support.spark import start_session

ARTIFACTS = True

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
BUILT = ("warehouse", "target", "logs", "data")
START = "docs/start.md"  # begins with an empty folder, as its readers do


@dataclass
class Project:
    """A dbt project in the current folder that a page's snippets change and use."""

    folder: Path
    pending: dict[str, int] = field(default_factory=dict)  # names and how often to build them
    said: list[str] = field(default_factory=list)

    def run(self, snippet: Snippet) -> None:
        """Do what a snippet asks for."""
        files = snippet.files
        if snippet.fails or not (files or snippet.builds):
            self.build_pending()
        for path, text in files.items():
            self.put(path, text)
        if files and snippet.fails:
            self.build_pending(fails=True)
        elif files:
            return
        elif snippet.language in ("shell", "console"):
            before = len(self.said)
            for command in snippet.commands:
                self.command(command, snippet.fails)
            if snippet.language == "console":
                shown = [line for line in snippet.text.splitlines() if not line.startswith("$ ")]
                assert_said(shown, self.said[before:])
        elif snippet.language == "python":
            self.python(snippet)
        elif snippet.language == "text":
            assert_said(snippet.text.splitlines(), self.said)
        else:
            raise AssertionError(
                f"nobody knows how to run a block of {snippet.language or 'no language'} that "
                "names no file: see tests/functional/snippets.py"
            )

    def put(self, path: str, text: str) -> None:
        """Write a file; one of the sample project that defines the same node goes."""
        file = self.folder / path
        if file.suffix != ".yml":
            for other in self.folder.glob(f"*/**/{file.stem}.*"):
                if other.suffix in (".sql", ".py", ".csv") and "target" not in other.parts:
                    other.unlink()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        times = 2 if "is_incremental" in text else 1  # a second run takes another branch
        self.pending.update(dict.fromkeys(nodes_of(path, text), times))

    def build_pending(self, fails: bool = False) -> None:
        """Build what the files define and no command has built yet."""
        for _ in range(max(self.pending.values(), default=0)):
            self.dbt(["build", "--select", *self.pending], fails)
        assert not self.pending, f"dbt does not build {', '.join(self.pending)}"

    def command(self, command: str, fails: bool) -> None:
        program, *arguments = shlex.split(command, comments=True)
        if program == "dbt":
            self.dbt(arguments, fails)
        elif program == "ktk":  # every question is answered with yes
            done = CliRunner().invoke(ktk, arguments, input="y\n", catch_exceptions=False)
            self.said += done.output.splitlines()
            assert (done.exit_code != 0) == fails, done.output
        else:
            raise AssertionError(f"neither dbt nor ktk: {command}")

    def dbt(self, arguments: list[str], fails: bool) -> None:
        lines: list[str] = []

        def listen(event) -> None:
            if event.info.level != "debug":
                lines.extend(event.info.msg.splitlines())

        done = dbtRunner(callbacks=[listen]).invoke([*arguments, "--no-use-colors"])
        self.said += lines
        said = "\n".join(lines)
        assert done.success != fails, f"dbt {arguments}: {done.exception}\n{said}"
        assert "Nothing to do" not in said, f"dbt {arguments} selects nothing"
        if arguments[0] in ("build", "run"):
            self.count({item.node.name for item in done.result})

    def count(self, built: set[str]) -> None:
        """Strike off what was built."""
        left = {name: times - (name in built) for name, times in self.pending.items()}
        self.pending = {name: times for name, times in left.items() if times}

    def python(self, snippet: Snippet) -> None:
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(snippet.text, "<snippet>", "exec"), {"__name__": "__main__"})
        self.said += output.getvalue().splitlines()


def nodes_of(path: str, text: str) -> list[str]:
    """Names by which dbt selects what a file defines."""
    file = Path(path)
    if len(file.parts) == 1 or file.parts[0] == "macros":
        return []
    if file.suffix != ".yml":
        return re.findall(r"{% (?:snapshot|test) (\w+)", text) or [file.stem]
    content = yaml.safe_load(text)
    kinds = ("models", "seeds", "snapshots", "unit_tests")
    return [item["name"] for kind in kinds for item in content.get(kind, ())]


def assert_said(shown: list[str], said: list[str]) -> None:
    """Each line that is shown was said; figures, times and the width of columns may differ."""
    heard = "\n".join(plain(line) for line in said)
    for line in filter(str.strip, shown):
        assert plain(line) in heard, f"nobody said {line!r}; said was:\n" + "\n".join(said)


def plain(line: str) -> str:
    """A line without figures, and with one blank for many."""
    line = re.sub(r"\d[\d,.:]*", "0", line)
    line = re.sub(r"\.{2,}|-{2,}", "-", line)
    return " ".join(line.split())


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    """The sample project, built with the flights and planes of seven days."""
    folder = tmp_path_factory.mktemp("docs") / "sample_project"
    shutil.copytree(ROOT / "sample_project", folder, ignore=shutil.ignore_patterns(*BUILT))
    subprocess.run([sys.executable, folder / "get_data.py"], check=True, cwd=folder)
    for name in ("flights", "weather"):
        file = folder / "data" / f"{name}.parquet"
        table = pq.read_table(file)
        first = pc.and_(pc.less_equal(table["month"], 2), pc.less_equal(table["day"], 3))
        turned = pc.and_(pc.equal(table["month"], 11), pc.equal(table["day"], 3))
        pq.write_table(table.filter(pc.or_(first, turned)), file)
    planes = folder / "data" / "planes.parquet"
    flown = pq.read_table(folder / "data" / "flights.parquet", columns=["tailnum"])["tailnum"]
    pq.write_table(pq.read_table(planes).filter(pc.field("tailnum").isin(flown.unique())), planes)
    start_session(SPARK_SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Project(folder).dbt(["build"], fails=False)
    return folder


@pytest.fixture
def project(sample, tmp_path, monkeypatch) -> Iterator[Project]:
    folder = tmp_path / "project"
    shutil.copytree(sample, folder)
    monkeypatch.chdir(folder)
    yield Project(folder)


@pytest.mark.parametrize("page", [page for page in PAGES if page != START])
def test_the_snippets_of_a_page_run(project, page):
    run_page(project, page)


def test_the_first_cube_of_an_empty_folder(tmp_path, monkeypatch):
    start_session(SPARK_SETTINGS)
    folder = tmp_path / "first_cube"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(Project(folder), START)
    assert (folder / "shop.html").is_file()


def run_page(project: Project, page: str) -> None:
    duckdb.set_default_connection(duckdb.connect())  # without the views of other pages
    for snippet in snippets_of((ROOT / page).read_text(encoding="utf-8")):
        if snippet.is_run:
            try:
                project.run(snippet)
            except Exception as error:
                error.add_note(f"the block at {page}:{snippet.line}")
                raise
    project.build_pending()


@pytest.mark.parametrize(
    "page",
    [f"docs/{name}.md" for name in ("start-python", "python", "kartothek", "polars-and-duckdb")],
)
def test_python_needs_no_java(project, without_java, page):
    """Neither Java nor PySpark is loaded, but where an example asks for Spark."""
    environment, marker = without_java
    page = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block.text for block in snippets_of(page) if block.language == "python"]
    blocks = [text for text in blocks if ".to_spark(" not in text]
    assert blocks
    program = "\n".join([*blocks, "import sys", "assert 'pyspark' not in sys.modules"])
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```\nwhat?\n```\n", "block of no language that names no file"),
        ("```sql\nselect 1\n```\n", "block of sql that names no file"),
        ("```sql\n-- models/x.sql\nselect nope\n```\n", "nope"),
        ("<!-- fails -->\n```sql\n-- models/x.sql\nselect 1 as x\n```\n", "'x'"),
        ("```shell\nrm x\n```\n", "neither dbt nor ktk: rm x"),
        ("```shell\nktk info nope\n```\n", "nope"),
        ("```shell\ndbt run --select nope\n```\n", "selects nothing"),
        ("```console\n$ ktk info nyc\nsomething else\n```\n", "nobody said 'something else'"),
    ],
)
def test_a_page_that_is_wrong_fails(project, page, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        for snippet in snippets_of(page):
            project.run(snippet)
        project.build_pending()


def test_a_block_that_is_not_run_says_why():
    page = "<!-- not run: needs a cluster -->\n```shell\nmake\n```\n\n<!-- not run -->\n```\n```\n"
    assert [snippet.is_run for snippet in snippets_of(page)] == [False, True]
    with pytest.raises(ValueError, match="3 fences, but 1 block"):
        snippets_of("```sql\nselect 1\n```\n\n```sql\n")
