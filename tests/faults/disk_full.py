"""Runs operations on a small disk of memory that gets full; prints one line of JSON a case.

`python -m tests.faults.disk_full <folder> <case>...` mounts and unmounts, so it runs in a mount
namespace of its own: `unshare -rm`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import traceback
import uuid
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa

from ktk_engine.errors import CommitStateUnknownError, KtkError
from tests.faults.content import ARROW_VERBS, TABLE, Content, Verb, choose_verb, first_content
from tests.faults.invariants import (
    AgedStore,
    Broken,
    found_content,
    require,
    verify,
    verify_cleanup,
    verify_published,
)
from tests.faults.verbs import prepare, run
from tests.support.changes import Retention, WriteRequest, build, run_cleanup
from tests.support.committed import resolve, scope_of
from tests.support.stores import LocalStore

_PAGE = 4096
_PLENTY = 64 << 20  # bytes
_VERBS = {
    uuid: tuple(name for name in names if name != "cleanup") for uuid, names in ARROW_VERBS.items()
}


def main(folder: Path, cases: list[str]) -> None:
    """Try each case on a disk of its own size."""
    logging.disable()
    os.fsync = lambda descriptor: None
    for case in cases:
        outcome, broken = "", ""
        try:
            one = _clean if case.startswith("cleanup") else _one
            outcome = one(folder, Random(case))
        except Exception as error:  # noqa: BLE001 - any means that something is broken
            broken = str(error) if isinstance(error, Broken) else traceback.format_exc(limit=-4)
        print(json.dumps({"case": case, "outcome": outcome, "broken": broken}), flush=True)


def _one(folder: Path, random: Random) -> str:
    """Fill a disk to some pages below its end, run one operation, then give it room again."""
    disk = Path(tempfile.mkdtemp(dir=folder))
    _mount(disk, _PLENTY, "rw")
    try:
        store = LocalStore(disk / "store")
        content, verbs = first_content(random)
        for verb in verbs:
            run(store, verb)
        verb = choose_verb(random, content, _VERBS)
        prepare(store, verb)
        before = verb.after(content) if verb.name == "publish" else content
        after = verb.after(content)
        pages = random.randrange(10)
        _mount(disk, _used(disk) + pages * _PAGE, "remount")
        said = _run(store, verb)
        found = _whole(store, verb, before, after, said)
        _mount(disk, _PLENTY, "remount")
        _recover(store, verb, content, found, before, after)
        return said
    finally:
        # Lazily: after an unexpected error something may still be open.
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _clean(folder: Path, random: Random) -> str:
    """Fill a disk wholly; a clean-up frees what no version named, or says what it needs."""
    disk = Path(tempfile.mkdtemp(dir=folder))
    _mount(disk, _PLENTY, "rw")
    try:
        store = AgedStore(disk / "store")
        for first in range(12):
            rows = pa.table({"a": range(first, first + 3000)})
            build(LocalStore(store.root), rows, WriteRequest(TABLE))
        content = found_content(store)
        state = resolve(store, scope_of(TABLE))
        part = next(info.key for info in store.list(f"{TABLE}/table/"))
        left = part.replace(re.search("[0-9a-f]{32}", part)[0], uuid.uuid4().hex)
        leftover = {
            "file": left,
            "temporary": f"{TABLE}/table/.tmp-{uuid.uuid4().hex}",
            "nothing": "",
        }
        kind = random.choice(list(leftover))
        if leftover[kind]:
            path = store.root / leftover[kind]
            path.write_bytes(b"x" * 10 * _PAGE)
        _mount(disk, _used(disk), "remount")
        retention = Retention(timedelta(0), 1)
        said = ""
        try:
            run_cleanup(store, scope_of(TABLE), retention)
        except KtkError as error:
            said = str(error)
        require(not leftover[kind] or not path.exists(), f"{kind} is still there")
        require(bool(said) == (kind == "nothing"), f"{kind}: {said!r}")
        if said:
            needed = re.search(r"needs about ([0-9.]+) kB. None of them was deleted", said)
            require(needed, said)
            require(found_content(store) == content, "something went")
            require(resolve(store, scope_of(TABLE)).version == state.version, "there is a version")
            _mount(disk, _used(disk) + int(float(needed[1]) * 1000), "remount")
            run_cleanup(store, scope_of(TABLE), retention)
        data = [info for info in store.list(f"{TABLE}/table/") if info.key.endswith(".parquet")]
        require(len(data) == 1, "old versions are still there")
        require(found_content(store) == content, "the newest version changed")
        return f"{kind}: freed"
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _run(store: LocalStore, verb: Verb) -> str:
    """Give how it ended."""
    try:
        run(store, verb)
    except KtkError as error:
        text = str(error)
        require(store.url in text or str(store.root) in text, f"no place is named: {error!r}")
        full = "No space left on device" in text
        require(full, f"the reason is not said: {error!r}")
        return "unknown" if isinstance(error, CommitStateUnknownError) else "refused"
    return "there was room"


def _whole(store: LocalStore, verb: Verb, before: Content, after: Content, said: str) -> Content:
    """Check what lies on the full disk."""
    allowed = {"refused": (before,), "unknown": (before, after), "there was room": (after,)}
    found = verify(store, allowed[said])
    for path in store.root.rglob("*.json"):
        require(path.stat().st_size, f"{path.name} is empty")
    return found


def _recover(
    store: LocalStore, verb: Verb, content: Content, found: Content, before: Content, after: Content
) -> None:
    """With room again, the next one publishes, or repeats it, and a clean-up leaves nothing."""
    if found == before:
        run(store, verb)
        found = after
    verify_published(store)
    verify(store, (found,))
    verify_cleanup(AgedStore(store.root).root, found)


def _mount(disk: Path, size: int, how: str) -> None:
    """Mount a disk of memory, or give the mounted one another size."""
    options = f"size={size}" if how == "rw" else f"remount,size={size}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(disk)], check=True)


def _used(disk: Path) -> int:
    status = os.statvfs(disk)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
