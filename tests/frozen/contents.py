"""What must be read of the frozen store: the rows of each relation at each of its versions."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ktk_engine.catalog.find_scope import present_scopes  # deep: all that a store has
from ktk_engine.local.sql.local_sql import LocalSql  # deep: views without Spark
from ktk_engine.log.version import readable_versions  # deep: all that a log has
from ktk_engine.plan.plan_dataset import plan_dataset  # deep: single datasets of a cube
from tests.frozen.make_store import SCHEMA, SISTER, VIEWS
from tests.frozen.reader import Reader
from tests.golden.canonical import row_lines
from tests.support.committed import State, resolve, state_at
from tests.support.queries import FooterCache, KnownStores, LocalEngine, Plan, load_cube
from tests.support.stores import LocalStore, Warehouse

ARCHIVE = Path(__file__).with_name("store.tar.xz")
RECORDS = Path(__file__).with_name("rows.txt")
Contents = Mapping[str, list[str]]
CHANGED = "as another program left it"


def unpack(folder: Path) -> Path:
    """Unpack the frozen warehouse into a folder."""
    with tarfile.open(ARCHIVE) as archive:
        known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **known)
    return folder / "warehouse"


def pack(warehouse: Path) -> None:
    """Make the archive of a warehouse."""

    def anonymous(item: tarfile.TarInfo) -> tarfile.TarInfo:
        item.uid = item.gid = item.mtime = 0
        item.uname = item.gname = ""
        return item

    with tarfile.open(ARCHIVE, "w:xz") as archive:
        archive.add(warehouse, "warehouse", filter=anonymous)


def recorded() -> Contents:
    """The rows that must be read."""
    parts = re.split("^## (.*)\n", RECORDS.read_text(encoding="utf-8"), flags=re.M)
    return {
        title: text.split("\n")[:-1] for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def record(contents: Contents) -> None:
    """Replace what must be read."""
    texts = (
        "".join(f"{line}\n" for line in (f"## {title}", *lines))
        for title, lines in contents.items()
    )
    RECORDS.write_text("".join(texts), encoding="utf-8")


def by_library(warehouse: Path) -> dict[str, list[str]]:
    """What the library reads."""
    return dict(_by_library(warehouse))


def _by_library(warehouse: Path) -> Iterator[tuple[str, list[str]]]:
    for schema in (SCHEMA, SISTER):
        store = LocalStore(warehouse / schema)
        for scope in present_scopes(store):
            newest = resolve(store, scope)
            versions = readable_versions(newest)
            states = {f"version {version}": state_at(newest, version) for version in versions}
            if newest.changed_by_others:
                states[CHANGED] = newest
            for version, state in states.items():
                for title, plan in _plans(state):
                    rows = LocalEngine(store, FooterCache(), 1 << 30).table(plan)
                    yield f"{schema}.{title}, {version}", row_lines(rows.to_pylist())
    sql = LocalSql(KnownStores(Warehouse(warehouse).find_schema))
    for name in VIEWS:
        rows = sql.rows(f"select * from {SCHEMA}.{name}").to_pylist()
        yield f"view {SCHEMA}.{name}", row_lines(rows)


def _plans(state: State) -> Iterator[tuple[str, Plan]]:
    """What reads all datasets of a scope, and the cube."""
    for uuid, snapshot in state.snapshots().items():
        yield uuid, plan_dataset(snapshot, state.version)
    if state.scope.cube and any(item.is_seed for item in state.snapshots().values()):
        yield state.scope.name, load_cube(state).plan()


def by_page(warehouse: Path) -> dict[str, list[str]]:
    """What the reader of the page reads: all that is in logs."""
    found = {}
    for schema in (SCHEMA, SISTER):
        reader = Reader(warehouse / schema)
        for entry in (entry for scope in reader.scopes() for entry in reader.readable(scope)):
            for name, rows in reader.rows(entry).items():
                found[f"{schema}.{name}, version {entry['version']}"] = row_lines(rows)
    return found
