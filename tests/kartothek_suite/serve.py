"""Does with `ktk_engine` what the cases of Kartothek's suite ask for; one JSON line a request.

The cases run on Python 3.8 (`kartothek_driver.py`), where the engine does not. Each request names
a verb, a store and arguments; frames are files of Arrow, from which pandas frames are made again.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any

import pandas as pd
import pyarrow as pa

from ktk_engine import Store
from ktk_engine.api import Cube
from ktk_engine.errors import KtkError
from ktk_engine.maintain.cleanup import scope_to_clean  # deep: as the command does
from tests.support.changes import Retention, remove, run_cleanup
from tests.support.documents import CubeSpecification

Request = dict[str, Any]


def build(store: Store, request: Request) -> list[str]:
    frames = _frames(request["data"])
    store.build(
        request["cube"]["uuid_prefix"],
        frames,
        dimension_columns=request["cube"]["dimension_columns"],
        partition_by=request["cube"]["partition_columns"],
        seed=request["cube"]["seed_dataset"],
        indexes=_indexes(request, frames),
        suppress_index_on=request["cube"]["suppress_index_on"],
        partition_on=request["partition_on"],
        metadata=request["metadata"],
        overwrite=request["overwrite"],
    )
    return list(frames)


def extend(store: Store, request: Request) -> list[str]:
    frames = _frames(request["data"])
    _cube(store, request).extend(
        frames,
        partition_on=request["partition_on"],
        indexes=_indexes(request, frames),
        metadata=request["metadata"],
        overwrite=request["overwrite"],
    )
    return list(frames)


def append(store: Store, request: Request) -> list[str]:
    frames = _frames(request["data"])
    _cube(store, request).append(frames, metadata=request["metadata"])
    return list(frames)


def update(store: Store, request: Request) -> list[str]:
    """Without conditions Kartothek takes nothing out; ours would take everything."""
    frames, where, names = _frames(request["data"]), _where(request), request["datasets"]
    with _cube(store, request).transaction() as changes:
        if where is not None and names:
            changes.remove_partitions(where, names)
        changes.append(frames, metadata=request["metadata"])
    return list(names)


def remove_partitions(store: Store, request: Request) -> None:
    _cube(store, request).remove_partitions(_where(request), request["datasets"])


def query(store: Store, request: Request) -> list[str]:
    """Answer with files of Arrow, one a group."""
    payload = request["payload_columns"]
    asked = _cube(store, request).query(
        where=_where(request),
        dimension_columns=_sequence(request["dimension_columns"]),
        partition_by=_sequence(request["partition_by"]),
        payload_columns="*" if payload is None else payload,
        datasets=request["datasets"],
    )
    if asked.plan.partition_by:
        tables = [table for _, table in asked.iter_groups(engine="local")]
    else:
        tables = [asked.to_arrow(engine="local")]
    paths = []
    for table in tables:
        if table.num_rows:
            paths.append(f"{request['scratch']}-{len(paths)}.arrow")
            with pa.OSFile(paths[-1], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    return paths


def stats(store: Store, request: Request) -> dict[str, dict[str, int]]:
    found = _cube(store, request).stats(request["datasets"])
    return {
        name: {"blobsize": a.bytes, "files": a.files, "partitions": a.partitions, "rows": a.rows}
        for name, a in found.items()
    }


def delete(store: Store, request: Request) -> None:
    name, datasets = request["cube"]["uuid_prefix"], request["datasets"]
    if datasets is None:
        remove(store._store, name, cascade=True)
    else:
        _cube(store, request).drop(*datasets)


def cleanup(store: Store, request: Request) -> None:
    """Clean up with no mercy for old versions: Kartothek knows none."""
    scope = scope_to_clean(store._store, request["cube"]["uuid_prefix"])
    run_cleanup(store._store, scope, Retention(timedelta(0), 1))


def copy(store: Store, request: Request) -> None:
    _cube(store, request).copy_to(
        Store(request["target"]),
        request["name"] or "",
        datasets=request["datasets"],
        rename=request["rename"],
        overwrite=request["overwrite"],
    )


VERBS = {
    "build": build,
    "extend": extend,
    "append": append,
    "update": update,
    "remove": remove_partitions,
    "query": query,
    "stats": stats,
    "delete": delete,
    "cleanup": cleanup,
    "copy": copy,
}


def _cube(store: Store, request: Request) -> Cube:
    """Open a cube as its users do; as the caller describes it where the store cannot tell."""
    described = request["cube"]
    name = described["uuid_prefix"]
    try:
        return store.cube(name)
    except KtkError:
        specification = CubeSpecification(
            name,
            tuple(described["dimension_columns"]),
            tuple(described["partition_columns"]),
            described["seed_dataset"],
            frozenset(described["index_columns"]),
            frozenset(described["suppress_index_on"]),
        )
        return store.cube(name, specification)


def _indexes(request: Request, frames: dict[str, Any]) -> list[str]:
    """Columns that a dataset has: Kartothek's cubes also name some that none has."""
    frames = {name: parts for name, parts in frames.items() if isinstance(parts, list)}
    known = {column for parts in frames.values() for part in parts for column in part.columns}
    return [column for column in request["cube"]["index_columns"] if column in known]


def _frames(data: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    found = {}
    for name, parts in data.items():
        frames = [_frame(part) for part in parts]
        one = len(frames) == 1 and not isinstance(frames[0], pd.DataFrame)
        found[name] = frames[0] if one else frames
    return found


def _frame(part: dict[str, Any]) -> Any:
    """A frame as the case has it, or what it has instead of one."""
    if part["type"] == "Series":
        return pd.Series(range(10))
    with pa.OSFile(part["path"], "rb") as source:
        frame = pa.ipc.open_file(source).read_all().to_pandas()
    if part["type"] == "sparse":
        frame = frame.astype({name: pd.SparseDtype(frame.dtypes[name]) for name in frame.columns})
    frame.columns = [name.encode() if kind == "bytes" else name for name, kind in part["columns"]]
    return frame


def _sequence(value: Any) -> Any:
    """Names in their order; in none, where the case gives a set."""
    return set(value["set"]) if isinstance(value, dict) else value


def _where(request: Request) -> str | None:
    """Conditions as the text that they are here."""
    if request["conditions"] is None:
        return None
    return " and ".join(_comparison(*item) for item in request["conditions"]) or None


def _comparison(column: str, sign: str, value: Any) -> str:
    if sign == "in":
        if not value:
            return "false"
        return f"`{column}` in ({', '.join(map(_literal, value))})"
    return f"`{column}` {'=' if sign == '==' else sign} {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value)


def answer(request: Request) -> dict[str, Any]:
    try:
        result = VERBS[request["verb"]](Store(request["store"]), request)
    except KtkError as error:
        return {"refused": [type(error).__name__, str(error)]}
    except Exception as error:  # noqa: BLE001 - the case fails by it, and says so
        return {"failed": [type(error).__name__, str(error)]}
    return {"result": result}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    os.fsync = lambda descriptor: None  # tested elsewhere
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
