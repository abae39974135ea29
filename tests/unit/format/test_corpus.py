import json

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.format.common_metadata import read_common_metadata, render_common_metadata
from ktk_engine.format.dataset_key import common_metadata_key, data_key, document_key
from ktk_engine.format.document import render_document
from ktk_engine.format.index_file import build_index, flatten_index, read_index, render_index
from ktk_engine.format.label import partition_path, partition_table
from ktk_engine.format.load_document import list_documents, load_document
from ktk_engine.format.percent_encoding import quote
from tests.support.queries import normalize


def documents(reference_cube):
    case, store = reference_cube
    prefix = case["cube"]["uuid_prefix"] + "++"
    for uuid in list_documents(store, prefix):
        yield uuid.removeprefix(prefix), load_document(store, uuid)


def test_documents(reference_cube):
    case, store = reference_cube
    found = dict(documents(reference_cube))
    assert set(found) == set(case["schema"])
    for dataset, document in found.items():
        assert len(document.partitions) == case["files"][dataset]
        assert list(document.partition_keys) == case["partition_keys"][dataset]
        assert document.stamp is None
        assert all(store.exists(key) for key in document.partitions.values())
        stored = store.get(document_key(document.uuid))
        if b"//" not in stored:
            assert render_document(document) == stored
            for label, key in document.partitions.items():
                assert data_key(document.uuid, label) == key


def test_schemas(reference_cube):
    case, store = reference_cube
    for dataset, document in documents(reference_cube):
        stored = store.get(common_metadata_key(document.uuid))
        schema = read_common_metadata(stored)
        original = pq.read_schema(pa.BufferReader(stored))
        assert schema.names == list(case["schema"][dataset])
        assert [str(field.type) for field in original] == list(case["schema"][dataset].values())
        assert schema.types == [normalize(field.type) for field in original]
        rendered = render_common_metadata(schema, document.partition_keys)
        assert read_common_metadata(rendered) == schema
        assert columns_of(rendered) == columns_of(stored)


def columns_of(data):
    """Names and pandas' types, without what depends on the first frame's data."""
    metadata = json.loads(pq.read_schema(pa.BufferReader(data)).metadata[b"pandas"])
    result = []
    for column in metadata["columns"]:
        t = column["pandas_type"]
        # Kartothek's type of the codes of categories, and bool with
        # nulls, which is an object in pandas.
        quirk = t == "int8" or t == "bool"
        precision = {"precision"} if column["metadata"] and t == "decimal" else None
        details = precision or (column["metadata"] or {}).get("timezone")
        result.append((column["name"], column["field_name"], details))
        assert quirk or column["numpy_type"] in ("object", "datetime64[ns]", t)
    return result


def test_partition_values(reference_cube):
    _, store = reference_cube
    for _, document in documents(reference_cube):
        schema = read_common_metadata(store.get(common_metadata_key(document.uuid)))
        table = partition_table(list(document.partitions), document.partition_keys, schema)
        assert table.num_rows == len(document.partitions)
        types = [table.schema.field(name).type for name in document.partition_keys]
        for label, row in zip(document.partitions, table.to_pylist(), strict=True):
            ours = partition_path(document.partition_keys, list(row.values()), types)
            path = label.rpartition("/")[0]
            # Apart from slashes in values, our paths are Kartothek's.
            if path.count("/") + 1 == len(document.partition_keys):
                assert ours == path
            elif path:
                assert ours.replace("%2F", "/") == path


def test_indices(reference_cube):
    case, store = reference_cube
    for dataset, document in documents(reference_cube):
        for column, key in document.indices.items():
            assert f"/indices/{quote(column)}/" in key
            with store.open_read(key) as file:
                index = read_index(file)
            assert set(flatten_index(index)["label"].to_pylist()) <= set(document.partitions)
            assert str(index["value"].type) == case["schema"][dataset][column]
            pairs = flatten_index(index)
            rebuilt = build_index(pairs["value"], pairs["label"])
            assert read_index(render_index(column, rebuilt)).equals(rebuilt)
            assert as_sets(rebuilt) == as_sets(index)


def as_sets(index):
    return {row["value"]: set(row["partition"]) for row in index.to_pylist()}
