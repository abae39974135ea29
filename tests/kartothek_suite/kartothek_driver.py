"""A plugin for pytest on Python 3.8 that runs Kartothek's cases of cubes against `ktk_engine`.

Every case asks for a `driver`, which does what the case is about: here, it asks another process
(`serve.py`). What the cases prepare and look at is done by Kartothek itself, in the same store.

A refusal of ours is raised as all the types that Kartothek raises, and says something else than
Kartothek does: comparisons of its words are noted, not made, so that the rest of a case is run.
Whether the refusal left the store as it was is noted too. Writes a JSON object a case.

Environment: KTK_SUITE_SERVER, the command of the server; KTK_SUITE_REPORT, the file to write.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from functools import partial
from pathlib import Path

import hypothesis
import pandas.testing
import pyarrow as pa
import pytest
from kartothek.api.discover import discover_datasets_unchecked
from kartothek.core.cube.conditions import Conjunction
from kartothek.io_components.cube.write import MultiTableCommitAborted
from storefact import get_store_from_url

SERVER = subprocess.Popen(
    shlex.split(os.environ["KTK_SUITE_SERVER"]),
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    universal_newlines=True,
)
NOTED = {"words": [], "refusals": [], "widened": False}  # of the case that runs


class OtherWords(str):
    """What a refusal says: whatever it is compared with is noted as Kartothek's words for it."""

    def __contains__(self, other):
        return note_words(other, self)

    def startswith(self, other):
        return note_words(other, self)

    def __eq__(self, other):
        return note_words(other, self)

    __hash__ = str.__hash__


def note_words(theirs, ours):
    NOTED["words"].append([theirs, str.__str__(ours)])
    return True


class Refused(MultiTableCommitAborted, ValueError, TypeError):
    """A refusal of ours, as each of the types that Kartothek raises for its own."""

    def __init__(self, error, message):
        super().__init__(message)
        self.error = error
        self.__cause__ = RefusedCause(message)

    def __str__(self):
        return OtherWords(self.args[0])


class RefusedCause(ValueError):
    """Why: what Kartothek says where it takes back what it has written."""

    def __str__(self):
        return OtherWords(self.args[0])


def shown(info):
    """What pytest shows of an exception, which a case compares too."""
    plain = REAL_REPR(info)
    return OtherWords(plain) if isinstance(info.value, Refused) else plain


REAL_REPR, pytest.ExceptionInfo.__repr__ = pytest.ExceptionInfo.__repr__, shown


def raises(expected, *args, **named):
    """`pytest.raises`, but for the words of a refusal of ours."""
    if args or "match" not in named:
        return REAL_RAISES(expected, *args, **named)
    return RaisesOtherWords(expected, named["match"])


REAL_RAISES, pytest.raises = pytest.raises, raises


def frames_equal(actual, expected, **named):
    """Whether frames are equal; integers and floats of ours are as wide as their class is.

    Where only that differs, it is noted.
    """
    widened = expected.copy()
    for column in set(expected.columns) & set(actual.columns):
        ours, theirs = actual.dtypes[column], expected.dtypes[column]
        if ours.kind == theirs.kind and ours.itemsize == 8 > theirs.itemsize:
            widened[column] = expected[column].astype(ours)
    REAL_FRAMES_EQUAL(actual, widened, **named)
    NOTED["widened"] |= not expected.dtypes.equals(widened.dtypes)


REAL_FRAMES_EQUAL = pandas.testing.assert_frame_equal
pandas.testing.assert_frame_equal = frames_equal
hypothesis.settings.register_profile("same", derandomize=True, database=None, max_examples=25)
hypothesis.settings.load_profile("same")


class RaisesOtherWords:
    def __init__(self, expected, words):
        self.real, self.words, self.expected = REAL_RAISES(expected), words, expected

    def __enter__(self):
        return self.real.__enter__()

    def __exit__(self, kind, error, traceback):
        if isinstance(error, Refused):
            note_words(self.words, str(error))
            return self.real.__exit__(kind, error, traceback)
        checked = REAL_RAISES(self.expected, match=self.words)
        checked.__enter__()
        return checked.__exit__(kind, error, traceback)


def ask(verb, cube, store, target=None, **arguments):
    root = root_of(store())
    roots = [root] if target is None else [root, root_of(target())]
    before = [content(item) for item in roots]
    request = dict(
        arguments,
        verb=verb,
        store=root,
        target=roots[-1],
        cube={
            name: list(value) if not isinstance(value, str) else value
            for name, value in (
                ("dimension_columns", cube.dimension_columns),
                ("partition_columns", cube.partition_columns),
                ("uuid_prefix", cube.uuid_prefix),
                ("seed_dataset", cube.seed_dataset),
                ("index_columns", sorted(cube.index_columns)),
                ("suppress_index_on", sorted(cube.suppress_index_on)),
            )
        },
    )
    SERVER.stdin.write(json.dumps(request) + "\n")
    SERVER.stdin.flush()
    answer = json.loads(SERVER.stdout.readline())
    if "failed" in answer:
        raise AssertionError("{}: {}".format(*answer["failed"]))
    if "refused" in answer:
        same = [content(item) for item in roots] == before
        NOTED["refusals"].append([verb, *answer["refused"], same])
        raise Refused(*answer["refused"])
    return answer["result"]


def root_of(store):
    """The folder of a store, or of what a read-only one is about."""
    return vars(store).get("root") or root_of(vars(store)["_dstore"])


def content(root):
    """Every file of a store, how long it is, and since when; but for the lock of a disk's store."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            known = os.stat(path)
            found[path] = known.st_size, known.st_mtime_ns
    return {path: what for path, what in found.items() if not path.endswith("/.ktk/lock")}


@pytest.fixture(scope="module")
def driver(request, tmp_path_factory):
    """The verb that a module of cases is about."""
    verb = request.module.__name__.rsplit(".", 1)[-1].replace("_cube", "")
    return partial(DRIVERS[verb], verb, tmp_path_factory.mktemp("frames"))


def write(
    verb,
    scratch,
    data,
    cube,
    store,
    metadata=None,
    overwrite=False,
    partition_on=None,
    df_serializer=None,
    remove_conditions=None,
    ktk_cube_dataset_ids=None,
):
    """Write as Kartothek's functions do; how files are written (`df_serializer`) is ours to say."""
    sent = {}
    for part in data if isinstance(data, list) else [data]:
        frames = part if isinstance(part, dict) else {cube.seed_dataset: part}
        for name, frame in frames.items():
            if frame is not None:
                sent.setdefault(name, []).append(send(scratch, frame))
    names = sorted(sent if ktk_cube_dataset_ids is None else ktk_cube_dataset_ids)
    written = ask(
        verb,
        cube,
        store,
        data=sent,
        metadata=metadata,
        overwrite=overwrite,
        partition_on=partition_on,
        conditions=conditions_of(remove_conditions),
        datasets=names,
    )
    return discover_datasets_unchecked(cube.uuid_prefix, store, written)


def query(
    verb,
    scratch,
    cube,
    store,
    conditions=None,
    datasets=None,
    dimension_columns=None,
    partition_by=None,
    payload_columns=None,
):
    paths = ask(
        verb,
        cube,
        store,
        conditions=conditions_of(conditions),
        datasets=None if datasets is None else sorted(datasets),
        dimension_columns=names_of(dimension_columns),
        partition_by=names_of(partition_by),
        payload_columns=None if payload_columns is None else sorted(payload_columns),
        scratch=str(scratch / "rows"),
    )
    return [pa.ipc.open_file(path).read_all().to_pandas() for path in paths]


def remove(verb, scratch, cube, store, conditions=None, ktk_cube_dataset_ids=None):
    """Take out partitions; gives all datasets, as Kartothek does."""
    ids, asked = ktk_cube_dataset_ids, conditions_of(conditions)
    ask(verb, cube, store, conditions=asked, datasets=None if ids is None else sorted(ids))
    return discover_datasets_unchecked(cube.uuid_prefix, store)


def other(verb, scratch, cube, store, datasets=None):
    return ask(verb, cube, store, datasets=None if datasets is None else sorted(datasets))


def cleanup(verb, scratch, cube, store):
    """Clean up what is old enough; Kartothek's knows no age."""
    for path in Path(root_of(store())).rglob("*"):
        os.utime(path, (0, 0))
    return ask(verb, cube, store)


def copy_cube(
    verb,
    scratch,
    cube,
    src_store,
    tgt_store,
    overwrite=False,
    datasets=None,
    renamed_cube_prefix=None,
    renamed_datasets=None,
):
    """Copy; cases of renamed copies look for this function's name."""
    ask(
        "copy",
        cube,
        src_store,
        target=tgt_store,
        overwrite=overwrite,
        datasets=None if datasets is None else sorted(datasets),
        name=renamed_cube_prefix,
        rename=renamed_datasets,
    )


DRIVERS = dict(
    dict.fromkeys(("build", "extend", "append", "update"), write),
    cleanup=cleanup,
    **dict.fromkeys(("copy", "copies"), copy_cube),
    query=query,
    remove=remove,
    **dict.fromkeys(("stats", "delete"), other),
)


def send(scratch, frame):
    """A frame as a file, with names that any frame can have, and what it is."""
    if type(frame).__name__ != "DataFrame":
        return {"type": type(frame).__name__}
    sparse = any(str(kind).startswith("Sparse") for kind in frame.dtypes)
    columns = [
        [name.decode("utf8"), "bytes"] if isinstance(name, bytes) else [name, "text"]
        for name in frame.columns
    ]
    plain = frame.copy()
    plain.columns = [str(number) for number in range(len(columns))]
    if sparse:
        plain = plain.sparse.to_dense()
    path = str(scratch / f"{len(list(scratch.iterdir()))}.arrow")
    table = pa.Table.from_pandas(plain)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return {"type": "sparse" if sparse else "frame", "path": path, "columns": columns}


def conditions_of(conditions):
    """Comparisons, all of which have to hold."""
    if conditions is None:
        return None
    conjunction = conditions if isinstance(conditions, Conjunction) else Conjunction(conditions)
    return [[column, sign, plain(value)] for column, sign, value in conjunction.predicate or []]


def plain(value):
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def names_of(names):
    return {"set": sorted(names)} if isinstance(names, (set, frozenset)) else names


@pytest.fixture(scope="module")
def driver_name():
    """The backend without dask, which the others of Kartothek differ from in arguments only."""
    return "eager"


@pytest.fixture
def skip_eager():
    pytest.skip("about an argument of dask's backends")


def store_factory(folder, options=""):
    return partial(get_store_from_url, f"hfs://{folder}{options}")


def new_store(folder):
    factory = store_factory(folder, "?create_if_missing=true")
    factory()
    return factory


@pytest.fixture
def function_store(tmp_path):
    return new_store(tmp_path / "store")


@pytest.fixture
def function_store2(tmp_path):
    return new_store(tmp_path / "store2")


@pytest.fixture
def function_store_ro(function_store, tmp_path):
    return store_factory(tmp_path / "store", "?create_if_missing=false#wrap:readonly")


@pytest.fixture
def mocker():
    pytest.skip("replaces a function of Kartothek's own by one that fails")


@pytest.fixture(params=["rw", "ro"])
def function_store_rwro(request, function_store, tmp_path):
    if request.param == "rw":
        return function_store
    return store_factory(tmp_path / "store", "?create_if_missing=false#wrap:readonly")


@pytest.fixture(scope="module")
def module_store(tmp_path_factory):
    return new_store(tmp_path_factory.mktemp("module") / "store")


CASES = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    NOTED.update(words=[], refusals=[], widened=False)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    name = "{}::{}".format(item.module.__name__.rsplit(".", 1)[-1], item.name)
    if report.when == "call" or report.outcome != "passed":
        CASES[name] = {
            "outcome": report.outcome,
            "why": "" if report.outcome == "passed" else shortly(report),
            **NOTED,
        }


def shortly(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return f"line {crash.lineno}: {crash.message}" if crash else str(report.longrepr)


def pytest_sessionfinish(session):
    Path(os.environ["KTK_SUITE_REPORT"]).write_text(json.dumps(CASES, indent=1))
    SERVER.stdin.close()
    SERVER.wait()
