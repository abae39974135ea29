"""What writers do side by side, and what has to hold in whatever order their calls come.

Each change says what it makes of the rows it finds. Applied in the order of the log, those of all
acknowledged changes have to give the rows that are there: so none is lost, none is there twice,
and none was computed from rows that were others when it was committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine import Store
from ktk_engine.api.transaction import (  # deep: with its history
    Transaction,
    retry_transaction_on_conflict,
)
from ktk_engine.api.write_table import delete_from  # deep: with its history
from ktk_engine.errors import KtkError
from ktk_engine.log.change.reads import Read, Reads  # deep: what a session notes of a query
from tests.support.changes import (
    Source,
    StagedStore,
    WriteRequest,
    build,
    build_from,
    comment_on,
    compact,
    find_compaction,
    publish_datasets,
    publish_stages,
    remove,
    rename,
    run_cleanup,
    stop_publishing,
    undrop,
)
from tests.support.committed import (
    Snapshot,
    State,
    check,
    cube_scope,
    read_entries,
    read_log,
    read_snapshot,
    resolve,
    scope_of,
    version_of,
)
from tests.support.documents import Comments, read_stamp
from tests.support.interleaving import Body, Run, Schedule, SteppingStore
from tests.support.interrupting_store import NOTHING, InterruptingStore

Rows = frozenset[int]
Effect = Callable[[Rows | None], Rows | None]
NO_ROWS: Rows = frozenset()
TABLE = WriteRequest("t")
SEED = WriteRequest("s", "seed", "c", ("x",))
EXTRA = WriteRequest("e", "enrichment", "c", ("x",))
MORE = WriteRequest("f", "enrichment", "c", ("x",))
PAYLOAD = {"e": "w", "f": "u"}
FIRST = (1, 2, 3)


@dataclass(frozen=True)
class Change:
    """What one writer does.

    Attributes:
        name: what the log says about it; each change of a scenario has another.
        run: does it.
        effects: dataset -> what it makes of its rows; None stands for no dataset.
        rests: whether it leaves no entry where it finds nothing to do.
    """

    name: str
    run: Body
    effects: Mapping[str, Effect] = field(default_factory=dict)
    rests: bool = False


@dataclass(frozen=True)
class Scenario:
    """What writers do side by side.

    Attributes:
        changes: one a writer.
        check: what has to hold besides the rows, given the store and who was acknowledged; for
            changes that the log of one scope does not tell it replaces the check of rows.
        form: in which format the table is published.
    """

    changes: tuple[Change, ...]
    check: Callable[[InterruptingStore, Collection[str]], None] | None = None
    form: str = "delta"


def rows(numbers: Iterable[int], target: WriteRequest = TABLE) -> pa.Table:
    """Rows that are told apart by `x`."""
    values = pa.array(sorted(numbers), pa.int64())
    return pa.table({"x": values, PAYLOAD.get(target.dataset, "v"): values})


def said(name: str) -> dict[str, str]:
    """What a commit says about the change that it is."""
    return {"change": name}


def numbers_in(state: State, uuid: str) -> list[int]:
    """The rows of a dataset, those that are there twice among them."""
    snapshot = state.snapshot(uuid)
    files = (state.store.open_read(key) for key in snapshot.files["key"].to_pylist())
    return sorted(x for file in files for x in pq.read_table(file)["x"].to_pylist())


def appending(target: WriteRequest, *numbers: int, name: str = "append") -> Change:
    """Rows are added."""

    def run(store: SteppingStore) -> None:
        build(store, rows(numbers, target), target, mode="append", history=said(name))

    return Change(name, run, {target.uuid: lambda old: (old or NO_ROWS) | {*numbers}})


def widening(number: int) -> Change:
    """A row is added with a column that is new."""
    target, name = WriteRequest("t", on_schema_change="append_new_columns"), f"widen {number}"

    def run(store: SteppingStore) -> None:
        new = rows((number,)).append_column(f"w{number}", pa.array([number], pa.int64()))
        build(store, new, target, mode="append", history=said(name))

    return Change(name, run, {"t": lambda old: (old or NO_ROWS) | {number}})


def rebuilding(target: WriteRequest, *numbers: int, name: str = "rebuild") -> Change:
    """Rows take the place of all others."""

    def run(store: SteppingStore) -> None:
        build(store, rows(numbers, target), target, history=said(name))

    return Change(name, run, {target.uuid: lambda old: frozenset(numbers)})


def computing(make: Callable[[Rows], Collection[int]], adds: bool, name: str) -> Change:
    """Rows are computed from those of the table, as by a statement that reads it."""

    def run(store: SteppingStore) -> None:
        def read() -> tuple[pa.Table, Reads]:
            state = resolve(store, TABLE.scope)
            return rows(make(frozenset(numbers_in(state, "t")))), Reads((Read(state, "t"),))

        target = replace(TABLE, mode="append" if adds else None, history=said(name))
        build_from(store, Source(read, True), target)

    def effect(old: Rows | None) -> Rows:
        new = frozenset(make(old or NO_ROWS))
        return (old or NO_ROWS) | new if adds else new

    return Change(name, run, {"t": effect})


def deleting(least: int, name: str = "delete") -> Change:
    """Rows go by a condition."""

    def run(store: SteppingStore) -> None:
        delete_from(Store.of(store), "t", f"x >= {least}", said(name))

    return Change(name, run, {"t": lambda old: frozenset(x for x in old or () if x < least)})


def changing_cube(
    name: str, change: Callable[[Transaction], None], effects: Mapping[str, Effect]
) -> Change:
    """A verb over several datasets, which finds something in some of them, or in none."""

    def run(store: SteppingStore) -> None:
        retry_transaction_on_conflict(Store.of(store), "c", change, said(name))

    return Change(name, run, effects, rests=True)


def deleting_cells(least: int, name: str = "delete cells", *datasets: str) -> Change:
    """Rows of a cube's datasets go by a condition, without names those of all."""
    return changing_cube(
        name,
        lambda changes: changes.delete(f"x >= {least}", datasets or None),
        {f"c++{item}": _below(least) for item in datasets or ("s", "e", "f")},
    )


def updating_cells(least: int, *numbers: int, name: str = "update cells") -> Change:
    """Rows of two datasets go by a condition, and others come to both."""
    targets = {"s": SEED, "e": EXTRA}

    def effect(old: Rows | None) -> Rows:
        return frozenset(x for x in old or () if x < least) | {*numbers}

    return changing_cube(
        name,
        lambda changes: changes.update(
            {item: rows(numbers, target) for item, target in targets.items()}, f"x >= {least}"
        ),
        {target.uuid: effect for target in targets.values()},
    )


def _below(least: int) -> Effect:
    return lambda old: None if old is None else frozenset(x for x in old if x < least)


def removing(name: str, *dataset: str) -> Change:
    """A table, or a dataset of a cube, is removed."""
    uuid = "++".join((name, *dataset))

    def run(store: SteppingStore) -> None:
        remove(store, name, *dataset, history=said("remove"))

    return Change("remove", run, {uuid: lambda old: None})


def staging(name: str, *parts: Body, effects: Mapping[str, Effect]) -> Change:
    """A staged run."""

    def run(store: SteppingStore) -> None:
        stage = StagedStore(store)
        try:
            for part in parts:
                part(stage)
        except BaseException:
            stage.close({})
            raise
        publish_stages([stage])

    return Change(name, run, effects)


def keeping_rows(name: str, run: Callable[[SteppingStore], object]) -> Change:
    """What changes no rows."""
    return Change(name, lambda store: run(store) and None)


def _drop_and_undrop(store: SteppingStore) -> None:
    remove(store, "t", history=said("again"))
    undrop(store, "t", history=said("again"))


def _compact(store: SteppingStore) -> None:
    found = find_compaction(resolve(store, TABLE.scope), "t")
    if found.files:
        compact(found, said("compact"))


def _same(old: Rows | None) -> Rows | None:
    return old


def _renamed(store: InterruptingStore, acknowledged: Collection[str]) -> None:
    """A renaming loses nothing, whatever comes to either name meanwhile."""
    states = {name: resolve(store, scope_of(name)) for name in ("t", "u")}
    found = {n: numbers_in(s, n) if n in s.datasets else [] for n, s in states.items()}
    both = [*found["t"], *found["u"]]
    assert {*FIRST} <= {*both}, found
    assert all(len(names) == len({*names}) for names in found.values()), found
    for name, number in (("to old", 51), ("to new", 52)):
        assert (number in both) == (name in acknowledged), (name, found)
    if "rename" in acknowledged:
        assert {*FIRST} <= {*found["u"]} and not {*FIRST} & {*found["t"]}, found
    else:
        assert {*FIRST} <= {*found["t"]}, found


SCENARIOS = {
    "appends": Scenario(
        tuple(appending(TABLE, number, name=f"append {number}") for number in (11, 12, 13))
    ),
    "computed rows": Scenario(
        (
            computing(lambda old: {max(old)}, False, "keep the greatest"),
            appending(TABLE, 12),
            computing(lambda old: {max(old) + 1}, True, "add the next"),
        )
    ),
    "changed rows": Scenario(
        (
            deleting(2),
            Change(
                "merge",
                lambda store: Store.of(store).write_table(
                    "t", rows((2, 20)), mode="merge", key="x"
                ),
                {"t": lambda old: (old or NO_ROWS) | {2, 20}},
            ),
            appending(TABLE, 21),
        )
    ),
    "new columns": Scenario((widening(91), widening(92), rebuilding(TABLE, 93))),
    "removals": Scenario((rebuilding(TABLE, 31), removing("t"), appending(TABLE, 32))),
    "a cube": Scenario((appending(SEED, 4), rebuilding(EXTRA, 2, 3), removing("c", "e"))),
    "a cube that grows": Scenario(
        (appending(SEED, 4), appending(SEED, 5, name="more"), appending(EXTRA, 6, name="extra"))
    ),
    "a cube's rows deleted": Scenario(
        (deleting_cells(4), appending(EXTRA, 6, name="extra"), appending(SEED, 5))
    ),
    "nothing to delete": Scenario(
        (
            deleting_cells(9),
            appending(EXTRA, 12, name="extra"),
            deleting_cells(10, "delete from one", "e"),
        )
    ),
    "a cube's rows updated": Scenario(
        (updating_cells(9, 7), appending(EXTRA, 12, name="extra"), deleting_cells(7))
    ),
    "a dataset that comes": Scenario(
        (deleting_cells(4), rebuilding(MORE, 3, 4), appending(EXTRA, 6, name="extra"))
    ),
    "a staged run that finds nothing": Scenario(
        (
            staging(
                "stage",
                changing_cube("stage", lambda c: c.delete("x >= 9", ["e"]), {}).run,
                rebuilding(MORE, 3, name="stage").run,
                effects={"c++e": _below(9), "c++f": lambda old: frozenset((3,))},
            ),
            appending(EXTRA, 12, name="extra"),
            appending(SEED, 5),
        )
    ),
    "a renaming": Scenario(
        (
            keeping_rows("rename", lambda store: rename(store, "t", "u", said("rename"))),
            appending(TABLE, 51, name="to old"),
            appending(WriteRequest("u"), 52, name="to new"),
        ),
        _renamed,
    ),
    "staged runs": Scenario(
        (
            staging(
                "stage",
                appending(TABLE, 41, name="stage").run,
                rebuilding(EXTRA, 1, 5, name="stage").run,
                effects={
                    "t": lambda old: (old or NO_ROWS) | {41},
                    "c++e": lambda old: frozenset((1, 5)),
                },
            ),
            appending(TABLE, 42),
            staging("again", _drop_and_undrop, effects={"t": _same}),
        )
    ),
    "clean-ups": Scenario(
        (
            keeping_rows("clean", lambda store: run_cleanup(store, TABLE.scope, NOTHING)),
            deleting(2),
            appending(TABLE, 61),
        )
    ),
    "publishing": Scenario(
        (
            keeping_rows(
                "publish", lambda store: publish_datasets(store, "t", history=said("publish"))
            ),
            keeping_rows("stop", lambda store: stop_publishing(store, "t", history=said("stop"))),
            appending(TABLE, 71),
        )
    ),
    "publishing as Iceberg": Scenario(
        (
            keeping_rows(
                "publish", lambda store: publish_datasets(store, "t", history=said("publish"))
            ),
            keeping_rows("stop", lambda store: stop_publishing(store, "t", history=said("stop"))),
            appending(TABLE, 72),
        ),
        form="iceberg",
    ),
    "commits as Iceberg": Scenario(
        (
            deleting(2),
            appending(TABLE, 73),
            keeping_rows("clean", lambda store: run_cleanup(store, TABLE.scope, NOTHING)),
        ),
        form="iceberg",
    ),
    "besides the rows": Scenario(
        (
            keeping_rows(
                "comment", lambda store: comment_on(store, "t", Comments("a"), said("comment"))
            ),
            keeping_rows("compact", _compact),
            appending(TABLE, 81),
        )
    ),
}


@cache
def prepared(form: str = "delta") -> Mapping[str, object]:
    """A table that is published, and a cube of two datasets."""
    store = InterruptingStore()
    build(store, rows(FIRST[:2]), TABLE)
    build(store, rows(FIRST[2:]), TABLE, mode="append")
    publish_datasets(store, "t", formats=(form,))
    build(store, rows(FIRST, SEED), SEED)
    build(store, rows(FIRST, EXTRA), EXTRA)
    build(store, rows((8,), SEED), SEED, mode="append")
    return store.objects


def interleave(scenario: Scenario, schedule: Schedule, count: int = 3) -> Run:
    """Run a scenario's first writers by a schedule, and check what comes of it.

    Raises:
        AssertionError: something does not hold.
    """
    changes = scenario.changes[:count]
    run = Run(dict(prepared(scenario.form)), schedule)
    published = _Published(run)
    run.seen = published
    spans: dict[str, tuple[int, int]] = {}
    bodies = [_spanning(change, spans) if change.rests else change.run for change in changes]
    raised = run.all(bodies)
    for error in raised:
        if error is not None and not isinstance(error, KtkError):
            raise AssertionError(f"{error!r}") from error
    assert published.backwards == [], published.backwards
    store = InterruptingStore(run.objects)
    acknowledged = {c.name for c, error in zip(changes, raised, strict=True) if error is None}
    if scenario.check is not None:
        scenario.check(store, acknowledged)
    else:
        _check_rows(store, changes, acknowledged, spans)
    _check_store(store)
    return run


def _spanning(change: Change, spans: dict[str, tuple[int, int]]) -> Body:
    """Note the versions of the cube between which a change was made."""

    def run(store: SteppingStore) -> None:
        first = version_of(store, cube_scope("c"))
        change.run(store)
        spans[change.name] = (first, version_of(store, cube_scope("c")))

    return run


def _check_rows(
    store: InterruptingStore,
    changes: Sequence[Change],
    acknowledged: Set[str],
    spans: Mapping[str, tuple[int, int]],
) -> None:
    """Each acknowledged change is in the log once, and the rows are what all of them make.

    One that left no entry found nothing to do at some version while it ran.
    """
    known = {change.name: change for change in changes}
    before, logged = InterruptingStore(prepared()), []
    versions: dict[int, dict[str, Rows | None]] = {}  # of the cube, the last scope
    for scope in (TABLE.scope, cube_scope("c")):
        base, head = resolve(before, scope), resolve(store, scope)
        model: dict[str, Rows | None] = {u: frozenset(numbers_in(base, u)) for u in base.datasets}
        versions = {base.version: dict(model)}
        for entry, _ in read_entries(store, scope, base.version, head.version):
            change = known.get(_name(entry.history))
            logged += [change.name] if change else []
            for uuid, effect in change.effects.items() if change else ():
                if scope_of(uuid) == scope:
                    model[uuid] = effect(model.get(uuid))
            versions[entry.version] = dict(model)
        wanted = {uuid: sorted(found) for uuid, found in model.items() if found is not None}
        found = {uuid: numbers_in(head, uuid) for uuid in head.datasets}
        assert found == wanted, (found, wanted, logged)
    rested = {name for name in acknowledged - {*logged} if known[name].rests}
    for name in rested:
        first, last = spans[name]
        seen = [versions[version] for version in range(first, last + 1)]
        effects = known[name].effects.items()
        assert any(
            all(effect(model.get(uuid)) == model.get(uuid) for uuid, effect in effects)
            for model in seen
        ), (name, seen)
    in_rows = {name for name in acknowledged if known[name].effects} - rested
    assert in_rows <= {*logged} <= {*acknowledged}, (logged, acknowledged)
    once = {name for name in logged if len(known[name].effects) < 2}
    assert all(logged.count(name) == 1 for name in once), logged


def _name(history: Mapping[str, str]) -> str:
    """Which change an entry is of; only the merge, through the library's face, says nothing."""
    return history.get("change", "merge")


def _check_store(store: InterruptingStore) -> None:
    """All that is live is there and published, and nothing is left of what was refused."""
    before, used = InterruptingStore(prepared()), set[str]()
    commits: set[str] = set()
    for name in ("t", "u", "c"):
        scope = cube_scope(name) if name == "c" else scope_of(name)
        state = resolve(store, scope)
        if state.datasets and state.version > resolve(before, scope).version:
            problems = check(store, name).problems
            assert problems == (), problems
        for entry, _ in read_entries(store, scope, 0, state.version):
            used |= {item.snapshot for item in entry.datasets.values()}
            commits.add(entry.commit)
        for uuid, item in state.datasets.items():
            assert item.entry is not None and not item.problem
            _check_delta(store, uuid, state.snapshot(uuid))
            _check_iceberg(store, uuid, state.snapshot(uuid))
    snapshots = [read_snapshot(store, key) for key in used if key in store.objects]
    needed = {key for item in snapshots for key in _files(item)}
    for key in store.objects:
        assert "/intent/" not in key, key
        is_file = ("/table/" in key and not key.endswith("_common_metadata")) or "/indices/" in key
        # Index files of an attempt that lost its slot are left to the clean-up.
        is_committed = any(commit in key for commit in commits)
        assert not is_file or is_committed or key in needed, f"left behind: {key}"


def _files(snapshot: Snapshot) -> Iterator[str]:
    yield from snapshot.files["key"].to_pylist()
    yield from snapshot.index_keys


def _check_delta(store: InterruptingStore, uuid: str, snapshot: Snapshot) -> None:
    """The versions of ours in a Delta log never go back; it is there if and only if it is to be."""
    folder = f"{uuid}/_delta_log/"
    entries = sorted(key for key in store.objects if key.startswith(folder) and "json" in key)
    assert bool(entries) == ("delta" in (snapshot.properties.get("publish") or ())), entries
    versions = []
    for key in entries:
        actions = [json.loads(line) for line in store.objects[key][0].splitlines()]
        versions += [action["txn"]["version"] for action in actions if "txn" in action]
    assert versions == sorted(versions), versions
    if entries:
        assert not read_log(store, uuid).broken


def _check_iceberg(store: InterruptingStore, uuid: str, snapshot: Snapshot) -> None:
    """The versions of ours in Iceberg metadata never go back, nor does what readers are shown."""
    folder = f"{uuid}/iceberg/metadata/"
    numbers = sorted(
        int(key.removeprefix(f"{folder}v").partition(".")[0])
        for key in store.objects
        if key.startswith(f"{folder}v") and key.endswith(".metadata.json")
    )
    is_published = "iceberg" in (snapshot.properties.get("publish") or ())
    assert bool(numbers) == is_published, numbers
    versions = []
    for number in numbers:
        found = json.loads(store.objects[f"{folder}v{number}.metadata.json"][0])
        current = found["current-snapshot-id"]
        [shown] = [item for item in found["snapshots"] if item["snapshot-id"] == current]
        versions.append(int(shown["summary"]["ktk.version"]))
    assert versions == sorted(versions), versions
    if is_published:
        assert numbers == [*range(1, len(numbers) + 1)], numbers
        assert int(store.objects[f"{folder}version-hint.text"][0]) == numbers[-1]


class _Published:
    """Watches published documents: none takes the place of a newer one."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.newest: dict[str, int] = {}
        self.backwards: list[str] = []

    def __call__(self, method: str, key: str) -> None:
        if method == "delete":
            for gone in key.split(","):
                self.newest.pop(gone, None)
        elif method in ("put", "put_if_absent", "replace") and key.endswith(
            "by-dataset-metadata.json"
        ):
            stamp = read_stamp(self.run.objects[key][0])
            version = stamp.version if stamp is not None else 0
            if version < self.newest.get(key, 1):
                self.backwards.append(f"{key}: {self.newest.get(key)}, then {version}")
            self.newest[key] = version
