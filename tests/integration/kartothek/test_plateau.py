"""plateau 4.6, the living fork of Kartothek's datasets: each reads what the other writes."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import TypeClassError
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from tests.support.committed import check
from tests.support.kartothek import needs_plateau, plateau

pytestmark = needs_plateau

WRITE = """
from decimal import Decimal
import datetime as dt

def frame(start, rows=3):
    numbers = range(start, start + rows)
    return pd.DataFrame({
        "p": ["a b" if n % 2 else "größe" for n in numbers], "x": list(numbers),
        "s": [None if n % 3 == 0 else f"t{n}" for n in numbers],
        "d": [Decimal("1.50") + n % 8 for n in numbers],
        "day": [dt.date(2020, 1, 1 + n) for n in numbers],
        "at": pd.to_datetime([f"2020-01-0{1 + n % 9} 10:00:00.123456" for n in numbers]),
        "z": pd.to_datetime([f"2020-01-0{1 + n % 9}" for n in numbers], utc=True),
        "c": pd.Categorical([f"c{n % 2}" for n in numbers]),
        "f": [float(n) for n in numbers], "b": [n % 2 == 0 for n in numbers],
    })

def write(uuid, start, **more):
    update_dataset_from_dataframes([frame(start)], store=store, dataset_uuid=uuid,
                                   partition_on=["p"], **more)
"""
READ = """
found = read_table(sys.argv[2], store=store)
found = found[sorted(found.columns)].sort_values("x").astype(str)
print(json.dumps(found.values.tolist()))
"""


def theirs(store, uuid):
    """Rows as plateau has them, in texts."""
    return plateau(store, READ, uuid)


def ours(store, uuid):
    """The same rows here; pandas' words for what it has no value for."""
    table = Store(store.root).table(uuid).query().to_arrow(engine="local")
    table = table.select(sorted(table.column_names)).sort_by("x")
    return [[_text(value) for value in row.values()] for row in table.to_pylist()]


def _text(value):
    if value is None:
        return "nan"
    text = str(value)
    return text.removesuffix(" 00:00:00") if text.endswith(" 00:00:00") else text


def same(store, uuid):
    found = [[_text(value) for value in row] for row in theirs(store, uuid)]
    found = [[value.replace(" 00:00:00+00:00", "") for value in row] for row in found]
    own = [[value.replace(" 00:00:00+00:00", "") for value in row] for row in ours(store, uuid)]
    assert found == own
    return len(own)


@pytest.fixture
def written(store):
    """Datasets of plateau: one with indexes, one whose table is called `core`, one msgpack."""
    store.root.mkdir()
    plateau(
        store,
        WRITE
        + """
write("plain", 0, secondary_indices=["x", "s", "day"])
store_dataframes_as_dataset(store=store, dataset_uuid="core", dfs=[frame(0)], table_name="core",
                            partition_on=["p"], secondary_indices=["x"])
store_dataframes_as_dataset(store=store, dataset_uuid="packed", dfs=[frame(0)],
                            metadata_storage_format="msgpack")
store_dataframes_as_dataset(store=store, dataset_uuid="spans", dfs=[
    frame(0).assign(span=pd.to_timedelta([1, 2, 3], unit="s"))], partition_on=["p"],
    secondary_indices=["at"])
""",
    )
    return store


def schemas(store, uuid):
    return {path.as_posix(): path.read_bytes() for path in store.root.glob(f"{uuid}/*/_common*")}


APPEND = {
    "plain": "write('plain', int(sys.argv[2]))",
    "core": "write('core', int(sys.argv[2]), table_name='core')",
    "packed": "update_dataset_from_dataframes([frame(int(sys.argv[2]))], store=store, "
    "dataset_uuid='packed')",
}


@pytest.mark.parametrize("uuid", APPEND)
def test_both_read_and_both_append(written, uuid):
    assert same(written, uuid) == 3
    before = schemas(written, uuid)
    run_adoption(plan_adoption(written, uuid))
    assert schemas(written, uuid) == before and same(written, uuid) == 3
    assert not check(written, uuid, deep=True).problems
    table = Store(written.root).table(uuid)
    first = table.query().to_arrow(engine="local")
    for condition in ("s = 't1'", "at >= timestamp '2020-01-02 00:00:00'", "p = 'a b'"):
        assert table.query(where=condition).to_arrow(engine="local").num_rows
    plateau(written, WRITE + APPEND[uuid], 3)
    assert same(written, uuid) == 6
    moved = first.set_column(first.column_names.index("x"), "x", pa.array([6, 7, 8]))
    Store(written.root).write_table(uuid, moved, mode="append")
    assert schemas(written, uuid) == before and same(written, uuid) == 9
    plateau(written, WRITE + APPEND[uuid], 9)
    assert same(written, uuid) == 12
    table = Store(written.root).table(uuid)
    assert table.query(where="x = 10").to_arrow(engine="local").num_rows == 1
    table.compact()
    assert schemas(written, uuid) == before and same(written, uuid) == 12
    assert not check(written, uuid, deep=True).problems


def test_plateau_reads_and_appends_to_what_is_written_here(store):
    table = pa.table(
        {
            "p": ["a", "b"],
            "x": [1, 2],
            "s": ["u", None],
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
            "f": [0.5, None],
        }
    )
    Store(store.root).write_table("t", table, partition_by=["p"], indexes=["x"])
    found = plateau(
        store,
        """
print(json.dumps([
    read_table("t", store=store, predicates=[[("x", "==", 2)]])["p"].tolist(),
    sorted(DatasetFactory("t", store).load_all_indices().indices),
    float(read_table("t", store=store)["d"].dropna().iloc[0])]))
""",
    )
    assert found == [["b"], ["p", "x"], 1.5]
    # Text of pandas 3 is large_string there, and Kartothek reads string alone.
    plateau(
        store,
        """
new = pd.DataFrame({"p": ["a"], "x": [3], "s": ["v"], "d": [None], "f": [2.5]})
new = new.astype({"p": object, "s": object, "d": object})
update_dataset_from_dataframes([new], store=store, dataset_uuid="t", partition_on=["p"],
                               secondary_indices=["x"])
""",
    )
    found = Store(store.root).table("t").query(where="x = 3").to_arrow(engine="local").to_pylist()
    assert found == [{"p": "a", "x": 3, "s": "v", "d": None, "f": 2.5}]
    Store(store.root).write_table("t", table.slice(0, 1), mode="append")
    plateau(store, "update_dataset_from_dataframes(None, store=store, dataset_uuid='t', "
            "delete_scope=[{'p': 'b'}])")  # fmt: skip
    left = Store(store.root).table("t").query(["x"]).to_arrow(engine="local")
    assert sorted(left["x"].to_pylist()) == [1, 1, 3]
    assert not check(store, "t").problems


def test_durations_are_left_out_and_stay_with_plateau(written):
    table = Store(written.root).table("spans")
    # Its index holds nanoseconds. plateau itself cannot append to one of times with pandas 3.
    at = table.query(where="at = timestamp '2020-01-02 10:00:00.123456'").to_arrow(engine="local")
    assert at["x"].to_pylist() == [1]
    assert "span" not in table.schema.names and len(ours(written, "spans")) == 3
    (item,) = plan_adoption(written, "spans").datasets
    assert any("span is left out" in note for note in item.notes)
    before = schemas(written, "spans")
    run_adoption(plan_adoption(written, "spans"))
    with pytest.raises(TypeClassError, match="span"):
        table.delete("x = 1")
    assert schemas(written, "spans") == before
    spans = plateau(
        written,
        'print(json.dumps(sorted(read_table("spans", store=store)["span"].astype(str))))',
    )
    assert spans == [f"0 days 00:00:0{n}" for n in (1, 2, 3)]


def test_names_of_types_in_their_files(written):
    """What this module is about: pandas 3 writes large text, in schemas and in indexes."""
    assert pq.read_schema(written.root / "plain/table/_common_metadata").field("s").type == (
        pa.large_string()
    )
    (index,) = written.root.glob("plain/indices/s/*")
    assert pq.read_schema(index).field("s").type == pa.large_string()
