"""A year of a team with Kartothek, plateau and dbt on one store: rows are right at every step."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt

from ktk_engine import Store
from ktk_engine.cli.main import main
from tests.functional.relations import rows, store_of
from tests.support.kartothek import kartothek, needs_kartothek, needs_plateau, plateau
from tests.support.stores import grow_old

pytestmark = [needs_kartothek, needs_plateau]

# What both programs write: a partition a month, text with and without values, decimals, days.
FRAME = """
from decimal import Decimal
import datetime as dt

def ledger(month, first, count=3, text=object):
    ids = list(range(first, first + count))
    return pd.DataFrame({
        "p": pd.Series(["m%02d" % month] * count, dtype=text), "id": ids,
        "note": pd.Series([None if i % 3 == 0 else "n%d" % i for i in ids], dtype=text),
        "amount": [Decimal("1.25") + i % 5 for i in ids],
        "day": [dt.date(2025, month, 1 + i % 5) for i in ids]})

def cells(month, first, count=3):
    ids = list(range(first, first + count))
    return pd.DataFrame({"p": ["m%02d" % month] * count, "id": ids, "v": [i / 2 for i in ids],
                         "kind": ["k%d" % (i % 2) for i in ids]})

def update(name, frame, **more):
    update_dataset_from_dataframes([frame], store=STORE, dataset_uuid=name, partition_on=["p"],
                                   secondary_indices=["id"], **more)
"""
IN_KARTOTHEK = (
    FRAME
    + """
from functools import partial
from kartothek.io.eager import update_dataset_from_dataframes
STORE = partial(get_store_from_url, "hfs://" + sys.argv[1])
shop = Cube(dimension_columns=["id"], partition_columns=["p"], uuid_prefix="shop",
            seed_dataset="cells", index_columns=["kind"])
"""
)
IN_PLATEAU = FRAME + "\nSTORE = store\n"
READ = """
found = {}
for name in json.loads(sys.argv[2]):
    frame = read_table(name, store=STORE%s)
    found[name] = sorted([int(r.id), r.p, r.note if isinstance(r.note, str) else None,
                          str(r.amount), str(r.day)[:10]] for r in frame.itertuples())
"""
READ_CUBE = """
cube, _ = discover_cube("shop", STORE)
frames = query_cube(cube, store)
frame = pd.concat(frames).astype(object)
frame = frame.where(frame.notnull(), None)
found["shop"] = sorted(
    [[int(r["id"]), r["p"], float(r["v"]), r["kind"],
      *(None if c not in frame or r[c] is None else float(r[c]) for c in ("w", "late"))]
     for r in frame.to_dict("records")])
"""
MODELS = {
    # Extends Kartothek's cube, one row a cell of its seed dataset.
    "extra.sql": """{{ config(materialized='cube_enrichment', cube='shop', dataset='extra',
        dimension_columns=['id'], partition_by=['p']) }}
        select p, id, v * 10 as w from {{ source(target.schema, 'cells') }}""",
    # Follows a dataset of Kartothek's, and one of plateau's.
    "totals.sql": """{{ config(materialized='table') }}
        select 'ledger' as what, count(*) as n, sum(amount) as total
        from {{ source(target.schema, 'ledger') }}
        union all select 'stock', count(*), sum(amount)
        from {{ source(target.schema, 'stock') }}""",
}


def row(month, number):
    note = None if number % 3 == 0 else f"n{number}"
    amount, day = Decimal("1.25") + number % 5, f"2025-{month:02d}-{1 + number % 5:02d}"
    return [number, f"m{month:02d}", note, str(amount), day]


class Year:
    """The store, and the rows that it has to have."""

    def __init__(self, project):
        self.project, self.store = project, store_of(project)
        self.tables = {"ledger": {}, "stock": {}}
        self.cells, self.extra, self.late = {}, {}, {}

    def ktk(self, *words):
        done = CliRunner().invoke(main, ["--store", str(self.store.root), *words])
        assert done.exit_code == 0, (words, done.output)
        return done.output

    def kartothek(self, code):
        return kartothek(self.store, IN_KARTOTHEK + code)

    def plateau(self, code):
        return plateau(self.store, IN_PLATEAU + code)

    def added(self, name, month, first, count=3):
        self.tables[name] |= {n: row(month, n) for n in range(first, first + count)}

    def cells_added(self, month, first, count=3):
        new = range(first, first + count)
        self.cells |= {n: [n, f"m{month:02d}", n / 2, f"k{n % 2}"] for n in new}

    def append_here(self, name, month, first):
        self.added(name, month, first)
        new = [self.tables[name][n] for n in range(first, first + 3)]
        ids, months, notes, amounts, days = (list(column) for column in zip(*new, strict=True))
        table = pa.table(
            {
                "p": months,
                "id": ids,
                "note": pa.array(notes, pa.string()),
                "amount": pa.array(map(Decimal, amounts), pa.decimal128(5, 2)),
                "day": pa.array(days).cast(pa.date32()),
            }
        )
        Store(self.store.root).write_table(name, table, mode="append")

    def dropped(self, name, month):
        gone = f"m{month:02d}"
        known = self.cells if name == "shop" else self.tables[name]
        for number in [n for n, item in known.items() if item[1] == gone]:
            del known[number]

    def build(self):
        run_dbt(["build"])
        self.extra = {n: item[2] * 10 for n, item in self.cells.items()}
        found = {
            what: (n, total) for what, n, total in rows(self.project, "select * from {s}.totals")
        }
        for name, items in self.tables.items():
            total = sum((Decimal(item[3]) for item in items.values()), Decimal(0))
            assert found[name if name != "books" else "ledger"] == (len(items), total)

    def same(self, check=False):
        """Compare what all three readers find."""
        wanted = {name: sorted(items.values()) for name, items in self.tables.items()}
        # Kartothek 5.3 reads no large text, which plateau writes: its dataset has two readers.
        known = {name: items for name, items in wanted.items() if name != "stock"}
        cube = sorted([*c, self.extra.get(n), self.late.get(n)] for n, c in self.cells.items())
        found = kartothek(
            self.store,
            IN_KARTOTHEK + READ % ', table="table"' + READ_CUBE + "\nprint(json.dumps(found))",
            json.dumps([*known]),
        )
        assert found == {**known, "shop": cube}, "Kartothek"
        code = IN_PLATEAU + READ % "" + "\nprint(json.dumps(found))"
        found = plateau(self.store, code, json.dumps([*wanted]))
        assert found == wanted, "plateau"
        store = Store(self.store.root)
        for name, items in wanted.items():
            table = store.table(name).query(["id", "p", "note", "amount", "day"])
            ours = [list(item.values()) for item in table.to_arrow(engine="local").to_pylist()]
            assert sorted([*o[:3], str(o[3]), str(o[4])] for o in ours) == items, name
        ours = store.cube("shop").query().to_arrow(engine="local").to_pylist()
        keys = ("id", "p", "v", "kind", "w", "late")
        assert sorted([r.get(key) for key in keys] for r in ours) == cube
        for name in ("shop", *wanted) if check else ():
            self.ktk("check", name, "--deep")


class TestYear:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    def test_rows_are_right_at_every_step(self, project):
        year = Year(project)
        year.store.root.mkdir(parents=True, exist_ok=True)

        # January: a cube and a dataset of Kartothek's, a dataset of plateau's.
        year.kartothek(
            "build_cube({'cells': cells(1, 1)}, shop, store)\n"
            "update('ledger', ledger(1, 1)); update('ledger', ledger(2, 4))"
        )
        year.plateau("update('stock', ledger(1, 1, text='str'))")
        year.cells_added(1, 1)
        year.added("ledger", 1, 1)
        year.added("ledger", 2, 4)
        year.added("stock", 1, 1)
        year.same()

        # February: taken over; what both compare when they append stays byte for byte.
        schemas = {path: path.read_bytes() for path in year.store.root.rglob("_common_metadata")}
        year.ktk("adopt", "--all", "--write-sources", f"{project.project_root}/models")
        assert schemas == {path: path.read_bytes() for path in schemas}
        year.same(check=True)

        # March: dbt extends the cube and reads the datasets.
        year.build()
        year.same(check=True)

        # April: Kartothek goes on with its cube, one of whose datasets is dbt's by now.
        year.kartothek(
            "append_to_cube({'cells': cells(4, 10)}, shop, store)\n"
            "late = cells(4, 10)[['p', 'id']].assign(late=[1.0, 2.0, 3.0])\n"
            "extend_cube({'late': late}, shop, store)"
        )
        year.cells_added(4, 10)
        year.late = {10: 1.0, 11: 2.0, 12: 3.0}
        year.same()

        # May: each program appends to its dataset, and so do we to both. (Where plateau has
        # appended, text is large, and Kartothek 5.3 neither reads nor appends any more.)
        year.plateau("update('stock', ledger(5, 20, text='str'))")
        year.kartothek("update('ledger', ledger(5, 30))")
        year.added("stock", 5, 20)
        year.added("ledger", 5, 30)
        year.append_here("ledger", 5, 40)
        year.append_here("stock", 5, 40)
        year.same(check=True)
        assert schemas == {path: path.read_bytes() for path in schemas}

        # June: dbt again, on what came since.
        year.build()
        year.same(check=True)

        # July: each deletes partitions.
        year.kartothek("remove_partitions(shop, store, C('p') == 'm01')")
        year.plateau(
            "update_dataset_from_dataframes(None, store=store, dataset_uuid='stock', "
            "delete_scope=[{'p': 'm01'}])"
        )
        year.dropped("shop", 1)
        year.dropped("stock", 1)
        Store(year.store.root).table("ledger").delete("p = 'm01'")
        year.dropped("ledger", 1)
        year.same(check=True)

        # August: small files are joined, and indexes are asked and built.
        for name in ("ledger", "stock"):
            Store(year.store.root).table(name).compact()
        Store(year.store.root).cube("shop").compact()
        year.same(check=True)
        by_index = (
            "print(json.dumps([int(n) for n in read_table('ledger', store=STORE%s, "
            "predicates=[[('id', '==', 41)]])['id']]))"
        )
        assert year.kartothek(by_index % ", table='table'") == [41]
        assert year.plateau(by_index % "") == [41]

        # September: what all that left is cleaned up.
        grow_old(year.store)
        year.ktk("cleanup", "--delete", "--older-than", "0d", "--keep-versions", "1")
        year.same(check=True)

        # October: another name, under which both go on.
        year.ktk("rename", "ledger", "books")
        year.tables["books"] = year.tables.pop("ledger")
        year.same(check=True)
        year.kartothek("update('books', ledger(10, 50))")
        year.added("books", 10, 50)
        year.append_here("books", 10, 70)
        year.same(check=True)

        # November: a bad append of Kartothek's is taken back; a removal, too.
        good = Store(year.store.root).table("books").version
        year.kartothek("update('books', ledger(11, 900))")
        year.ktk("adopt", "books")
        year.ktk("restore", "books", "--version", str(good))
        year.ktk("drop", "stock", "--yes")
        year.ktk("undrop", "stock")
        year.same(check=True)

        # December: everybody writes once more.
        year.kartothek("append_to_cube({'cells': cells(12, 80)}, shop, store)\n"
                       "update('books', ledger(12, 80))")  # fmt: skip
        year.plateau("update('stock', ledger(12, 80, text='str'))")
        year.cells_added(12, 80)
        year.added("books", 12, 80)
        year.append_here("books", 12, 90)
        year.added("stock", 12, 80)
        year.append_here("stock", 12, 90)
        year.same(check=True)
