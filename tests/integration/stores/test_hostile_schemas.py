"""Snapshots whose schema holds types and texts that no writer of this library puts there."""

import base64
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import FormatError
from tests.support.documents import digest
from tests.support.hostile_store import _vouch
from tests.support.stores import LocalStore


def torn(schema):
    """The bytes of a schema, with a text in it that is not UTF-8."""
    return schema.serialize().to_pybytes().replace(b"XXXX", b"\xff\xfe\xff\xfe")


def schema_of(t):
    return pa.schema([("a", t)]).serialize().to_pybytes()


SCHEMAS = {
    "zone": schema_of(pa.timestamp("us", "No/Such")),
    "zone in a list": schema_of(pa.list_(pa.timestamp("us", "No/Such"))),
    "zone of a path": schema_of(pa.timestamp("us", "../../etc/passwd")),
    "torn zone": torn(pa.schema([("a", pa.timestamp("us", "XXXX"))])),
    "torn name": torn(pa.schema([("a", pa.int64()), ("XXXX", pa.int64())])),
    "torn field": torn(pa.schema([("a", pa.struct([("XXXX", pa.int64())]))])),
    "view": schema_of(pa.string_view()),
    "runs": schema_of(pa.run_end_encoded(pa.int32(), pa.int64())),
    "union": schema_of(pa.dense_union([pa.field("x", pa.int8())])),
    "interval": schema_of(pa.month_day_nano_interval()),
    "list view": schema_of(pa.list_view(pa.int64())),
}


@pytest.mark.parametrize("place", ["schema", "physical_schemas"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_hostile_schema_is_a_format_error_that_names_the_snapshot(tmp_path, kind, place):
    store = LocalStore(tmp_path)
    Store.of(store).write_table("t", pa.table({"a": [1, 2]}))
    [file] = tmp_path.rglob("snapshots/*/t.parquet")
    table, before = pq.read_table(file), file.read_bytes()
    document = json.loads(table.schema.metadata[b"ktk"])
    text = base64.b64encode(SCHEMAS[kind]).decode()
    document[place] = text if place == "schema" else [text]
    metadata = {b"ktk": json.dumps(document).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), file)
    _vouch(store, digest(before), digest(file.read_bytes()))

    def query():
        return Store.of(store).table("t").query()

    for read in (lambda: query().to_arrow(), lambda: query().to_pandas()):
        if place == "schema" or kind.startswith("torn"):
            with pytest.raises(FormatError, match=r"Snapshot .*t\.parquet"):
                read()
        else:
            assert read() is not None
