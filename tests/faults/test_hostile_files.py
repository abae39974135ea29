"""Files that were spoilt on purpose: errors that name them, in bounded time and memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

import msgpack
import pyarrow as pa
import pytest

from tests.faults.answer import Answer, names_file
from tests.faults.asked_in_child import asked_in_child
from tests.faults.questions_without_spark import OURS
from tests.faults.report import Tally
from tests.faults.scale import LARGE, SEED
from tests.faults.victim import PLAIN, build_victim, kinds
from tests.support.stores import LocalStore

_UUIDS = (*OURS, PLAIN, "nyc++flights", "nyc++weather")
_MEMORY = 3 << 30  # bytes of address space besides what the process has

Spoil = Callable[[bytes], bytes]


def _edited(change: Callable[[dict], object]) -> Spoil:
    """Change a JSON document, and write it down again."""

    def spoil(data: bytes) -> bytes:
        document = json.loads(data)
        return json.dumps(change(document) or document).encode()

    return spoil


SPOILT: Mapping[str, Spoil] = {
    "empty": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "without its first byte": lambda data: data[1:],
    "zeros": lambda data: bytes(len(data)),
    "another format": lambda data: b"PK\x03\x04" + data,
    "twice": lambda data: data + data,
}
SPOILT_JSON: Mapping[str, Spoil] = {
    "no UTF-8": lambda data: data.replace(b'"', b'"\xff', 1),
    "repeated keys": lambda data: (
        data.rstrip()[:-1]
        + b', "datasets": {}, "partitions": {}, "sql": "select 1", "heartbeat": "x"}'
    ),
    "NaN": lambda data: data.rstrip()[:-1] + b', "x": NaN}',
    "deep": lambda data: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep lists": lambda data: b"[" * 200_000,
    "a huge number": lambda data: data.rstrip()[:-1] + b', "x": ' + b"9" * 5_000_000 + b"}",
    "a list": lambda data: b"[" + data + b"]",
    "null": lambda data: b"null",
    "a text": lambda data: b'"x"',
    "no keys": lambda data: b"{}",
    "nulls": _edited(lambda document: dict.fromkeys(document)),
    "numbers": _edited(lambda document: dict.fromkeys(document, 1)),
    "texts": _edited(lambda document: dict.fromkeys(document, "../../etc/passwd")),
    "lists": _edited(lambda document: {key: [] for key in document}),
}


NO_FILES: Mapping[str, Callable[[Path], object]] = {
    "a link to the file": lambda path: path.symlink_to(path.with_name(path.name + ".away")),
    "a link to somewhere": lambda path: path.symlink_to("/etc/passwd"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
}


def test_spoilt_files(request, tmp_path):
    store = build_victim(tmp_path / "s")
    right = _asked(store)
    tally = Tally("files that are spoilt on purpose")
    cases = [
        (kind, store.root / keys[0], name)
        for kind, keys in sorted(kinds(store).items())
        for name in (*SPOILT, *NO_FILES, *(SPOILT_JSON if keys[0].endswith(".json") else ()))
    ]
    for kind, path, name in cases if LARGE else Random(SEED).sample(cases, 30):
        with _spoilt(path, name):
            _judge(tally, f"{kind}, {name}", path, right, _asked(store))
    tally.finish(request)


@pytest.mark.parametrize("bomb", ["zeros", "maps", "nested", "texts"])
def test_bombs(request, tmp_path, bomb):
    """A few kilobytes that unfold to gigabytes."""
    store = LocalStore(tmp_path / "s")
    content = {
        "zeros": b"\x00" * (600 << 20),
        "maps": b"\x81\xa1x" * 20_000_000,
        "nested": b"\x91" * 50_000_000 + b"\x00",
        "texts": msgpack.packb({"dataset_metadata_version": 4}) + b"\xc0" * (200 << 20),
    }[bomb]
    packed = pa.compress(content, codec="zstd", asbytes=True)
    store.put("b.by-dataset-metadata.msgpack.zstd", packed)
    start = time.perf_counter()
    answers = _asked(store, ("b",))
    tally = Tally(f"a bomb of msgpack, {bomb}: {len(packed):,} bytes for {len(content):,}")
    rows = answers["rows of b"]
    if not rows.error or not rows.ours:
        tally.bad(bomb, str(rows))
    tally.good(f"refused in {time.perf_counter() - start:.0f} s")
    tally.finish(request)


def _judge(
    tally: Tally,
    case: str,
    path: Path,
    right: Mapping[str, Answer],
    given: Mapping[str, Answer] | str,
) -> None:
    if isinstance(given, str):
        tally.bad(case, given)
        return
    errors = False
    for name, answer in given.items():
        errors = errors or bool(answer.error)
        if answer.error and not answer.ours:
            tally.bad(f"{case}, {name}", f"a raw error: {answer.error[:500]}")
        elif answer.error and not names_file(answer.error, path.name):
            tally.bad(f"{case}, {name}", f"the file is not named: {answer.error[:500]}")
        elif _is_wrong(name, answer, right, path):
            tally.bad(f"{case}, {name}", f"another answer: {str(answer.value)[:500]}")
    tally.good("an error that names the file" if errors else "right")


def _is_wrong(name: str, answer: Answer, right: Mapping[str, Answer], path: Path) -> bool:
    """A description names what cannot be read, and says how large foreign files are."""
    if answer.error or answer == right[name] or names_file(str(answer.value), path.name):
        return False
    return not (name == "description of nyc" and path.suffix == ".parquet")


def _asked(store: LocalStore, uuids: tuple[str, ...] = _UUIDS) -> Mapping[str, Answer]:
    """Ask in a process of its own, which may use so much memory and time."""
    answers = asked_in_child(store, uuids, _MEMORY)
    lost = Answer(error="no answer: out of memory or time", ours=False)
    return {"rows of b": lost, "everything": lost} if answers is None else answers


@contextmanager
def _spoilt(path: Path, name: str) -> Iterator[None]:
    """Spoil a file, or put something in its place that is not a file."""
    away = path.with_name(path.name + ".away")
    path.rename(away)
    if name in NO_FILES:
        NO_FILES[name](path)
    else:
        path.write_bytes({**SPOILT, **SPOILT_JSON}[name](away.read_bytes()))
    try:
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        away.replace(path)
