"""Stores in whose documents somebody has put commands, templates, addresses and long numbers.

Nothing of them runs, no connection leaves, nothing outside is read, no terminal obeys them, and
each command ends soon, with a message at worst.
"""

from __future__ import annotations

import random
import re
import shutil
import socket
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main
from ktk_engine.errors import KtkError
from ktk_engine.local.sql.local_sql import LocalSql  # deep: as tests of models are answered
from tests.support.committed import cube_scope
from tests.support.documents import ViewDocument, add_view
from tests.support.hostile_store import (
    ESCAPES,
    JINJA,
    OBEYED,
    VALUES,
    build_store,
    documents,
    note_computed,
    payloads,
    places,
    replace,
)
from tests.support.queries import KnownStores, StoreAddress, quote_identifier
from tests.support.random_cubes import EVERY_COMMIT, TIMES
from tests.support.stores import LocalStore, Warehouse

SECONDS = 20
LITERAL = re.compile(r"\{\{ '(?:[^'\\]|\\.)*' \}\}", re.DOTALL)
CHANGES = 50 if EVERY_COMMIT else 150 * TIMES
COMMANDS = (
    ("info",),
    ("info", "t"),
    ("info", "c", "--indexes", "--rows"),
    ("stats", "t"),
    ("history", "t"),
    ("why", "t"),
    ("why", "c", "--json"),
    ("changes", "t", "--after", "3"),
    ("diff", "t", "--markdown"),
    ("diff", "c", "sister.c"),
    ("versions", "c"),
    ("query", "t", "--limit", "2"),
    ("query", "c", "x = 1", "--format", "json"),
    ("explain", "c", "x = 1"),
    ("check",),
    ("check", "t", "--deep"),
    ("cleanup", "t"),
    ("adopt", "--all", "--dry-run"),
    ("publish", "t"),
    ("compact", "c", "--dry-run"),
)
_events: list[str] = []
_forbidden: list[str] = []  # a folder outside of the store, while a test runs


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if not _forbidden:
        return
    named = event == "open" and str(arguments[0]).startswith(_forbidden[0])
    if named or event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        _events.append(f"{event} {arguments[0]}")
    if event == "socket.getaddrinfo" or (event == "socket.connect" and len(arguments) > 1):
        _events.append(f"{event} {arguments[1:]}")


sys.addaudithook(_note)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "wh" / "other"
    return build_store(folder)


@pytest.fixture
def outside(tmp_path):
    """A folder that nobody names, with a file that only a hostile document would lead to."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("hunter2")
    return folder


@pytest.fixture
def proxy(monkeypatch):
    """Take every connection that a client of a cloud would make; gives what arrives."""
    arrived = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                arrived.append(connection.recv(4_096))
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, address)
            monkeypatch.setenv(name.lower(), address)
        for name, value in (
            ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=hunter2"),
            ("AWS_ACCESS_KEY_ID", "AKIA"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("NO_PROXY", ""),
            ("no_proxy", ""),
        ):
            monkeypatch.setenv(name, value)
        yield arrived


@pytest.fixture
def watched(outside, proxy):
    """Look at all that the process does, and at what it shows."""
    _forbidden.append(str(outside))
    _events.clear()
    yield
    _forbidden.clear()
    assert _events == []
    assert proxy == []
    assert not (outside / "ran").exists()


def attempt(what: str, action, *arguments) -> str:
    """Do something; gives what the user sees of it."""
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            said = str(action(*arguments) or "")
        except KtkError as error:
            said = str(error)
    assert time.monotonic() - began < SECONDS, what
    said += "".join(str(item.message) for item in warned)
    found = OBEYED.search(said)
    assert found is None, f"{what}: {said[max(found.start() - 200, 0) :][:400]!r}"
    assert "hunter2" not in said, what
    return said


def command(store: LocalStore, *words: str) -> str:
    result = CliRunner().invoke(main, ["--store", str(store.root), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{words}: {result.exception!r}") from result.exception
    return result.output


def use(store: LocalStore) -> list[str]:
    """Open, read, query, describe, check, adopt, publish, write; gives texts of sources."""
    for words in COMMANDS:
        attempt(" ".join(words), command, store, *words)
    face = Store.of(store)
    attempt("html", face._repr_html_)
    warehouse = Warehouse(store.root.parent)
    local = LocalSql(KnownStores(warehouse.find_schema, warehouse.trust))
    address = quote_identifier(str(StoreAddress(str(store.root), "v")))
    for name in ("other.v", "other.c", "other.both", "other.t", f"{address}.a.b"):
        attempt(name, lambda name=name: local.rows(f"select x from {name}").num_rows)
    sources = store.root.parent / "sources.yml"
    sources.unlink(missing_ok=True)
    attempt("adopt", command, store, "adopt", "--all", "--force", "--yes", "--write-sources",
            str(sources))  # fmt: skip
    shown = check_sources(sources) if sources.exists() else []
    rows = pa.table({"p": ["z"], "x": [9], "v": [0.0]})
    attempt("append", lambda: face.write_table("t", rows, "append"))
    attempt("drop", lambda: face.drop("t"))
    return shown


def check_sources(path: Path) -> list[str]:
    """Every text that dbt would read as a template is a literal; gives what dbt makes of them."""
    import jinja2

    def look(item: object) -> None:
        if isinstance(item, dict):
            for key, value in item.items():
                look(key)
                look(value)
        elif isinstance(item, list):
            for value in item:
                look(value)
        elif isinstance(item, str) and any(sign in item for sign in ("{{", "{%", "{#")):
            assert LITERAL.fullmatch(item), item  # and nothing else
            shown.append(jinja2.Environment().from_string(item).render())

    shown: list[str] = []
    text = path.read_text(encoding="utf-8")
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
    look(yaml.safe_load(text))
    return shown


def test_what_names_notes_and_values_may_hold(template, tmp_path, watched):
    shutil.copytree(template.root.parent, tmp_path / "wh")
    store = LocalStore(tmp_path / "wh" / "other")
    shown = use(store)
    assert JINJA in shown and any(ESCAPES in item for item in shown)
    assert ESCAPES in Store.of(store).cube("c").query().to_arrow(engine="local")["p"].to_pylist()


@pytest.mark.parametrize("part", range(5))
def test_each_text_of_each_document(template, tmp_path, outside, watched, part):
    """A fifth of the places each; `KTK_EXAMPLES=9` tries nearly all with all that is hostile."""
    chosen = random.Random(part)
    every = [(key, place) for key in documents(template) for place in places(template, key)]
    assert len(every) > 500
    texts = payloads(outside)
    folder = tmp_path / "wh"
    for number in range(CHANGES // 5):
        key, place = chosen.choice(every)
        kind = list(texts)[(number + part) % len(texts)]
        shutil.copytree(template.root.parent, folder)
        store = LocalStore(folder / "other")
        replace(store, key, place, texts[kind])
        try:
            use(store)
        except BaseException as error:
            error.add_note(f"{kind} in {key}: {place}")
            raise
        shutil.rmtree(folder)


@pytest.mark.parametrize("part", range(3))
def test_each_value_of_each_document_may_be_of_any_type(template, tmp_path, watched, part):
    chosen = random.Random(part)
    every = [(key, place) for key in documents(template) for place in places(template, key)]
    folder = tmp_path / "wh"
    for _ in range(CHANGES // 5):
        key, place, value = *chosen.choice(every), chosen.choice(VALUES)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template.root.parent, folder)
        store = LocalStore(folder / "other")
        with suppress(ArithmeticError, AttributeError, TypeError, ValueError, pa.ArrowException):
            replace(store, key, place, value)
        try:
            use(store)
        except BaseException as error:
            error.add_note(f"{value!r:.60} in {key}: {place}")
            raise


@pytest.mark.parametrize(
    "place",
    [
        "abfss://c@acct.dfs.evil.example/p",
        "s3://victim/p",
        "gs://victim/p",
        "{outside}",
        "file://{outside}",
        "{outside}/../outside",
        "..",
        ".",
        "../../outside",
        "sister/../../../outside",
        "%2e%2e",
    ],
)
def test_a_note_leads_to_no_store_elsewhere(template, tmp_path, outside, watched, place):
    shutil.copytree(template.root.parent, tmp_path / "wh")
    store = LocalStore(tmp_path / "wh" / "other")
    (outside / ".ktk").mkdir()
    place = place.replace("{outside}", str(outside))
    note_computed(store, cube_scope("c"), "c++seed", place)
    said = attempt("why", command, store, "why", "c")
    assert "Nothing was read there" in said or "has no dataset" in said or "not ours" in said, said
    note_computed(store, cube_scope("c"), "c++seed", "sister")
    assert "sister.c++more" in attempt("why", command, store, "why", "c")


@pytest.mark.parametrize("is_view", [True, False])
def test_no_secret_goes_to_an_address_of_a_document(tmp_path, watched, is_view):
    """The control shows that the proxy would see it."""
    evil = "abfss://c@acct.dfs.evil.example/p"
    warehouse = Warehouse(tmp_path / "wh")
    store = warehouse.create_schema("other")
    Store.of(store).build("c", pa.table({"x": [1]}), dimension_columns=["x"])
    named = quote_identifier(str(StoreAddress(evil, "x")))
    if is_view:
        add_view(store, ViewDocument("v", "view", sql=f"select * from {named}.a.b"))
    else:
        external = {"seed": evil}
        add_view(store, ViewDocument("v", "cube", cube="c", datasets=("seed",), external=external))
    local = LocalSql(KnownStores(warehouse.find_schema, warehouse.trust))
    said = attempt("read", lambda: local.rows("select * from other.v"))
    assert f"other.v reads the store at {evil}" in said


def test_the_proxy_sees_what_is_sent(proxy):
    store = Warehouse("abfss://c@acct.dfs.evil.example/p").find_schema
    with pytest.raises(KtkError):
        store("x")
    assert any(b"evil.example" in data for data in proxy)
