"""Definitions of dbt sources for a store: tables, columns with types, and tests.

It writes only tests that the store's documents prove, so that all of them pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.cube.discovery import visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.format.common_metadata import is_pandas_index
from ktk_engine.log.scope import LogScope
from ktk_engine.snapshot.snapshot import NULLS_PREFIX, PARTITION_PREFIX, Snapshot
from ktk_engine.types.arrow_name import arrow_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.type_class import class_name

_NO_NAME = re.compile(r"\W", re.ASCII)
_HEADER = (
    "# Written by `ktk adopt --write-sources`, which overwrites what you change only with --yes.\n"
)
_JINJA = ("{{", "{%", "{#")
# Jinja makes line feeds of other ends of lines, even in literals.
_IN_LITERAL = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True)
class DescribedScope:
    """A cube or table for a source."""

    scope: LogScope
    snapshots: Mapping[str, Snapshot]  # its datasets by uuid
    specification: CubeSpecification | None  # None for a table, and without a seed dataset


def render_sources(name: str, store: str, scopes: Iterable[DescribedScope]) -> str:
    """Write the YAML of a source; the same store gives the same text.

    `store` is the path or address for `ktk_store`.
    """
    import yaml

    tables: list[dict[str, Any]] = []
    for described in sorted(scopes, key=lambda item: (item.scope.kind, item.scope.name)):
        tables += _tables(described, tables)
    source = {"name": _named(name, ()), "config": {"ktk_store": store}, "tables": tables}
    content = {"version": 2, "sources": _escaped([source])}
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    return _HEADER + text


def _tables(described: DescribedScope, before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A table for a cube, and one per dataset."""
    scope, specification = described.scope, described.specification
    taken = [table["name"] for table in before]
    tables = []
    if specification is not None:
        tables.append(_cube_table(described, specification, _named(scope.name, taken)))
    for uuid, snapshot in sorted(described.snapshots.items()):
        used = [*taken, *(table["name"] for table in tables)]
        name = _named(scope.dataset_id(uuid), ())
        if name in used:
            name = _named(uuid, used)
        keys = specification.shared_columns if specification else frozenset(snapshot.partition_keys)
        columns = [_column(snapshot, column, keys) for column in snapshot.schema.names]
        sound = not scope.cube and _is_compatible(snapshot)
        tables.append(_table(name, {"ktk_dataset": uuid}, sound, columns))
    return tables


def _table(
    name: str, config: dict[str, str], sound: bool, columns: list[dict[str, Any]]
) -> dict[str, Any]:
    tests = {"data_tests": ["cube_compatible"]} if sound else {}
    return {"name": name, "config": config, **tests, "columns": columns}


def _cube_table(
    described: DescribedScope, specification: CubeSpecification, name: str
) -> dict[str, Any]:
    datasets = {described.scope.dataset_id(u): item for u, item in described.snapshots.items()}
    seed = datasets[specification.seed_dataset]
    keys = [*specification.dimension_columns, *specification.partition_columns]
    columns = [_column(seed, key, keys, with_class=True) for key in keys]
    known = set(keys)
    for item in (seed, *(datasets[name] for name in sorted(datasets))):
        for column in visible_columns(item):
            if column not in known:
                columns.append(_column(item, column, ()))
                known.add(column)
    sound = all(_is_compatible(item) for item in datasets.values())
    return _table(name, {"ktk_cube": specification.prefix}, sound, columns)


def _column(
    snapshot: Snapshot, name: str, keys: Collection[str], with_class: bool = False
) -> dict[str, Any]:
    t = snapshot.schema.field(name).type
    tests: list[Any] = ["not_null"] if name in keys and _has_no_null(snapshot, name) else []
    if with_class:
        tests.append({"type_class": {"arguments": {"is": class_name(t)}}})
    return {
        "name": name,
        # dbt's own tests put a name into their SQL as it is.
        **({} if readable_identifier(name) == name else {"quote": True}),
        "data_type": arrow_name(t),
        **({"data_tests": tests} if tests else {}),
    }


def _has_no_null(snapshot: Snapshot, name: str) -> bool:
    """Whether a column is known to have a value in every row."""
    files = snapshot.file_table
    if name in snapshot.partition_keys:
        return not snapshot.file_column(PARTITION_PREFIX + name).null_count
    if NULLS_PREFIX + name not in files.column_names:
        return False
    nulls = snapshot.file_column(NULLS_PREFIX + name)
    return not nulls.null_count and not pc.sum(nulls).as_py()


def _is_compatible(snapshot: Snapshot) -> bool:
    """Whether every file is known to have the classes of the dataset's columns."""
    if snapshot.file_column("physical").null_count:
        return False
    required = {*snapshot.dimension_columns, *snapshot.with_index} - set(snapshot.partition_keys)
    return all(
        required <= set(physical.names) and not any(_contradictions(snapshot, physical))
        for physical in snapshot.physical_schemas
    )


def _contradictions(snapshot: Snapshot, physical: pa.Schema) -> Iterator[str]:
    for field in physical:
        if field.name not in snapshot.schema.names:
            if not (is_pandas_index(field.name) or field.name in snapshot.left_out):
                yield field.name
        elif not pat.is_null(field.type):
            committed = snapshot.schema.field(field.name).type
            if mismatch(committed, field.type, field.name) is not None:
                yield field.name


def _named(name: str, taken: Collection[str]) -> str:
    """A unique name for dbt."""
    plain = wanted = _NO_NAME.sub("_", name)
    number = 1
    while wanted in taken:
        number += 1
        wanted = f"{plain}_{number}"
    return wanted


def _escaped(content: Any) -> Any:
    """Escape the texts that dbt would read as templates, wherever they are."""
    if isinstance(content, dict):
        return {_escaped(key): _escaped(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_escaped(item) for item in content]
    return _plain(content) if isinstance(content, str) else content


def _plain(text: str) -> str:
    if not any(sign in text for sign in _JINJA):
        return text
    return f"{{{{ '{text.translate(_IN_LITERAL)}' }}}}"
