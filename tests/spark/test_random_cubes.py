"""Random cubes and queries give the same rows as plain pandas joins, in Python and in SQL."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass, field
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.ktk.cube_query import cube_query_text
from ktk_engine.facade import Store
from ktk_engine.format.view import ViewDocument, render_view, view_key
from ktk_engine.operations.build import build
from ktk_engine.operations.keeping import Keeping
from ktk_engine.operations.target import Target
from ktk_engine.spark.sql_session import SqlSession
from ktk_engine.store.local import LocalStore

# A few values of each class, so that cells meet and conditions hit.
CLASSES = {
    pa.int64(): [-1, 0, 2**53 + 1],
    pa.uint64(): [0, 7, 2**64 - 1],
    pa.float64(): [-0.5, 0.0, 1e300],
    pa.string(): ["a", "b c", "ü/%"],
    pa.binary(): [b"", b"\x00", b"z\xff"],
    pa.bool_(): [False, True],
    pa.date32(): [datetime.date(2024, 2, 29), datetime.date(2025, 1, 1)],
    pa.timestamp("us"): [datetime.datetime(2025, 1, 1), datetime.datetime(2025, 1, 1, 0, 0, 0, 1)],
    pa.decimal128(38, 2): [Decimal("-1.25"), Decimal("0.00")],
}
KEYS = [t for t in CLASSES if not pa.types.is_floating(t) and not pa.types.is_decimal(t)]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


@dataclass
class Dataset:
    """One dataset of a random cube: its files in the order of writing."""

    name: str
    dimensions: list[str]
    partitions: list[str]
    payload: str
    types: dict[str, pa.DataType]
    parts: list[pd.DataFrame] = field(default_factory=list)

    @property
    def address(self) -> list[str]:
        return [*self.partitions, *self.dimensions]

    def rows(self) -> pd.DataFrame:
        whole = pd.concat(self.parts, ignore_index=True)
        return whole.drop_duplicates(self.address, keep="last")


@st.composite
def datasets(draw) -> list[Dataset]:
    dimensions = [f"d{i}" for i in range(draw(st.integers(1, 4)))]
    partitions = [f"p{i}" for i in range(draw(st.integers(0, 2)))]
    types = {name: draw(st.sampled_from(KEYS)) for name in (*dimensions, *partitions)}
    found = []
    for number in range(draw(st.integers(2, 4))):
        own, keys = dimensions, partitions
        if number:
            own = draw(st.lists(st.sampled_from(dimensions), min_size=1, unique=True).map(sorted))
            keys = draw(st.sampled_from([partitions, []]))
        payload = f"v{number}"
        kinds = {**types, payload: draw(st.sampled_from(list(CLASSES)))}
        dataset = Dataset(f"e{number}" if number else "seed", own, keys, payload, kinds)
        for _ in range(draw(st.integers(1, 2))):
            dataset.parts.append(draw(frames(dataset)))
        found.append(dataset)
    return found


@st.composite
def frames(draw, dataset: Dataset) -> pd.DataFrame:
    cells = list(itertools.product(*(CLASSES[dataset.types[c]] for c in dataset.address)))
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=12, unique=True))
    values = [None, *CLASSES[dataset.types[dataset.payload]]]
    payload = [draw(st.sampled_from(values)) for _ in chosen]
    columns = {c: [cell[i] for cell in chosen] for i, c in enumerate(dataset.address)}
    return pd.DataFrame({**columns, dataset.payload: payload}, dtype=object)


def arrow(dataset: Dataset, part: pd.DataFrame) -> pa.Table:
    return pa.table({c: pa.array(list(part[c]), dataset.types[c]) for c in part.columns})


def write(store: LocalStore, cube: list[Dataset]) -> None:
    for dataset in cube:
        role = "seed" if dataset.name == "seed" else "enrichment"
        target = Target(
            dataset.name, role, "c", tuple(dataset.dimensions), tuple(dataset.partitions)
        )
        for number, part in enumerate(dataset.parts):
            build(
                store, arrow(dataset, part), target, keeping=Keeping("append") if number else None
            )
    names = tuple(dataset.name for dataset in cube)
    store.put(view_key("c"), render_view(ViewDocument("c", "cube", cube="c", datasets=names)))


def joined(cube: list[Dataset]) -> pd.DataFrame:
    seed, *others = cube
    whole = seed.rows()
    for other in others:
        whole = whole.merge(other.rows(), how="left", on=other.address)
    return whole.astype(object).where(whole.notna(), None)


def literal(value: object, t: pa.DataType) -> str:
    from ktk_engine.types.quote import quote_literal

    return quote_literal(pa.scalar(value, t))


@st.composite
def conditions(draw, cube: list[Dataset]):
    """A condition as SQL and as a function of a row: true, false or None for unknown."""
    types = {c: t for dataset in cube for c, t in dataset.types.items()}
    names = sorted(c for dataset in cube for c in (*dataset.address, dataset.payload))
    name = draw(st.sampled_from(names))
    t = types[name]
    kind = draw(st.sampled_from(["compare", "null", "in"]))
    if kind == "null":
        return f"`{name}` is null", lambda row: row[name] is None
    if kind == "in":
        values = draw(st.lists(st.sampled_from(CLASSES[t]), min_size=1, max_size=2, unique=True))
        text = ", ".join(literal(value, t) for value in values)
        return (
            f"`{name}` in ({text})",
            lambda row: None if row[name] is None else row[name] in values,
        )
    op, value = draw(st.sampled_from(OPERATORS)), draw(st.sampled_from(CLASSES[t]))

    def compare(row):
        if row[name] is None:
            return None
        left = row[name]
        return {
            "=": left == value,
            "!=": left != value,
            "<": left < value,
            "<=": left <= value,
            ">": left > value,
            ">=": left >= value,
        }[op]

    return f"`{name}` {op} {literal(value, t)}", compare


@st.composite
def questions(draw):
    cube = draw(datasets())
    one, other = draw(conditions(cube)), draw(conditions(cube))
    match draw(st.sampled_from(["none", "one", "and", "or", "not"])):
        case "none":
            return cube, None, lambda row: True
        case "one":
            return cube, one[0], lambda row: one[1](row) is True
        case "and":
            return (
                cube,
                f"{one[0]} and {other[0]}",
                lambda row: one[1](row) is True and other[1](row) is True,
            )
        case "or":
            return (
                cube,
                f"{one[0]} or {other[0]}",
                lambda row: one[1](row) is True or other[1](row) is True,
            )
    return cube, f"not ({one[0]})", lambda row: one[1](row) is False


def comparable(rows) -> list[tuple]:
    found = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in rows]
    return sorted(found, key=repr)


@pytest.mark.filterwarnings("ignore")
@given(question=questions())
@settings(
    max_examples=8,
    phases=[Phase.generate],  # a smaller example would cost minutes
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_all_ways_of_asking_agree_with_plain_joins(spark, sql, tmp_path_factory, question):
    cube, where, holds = question
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    session = SqlSession(sql.session, lambda name: store if name == "an" else None, sql.scratch)
    whole = joined(cube)
    columns = list(whole.columns)
    kept = [row for row in whole.to_dict("records") if holds(row)]
    expected = comparable([row[c] for c in columns] for row in kept)
    query = Store(store.root).cube("c").query(columns, where)
    table = query.to_arrow(spark)
    assert comparable(tuple(row.values()) for row in table.to_pylist()) == expected, where
    text = cube_query_text("an.c", columns, where, None, None, ())
    answer = in_classes(session.sql(text).toArrow(), query.plan)
    assert comparable(tuple(row.values()) for row in answer.to_pylist()) == expected, where
    # Fewer dimensions: the distinct cells of what is left.
    first = cube[0].dimensions[:1]
    address = [*first, *cube[0].partitions]
    cells = comparable({tuple(row[c] for c in address) for row in kept})
    if all(d.payload not in (where or "") or set(d.dimensions) <= set(first) for d in cube):
        fewer = Store(store.root).cube("c").query(address, where, dimension_columns=first)
        table = fewer.to_arrow(spark)
        assert comparable(tuple(row.values()) for row in table.to_pylist()) == cells, where


def in_classes(table: pa.Table, plan) -> pa.Table:
    from ktk_engine.spark.collect import in_containers

    return in_containers(table, plan)
