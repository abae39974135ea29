"""The reference cases in `rejects/`: what the write functions refuse, and what they accept."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.cube.consistency import check_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConditionError, DatasetNotFoundError, KtkError, SpecificationError
from tests.corpus.decisions import PendingCommit, predict_write
from tests.corpus.outcome import Outcome
from tests.support.changes import WriteRequest, build, plan_removal
from tests.support.committed import cube_scope, resolve
from tests.support.stores import LocalStore

Frames = dict[str, pa.Table | None]


def run_rejects(path: Path) -> Iterator[Outcome]:
    """Judge every case of a folder.

    Args:
        path: a folder of the format of `rejects`.

    Yields:
        One outcome per case.
    """
    for file in sorted(path.glob("*/case.json")):
        case = json.loads(file.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            yield _judge(case, _Player(file.parent, LocalStore(Path(folder) / "store"), case))


def _judge(case: dict[str, Any], player: _Player) -> Outcome:
    """Play the calls and compare the last one's outcome with Kartothek's."""
    name = case["name"]
    try:
        for call in case["calls"][:-1]:
            player.play(call)
    except KtkError as error:
        return Outcome(name, "failed", f"an earlier call was refused: {error}")
    existing = player.datasets()
    error = player.attempt(case["calls"][-1])
    accepted = bool(case.get("accepted"))
    if (error is None) == accepted:
        lacking = "" if error is None else _unnamed(case, player, error)
        return Outcome(name, "failed" if lacking else "passed", lacking)
    predicted = predict_write(_facts(case, player, existing))
    if predicted.decisions and predicted.accepted == (error is None):
        return Outcome(name, "by decision", ", ".join(sorted(predicted.decisions)))
    ours = "accepted" if error is None else f"refused: {error}"
    return Outcome(name, "failed", f"{ours}; Kartothek: {case.get('expected_error', 'accepted')}")


class _Player:
    """Plays the calls of one case against a store of its own."""

    def __init__(self, folder: Path, store: LocalStore, case: dict[str, Any]) -> None:
        self.folder = folder
        self.store = store
        self.case = case
        self.columns: set[str] = set()
        self.last: list[tuple[str, pa.Table]] = []

    def attempt(self, call: dict[str, Any]) -> KtkError | None:
        """Play a call; give what refused it."""
        try:
            self.play(call)
        except KtkError as error:
            return error
        return None

    def datasets(self) -> dict[str, pa.Schema]:
        """Schemas of the committed datasets."""
        try:
            scope = cube_scope(str(self.case["cube"]["uuid_prefix"]))
            snapshots = resolve(self.store, scope).snapshots()
        except KtkError:
            return {}
        return {uuid.partition("++")[2]: item.schema for uuid, item in snapshots.items()}

    def play(self, call: dict[str, Any]) -> None:
        """Make a call of Kartothek's with our means."""
        cube = self.specification()
        if call["operation"] == "remove_partitions":
            self._remove(call, cube)
            return
        frames = self.frames(call)
        append = call["operation"] == "append"
        self.last = [(name, table) for name, table in frames.items() if table is not None]
        for name in sorted(frames, key=lambda name: name != cube.seed_dataset):
            table = frames[name]
            if table is not None:
                self._write(name, table, call, cube, append)

    def specification(self) -> CubeSpecification:
        """The cube as the case describes it."""
        given = self.case["cube"]
        return CubeSpecification(
            given["uuid_prefix"],
            given["dimension_columns"],
            given["partition_columns"],
            given.get("seed_dataset", "seed"),
            given.get("index_columns") or (),
            given.get("suppress_index_on") or (),
        )

    def frames(self, call: dict[str, Any]) -> Frames:
        """Load the frames of a call; several of one dataset become one."""
        parts: dict[str, list[pa.Table | None]] = {}
        data = call["data"] if isinstance(call["data"], list) else [call["data"]]
        for item in data:
            for name, source in item.items():
                parts.setdefault(name, []).append(self._frame(source))
        joined: Frames = {}
        for name, tables in parts.items():
            known = [table for table in tables if table is not None]
            joined[name] = _concatenated(known) if known else None
        return joined

    def _frame(self, source: Any) -> pa.Table | None:
        if source is None:
            return None
        names = source.get("columns") if isinstance(source, dict) else None
        file = source["file"] if isinstance(source, dict) else source
        table = _without_index(pq.ParquetFile(self.folder / file).read())
        for name in names or []:
            if not isinstance(name, str):
                raise SpecificationError(f"Column names must be texts, but one is {name!r}.")
        table = table.rename_columns(names) if names else table
        self.columns |= set(table.column_names)
        return table

    def _write(
        self,
        name: str,
        table: pa.Table,
        call: dict[str, Any],
        cube: CubeSpecification,
        append: bool,
    ) -> None:
        existing = self.datasets()
        if append and name not in existing:
            raise DatasetNotFoundError(f"Cube {cube.prefix} has no dataset {name} to append to.")
        seed = name == cube.seed_dataset
        keys = (call.get("partition_on") or {}).get(name, cube.partition_columns)
        if append:  # laid out as the dataset is
            scope = cube_scope(cube.prefix)
            keys = resolve(self.store, scope).snapshot(cube.uuid(name)).partition_keys
        # Without any the gate has to miss all of them.
        dimensions = _held(cube.dimension_columns, table) or cube.dimension_columns
        target = WriteRequest(
            name,
            "seed" if seed else "enrichment",
            cube.prefix,
            cube.dimension_columns if seed else dimensions,
            tuple(keys),
            _held(sorted(cube.index_columns), table, keys),
            tuple(sorted(cube.suppress_index_on)) if seed else (),
        )
        # An append is bound by the committed schema; a build of Kartothek's is a full refresh.
        build(self.store, table, target, full_refresh=not append)
        snapshots = resolve(self.store, cube_scope(cube.prefix)).snapshots()
        known = {uuid.partition("++")[2]: item for uuid, item in snapshots.items()}
        check_cube(cube.prefix, known, cube if cube.seed_dataset in known else None)

    def _remove(self, call: dict[str, Any], cube: CubeSpecification) -> None:
        """Partitions go by conditions on columns by which files are laid out (decision 13)."""
        for name in call.get("datasets") or self.datasets():
            plan_removal(self.store, cube.prefix, name, cascade=True)
        for condition in call.get("conditions") or []:
            if condition["column"] not in cube.partition_columns:
                raise ConditionError(
                    f"`{condition['column']}` is not a partition column of cube {cube.prefix}."
                )


def _facts(case: dict[str, Any], player: _Player, existing: dict[str, pa.Schema]) -> PendingCommit:
    """What the rules of the decisions may look at."""
    call = case["calls"][-1]
    return PendingCommit(
        operation=case["operation"],
        cube=str(case["cube"]["uuid_prefix"]),
        seed=case["cube"].get("seed_dataset", "seed"),
        partition_columns=tuple(case["cube"]["partition_columns"]),
        arguments=frozenset(call),
        existing=existing,
        frames={name: (table.schema, table.num_rows) for name, table in player.last},
        overwrite=bool(call.get("overwrite")),
        broken=not case.get("accepted") and not case["expected_error"]["deliberate"],
    )


def _unnamed(case: dict[str, Any], player: _Player, error: KtkError) -> str:
    """Check that a message names a column, where Kartothek's does or columns are at fault."""
    wanted = _words(case["expected_error"]["message"]) & player.columns
    findings = getattr(error, "findings", ())
    text = str(error)
    if findings:
        named = [column for item in findings for column in item.column.split(", ")]
        missing = [column for column in named if f"{column}" not in text]
        return f"the message lacks {missing}: {text}" if missing else ""
    if wanted and not player.columns & _words(text):
        return f"the message names none of {sorted(wanted)}: {text}"
    return ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text))


def _held(
    names: tuple[str, ...] | list[str], table: pa.Table, without: Any = ()
) -> tuple[str, ...]:
    return tuple(name for name in names if name in table.column_names and name not in without)


def _concatenated(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def _without_index(table: pa.Table) -> pa.Table:
    """Take out the columns of a frame's index, which are not columns of the frame."""
    raw = (table.schema.metadata or {}).get(b"pandas")
    index = json.loads(raw).get("index_columns", []) if raw else []
    names = [name for name in index if isinstance(name, str) and name in table.column_names]
    return table.drop_columns(names) if names else table
