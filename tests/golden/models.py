"""Models, snapshots and statements of dbt that change rows, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tests.golden.canonical import table
from tests.golden.changes import COLUMNS, Draws, Row, State, Storage, new_rows, state

DAY = datetime(2024, 1, 2)
MakeRows = Callable[[State], pa.Table]
_MERGE = {"incremental_strategy": "merge"}
_TABLE: Sequence[Storage] = ("table",)
_FIRST: Sequence[Storage] = ("table", "seed")
_IN_CUBES: Sequence[Storage] = ("seed", "enrichment")


def _columns(**instead: str) -> str:
    """All columns of a source as SQL, some as other expressions; an empty one leaves it out."""
    columns = {**{name: name for name in COLUMNS}, **instead}
    return ", ".join(
        name if text == name else f"{text} as {name}" for name, text in columns.items() if text
    )


def some_rows(before: State) -> pa.Table:
    return table(new_rows(before, 1))


@dataclass(frozen=True)
class Case:
    """A model.

    Attributes:
        name: what it is about.
        config: its configuration, besides what stores it.
        rows: makes what it selects from.
        select: what it selects.
        where: which of these rows.
        twice: whether there are two executors, which both answer.
        partitioned: whether it is laid out by `p`; None if its seed draws that.
        storages: what may store it.
        constraints: of columns.
        commits: how many write its state.
    """

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    rows: MakeRows = some_rows
    select: str = "*"
    where: str = ""
    twice: bool = False
    partitioned: bool | None = None
    storages: Sequence[Storage] = ("table", "seed", "enrichment")
    constraints: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    commits: int = 3

    def model(self, storage: Storage) -> str:
        return f"{storage}_{self.name}"

    def schema(self, storage: Storage) -> str:
        """What its schema's name ends with; writes look through all that a schema holds."""
        return storage if self in CHANGES else f"refused_{storage}"

    def state(self, storage: Storage) -> State:
        found = state(storage, Draws(self.name).below(1000), self.partitioned)
        return replace(found, parts=found.parts[: self.commits])

    def sql(self, storage: Storage) -> str:
        """The model's text."""
        config = {"materialized": "incremental", "indexes": ["i"], **self.config}
        config["schema"] = self.schema(storage)
        if self.state(storage).partitioned:
            config = {"partition_by": ["p"], **config}
        if storage == "table":
            if config.get("incremental_strategy") in ("merge", "delete+insert"):
                config = {"unique_key": ["k"], **config}
        else:
            names = {"cube": self.model(storage), "cube_role": storage, "dimension_columns": ["k"]}
            config = {**names, **config}
        if self.twice:
            config["tags"] = ["twice"]
        return (
            f"{{{{ config({', '.join(f'{key}={value!r}' for key, value in config.items())}) }}}}\n"
            f"select {self.select} from {INPUT}{f' where {self.where}' if self.where else ''}"
        )


# Each model reads a file of its name.
INPUT = "parquet.`{{ env_var('KTK_GOLDEN_INPUTS') }}/{{ this.name }}.parquet`"


def _on_one_day(before: State) -> pa.Table:
    return table(new_rows(before, 1, DAY))


def _is_new(row: Row) -> bool:
    return row["k"] is not None and row["k"] >= 20


def _fresh(before: State) -> list[Row]:
    return [row for row in new_rows(before, 1) if _is_new(row)]


def _fresh_of_stored(before: State) -> list[Row]:
    """New rows of keys that are there, which a predicate on small keys covers."""
    return [row for row in new_rows(before, 1) if row["k"] is not None and row["k"] <= 12]


def _keys(before: State) -> pa.Table:
    """Rows of which two have the key of one that is there."""
    rows = new_rows(before, 1)
    known = {row["k"] for row in before.rows}
    (again, *_) = (row for row in rows if row["k"] in known)
    return table([*rows, {**again, "i": 7, "s": "again"}])


def _conditions(**more: Any) -> dict[str, Any]:
    return {**_MERGE, "target_alias": "old", "source_alias": "new", **more}


CHANGES = [
    Case("append", {"incremental_strategy": "append"}),
    Case("overwrite", {"incremental_strategy": "insert_overwrite"}, partitioned=True),
    Case("merge", _MERGE, twice=True),
    Case("merge_by_place", {**_MERGE, "unique_key": ["p", "k"]}, twice=True, storages=_TABLE),
    Case(
        "merge_some",
        {**_MERGE, "merge_update_columns": ["f", "s"]},
        twice=True,
    ),
    Case(
        "merge_others",
        {**_MERGE, "merge_exclude_columns": ["f", "n"]},
        twice=True,
        storages=_TABLE,
    ),
    Case(
        "merge_fewer_columns",
        {**_MERGE, "on_schema_change": "append_new_columns"},
        select=_columns(s="", m="", more="'new'"),
        storages=_TABLE,
        twice=True,
    ),
    Case(
        "merge_where",
        {**_MERGE, "incremental_predicates": ["DBT_INTERNAL_DEST.i >= 0", "b is not null"]},
        storages=_TABLE,
    ),
    Case("delete_insert", {"incremental_strategy": "delete+insert"}, twice=True, storages=_FIRST),
    Case(
        "delete_insert_keys",
        {"incremental_strategy": "delete+insert", "unique_key": ["s"]},
        rows=lambda before: table(_fresh(before)),
        twice=True,
        storages=("table", "enrichment"),
    ),
    Case(
        "delete_insert_where",
        {
            "incremental_strategy": "delete+insert",
            "incremental_predicates": "DBT_INTERNAL_DEST.k <= 12",
        },
        rows=lambda before: table([*_fresh(before), *_fresh_of_stored(before)]),
        storages=_TABLE,
    ),
    Case(
        "replace_where",
        {"incremental_strategy": "replace_where", "incremental_predicates": ["k >= 8", "k < 24"]},
        where="k >= 8 and k < 24",
        storages=_FIRST,
    ),
    Case(
        "replace_where_payload",
        {"incremental_strategy": "replace_where", "incremental_predicates": ["i >= 0"]},
        rows=lambda before: table(_fresh(before)),
        where="i >= 0",
        storages=("enrichment",),
    ),
    Case(
        "microbatch",
        {
            "incremental_strategy": "microbatch",
            "event_time": "t",
            "batch_size": "day",
            "begin": "2024-01-01",
        },
        rows=_on_one_day,
    ),
    Case(
        "clauses",
        _conditions(
            matched_condition="old.i <> new.i or new.f is null",
            not_matched_condition="new.k <> 24",
            not_matched_by_source_condition="old.k < 3",
            not_matched_by_source_action="delete",
        ),
    ),
    Case(
        "clauses_update",
        _conditions(
            skip_not_matched_step=True,
            merge_update_columns=["s", "f"],
            not_matched_by_source_condition="old.b",
            not_matched_by_source_action="update set m = old.m + 1, s = 'gone'",
        ),
        rows=lambda before: table([row for row in new_rows(before, 1) if row["k"] != 25]),
        partitioned=True,
        storages=_TABLE,
    ),
]


def _with(**values: Any) -> MakeRows:
    """New rows, whose last one has a fault."""

    def rows(before: State) -> pa.Table:
        found = _fresh(before)
        return table([*found[:-1], {**found[-1], **values}])

    return rows


def _as_stored(before: State) -> pa.Table:
    """A new row with the key of one that is there, in another place."""
    (row, *_) = (row for row in before.rows if row["k"] is not None and row["i"] == -1)
    return table([row])


_CONTRACT = {"contract": {"enforced": True}, "on_schema_change": "fail"}
REFUSED = [
    replace(case, commits=1)
    for case in [
        Case("float_for_integer", _MERGE, select=_columns(i="double(k)"), twice=True),
        Case("string_for_key", _MERGE, select=_columns(k="string(k)"), twice=True),
        Case(
            "other_scale",
            select=_columns(m="cast(m as decimal(12, 3))"),
            storages=_FIRST,
        ),
        Case(
            "zone_for_none",
            select=_columns(t="cast(t as timestamp)"),
            storages=_FIRST,
        ),
        Case("missing_column", _MERGE, select=_columns(m="")),
        Case("further_column", _MERGE, select="*, 1 as more", storages=_TABLE),
        Case("no_place", _MERGE, rows=_with(p=None), partitioned=True, twice=True),
        Case("no_index", _MERGE, rows=_with(i=None), twice=True),
        Case("no_dimension", {"incremental_strategy": "append"}, rows=_with(k=None)),
        Case("keys_twice", _MERGE, rows=_with(k=23), partitioned=False, twice=True),
        Case(
            "float_keys_twice",
            {**_MERGE, "unique_key": "f"},
            rows=_with(f=0.0),
            where="true",
            storages=_TABLE,
        ),
        Case(
            "cells_twice",
            {"incremental_strategy": "append"},
            rows=lambda before: table([*_fresh(before), {**_fresh(before)[0], "i": 7}]),
        ),
        Case(
            "cells_taken",
            {**_MERGE, "unique_key": ["s"]},
            rows=_as_stored,
            select=_columns(s="'other'"),
            storages=_IN_CUBES,
            twice=True,
        ),
        Case(
            "cells_left_out",
            {**_MERGE, "incremental_predicates": ["i >= 0"]},
            rows=_as_stored,
            storages=_IN_CUBES,
        ),
        Case(
            "cells_beside",
            {"incremental_strategy": "replace_where", "incremental_predicates": ["i >= 0"]},
            rows=_as_stored,
            select=_columns(i="0L"),
            storages=_IN_CUBES,
        ),
        Case(
            "outside",
            {"incremental_strategy": "replace_where", "incremental_predicates": ["k >= 24"]},
            rows=_with(z=None, k=23),  # the message has it in the zone of this process
        ),
        Case("unread_predicate", {**_MERGE, "incremental_predicates": ["i > k"]}, storages=_TABLE),
        Case(
            "predicate_of_another_class",
            {**_MERGE, "incremental_predicates": ["s > 3"]},
            storages=_TABLE,
        ),
        Case(
            "predicate_of_no_column",
            {**_MERGE, "incremental_predicates": ["unknown = 1"]},
            storages=_TABLE,
        ),
        Case(
            "unknown_key",
            {**_MERGE, "unique_key": ["unknown"]},
            twice=True,
            storages=_FIRST,
        ),
        Case(
            "unknown_update",
            {**_MERGE, "merge_update_columns": ["f", "unknown"]},
            twice=True,
            storages=_FIRST,
        ),
        Case("other_layout", {**_MERGE, "partition_by": ["b"]}, partitioned=True),
        Case("nested_index", {**_MERGE, "indexes": ["n"]}, storages=_TABLE),
        Case(
            "no_event_time",
            {
                "incremental_strategy": "microbatch",
                "event_time": "unknown",
                "batch_size": "day",
                "begin": "2024-01-01",
            },
            storages=_FIRST,
        ),
        Case(
            "outside_of_batch",
            {
                "incremental_strategy": "microbatch",
                "event_time": "t",
                "batch_size": "day",
                "begin": "2024-01-01",
            },
            rows=_with(t=datetime(2024, 1, 7), z=None),
            where="t = timestamp_ntz '2024-01-07 00:00:00'",
        ),
        Case("clause_twice", _conditions(matched_condition="true"), rows=_keys),
        Case(
            "constraint_check",
            {**_MERGE, **_CONTRACT},
            rows=_with(k=99),
            storages=_TABLE,
            constraints={"k": [{"type": "check", "expression": "k < 90"}]},
        ),
        Case(
            "constraint_unique",
            {"incremental_strategy": "append", **_CONTRACT},
            rows=lambda before: table([before.rows[0], *_fresh(before)]),
            storages=_TABLE,
            constraints={"k": [{"type": "unique"}]},
            twice=True,
        ),
        Case(
            "constraint_not_null",
            {**_MERGE, **_CONTRACT},
            rows=_with(s=None),
            storages=_TABLE,
            constraints={"s": [{"type": "not_null"}]},
        ),
    ]
]


_SQL_TYPES = {
    "p": "string",
    "k": "bigint",
    "i": "bigint",
    "f": "double",
    "m": "decimal(10,2)",
    "s": "string",
    "d": "date",
    "t": "timestamp_ntz",
    "z": "timestamp",
    "b": "boolean",
    "n": "struct<x: bigint, y: array<string>>",
}


def contracts(cases: Sequence[Case]) -> dict[str, Any]:
    """What YAML says about models with constraints."""
    models = []
    for case in cases:
        if case.constraints:
            columns = [
                {"name": name, "data_type": kind, "constraints": case.constraints.get(name, [])}
                for name, kind in _SQL_TYPES.items()
            ]
            models.append({"name": case.model("table"), "columns": columns})
    return {"models": models}


SNAPSHOTS: dict[str, dict[str, Any]] = {
    "timestamp": {"strategy": "timestamp", "updated_at": "at"},
    "timestamp_invalidate": {
        "strategy": "timestamp",
        "updated_at": "at",
        "hard_deletes": "invalidate",
        "partition_by": ["p"],
    },
    "check": {"strategy": "check", "check_cols": ["i", "s", "f"]},
    "check_all": {
        "strategy": "check",
        "check_cols": "all",
        "hard_deletes": "new_record",
        "indexes": ["i"],
    },
    "current": {
        "strategy": "check",
        "check_cols": ["s", "d", "b"],
        "hard_deletes": "invalidate",
        "dbt_valid_to_current": "timestamp '9999-01-01 00:00:00'",
        "partition_by": ["p"],
    },
}
SNAPSHOT_SEED = 6
# dbt's time of a snapshot, in place of the clock's.
GET_TIME = """
{% macro ktk__snapshot_get_time() %}
  timestamp '{{ env_var('KTK_GOLDEN_TIME') }}'
{% endmacro %}
"""


# The cases of each storage.
SNAPSHOT_NAMES: list[tuple[Storage, str]] = [
    ("table", "timestamp_invalidate"),
    ("table", "check"),
    ("table", "check_all"),
    ("table", "current"),
    ("seed", "timestamp"),
    ("seed", "check_all"),
]


def snapshot_sql(name: str, storage: Storage) -> str:
    config = {"unique_key": "k", "schema": "versions", **SNAPSHOTS[name]}
    if storage == "seed":
        cube = {"cube": f"{storage}_{name}", "cube_role": "seed"}
        config |= {**cube, "dimension_columns": ["k", "dbt_scd_id"]}
    text = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return (
        f"{{% snapshot {storage}_{name} %}}\n{{{{ config({text}, tags=['twice']) }}}}\n"
        f"select * from {INPUT}\n{{% endsnapshot %}}"
    )


def snapshot_rows(step: int) -> pa.Table:
    """A source: in each step some rows change, some go, and some come, or come back."""
    base = state("seed", SNAPSHOT_SEED, True)
    first = datetime(2024, 3, 1, tzinfo=UTC)
    rows = {row["k"]: {**row, "at": first + timedelta(hours=row["k"])} for row in base.rows}
    for number in range(1, step + 1):
        draws = Draws("snapshot", number)
        changed, gone = draws.some(sorted(rows), 4), draws.some(sorted(rows), 2)
        for key in changed:
            place, at = rows[key]["p"], first + timedelta(days=number)
            rows[key] = {**draws.row(key, place), "at": at}
        for key in gone:
            del rows[key]
        for key in (30 + number, 40 + number):
            rows[key] = {**draws.row(key, "neu"), "at": first + timedelta(days=number)}
    return table(list(rows.values()), at=pa.timestamp("us", "UTC"))


SNAPSHOT_TIMES = [f"2024-06-0{1 + step} 00:00:00+00:00" for step in range(3)]


def refused_snapshot_rows(storage: Storage) -> pa.Table:
    """A source in which a new key comes twice, or one column has another class."""
    rows = snapshot_rows(2)
    if storage == "seed":
        return rows.set_column(rows.column_names.index("b"), "b", rows["k"])
    new = rows.slice(0, 1)
    new = new.set_column(new.column_names.index("k"), "k", pa.array([50]))
    return pa.concat_tables([rows, new, new])


# The one before the last changes nothing. Those of an enrichment are every other one.
STATEMENTS = [
    "delete from {t} where i = 7",
    "delete from {t} as x where x.s = 'b c' and not x.b or x.k in (select 3L)",
    "update {t} set s = upper(s), m = m + 1 where d is not null and f > 0",
    "update {t} as x set x.f = default, b = (x.i = 0) where x.k between 2 and 6",
    "update {t} set k = k + 100 where k in (5, 6, 7, 8)",
    "update {t} set n = named_struct('x', k, 'y', array(s)) where n is null",
    "merge into {t} as old using {s} as new on old.k = new.k and old.p = new.p "
    "when matched and new.b then update set * when matched and new.i < 0 then delete "
    "when not matched then insert *",
    "merge into {t} as old using (select k, p, s from {s} where k > 20) as new on old.k = new.k "
    "when matched then update set s = new.s "
    "when not matched and new.k <> 24 then insert (k, p, i, t) "
    "values (new.k + 1000, new.p, 7, timestamp_ntz '2024-01-01 00:00:00') "
    "when not matched by source and old.i < 0 then update set s = 'alone' "
    "when not matched by source and old.k = 2 then delete",
    "merge into {t} as old using {s} as new on old.s = new.s and old.p = new.p "
    "when matched then delete",
    f"insert into {{t}} ({_columns()}) select {_columns(k='k + 2000')} from {{s}} where k > 21",
    "delete from {t} where p = 'x=y'",
    "delete from {t} where upper(s) = 'NONE'",
    "delete from {t}",
]
_MATCH = "merge into {t} as old using {s} as new on old.k = new.k "
# `{one}` is a key that a row of the source and one of the table have.
REFUSED_STATEMENTS = [
    "update {t} set unknown = 1",
    "update {t} set k = 1, K = 2",
    "update {t} set n.x = 1",
    "delete from {t} where rand() > 2",
    "update {t} set p = null where k = 13",
    "update {t} set k = 12 where k = 13",
    f"{_MATCH} when matched then update set s = (select 'x')",
    "merge into {t} as old using (select * from {s} union all select * from {s} where k = {one}) "
    "as new on old.k = new.k when matched then update set i = new.i",
    "merge into {t} as old using (select k, p from {s}) as new on old.k = new.k "
    "when not matched then insert *",
    f"{_MATCH} when matched then update set unknown = 1",
    "merge into {t} as old using {s} as new on old.k = new.k + 1000 "
    "when not matched then insert (p, k, i) values ('a/b', 777, 7)",
    f"insert into {{t}} ({_columns()}) select {_columns(i='double(k)')} from {{s}}",
    "insert into {t} select p, k from {s}",
]
