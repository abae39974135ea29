"""A cube of another program, one of whose files has a partition value with nanoseconds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification, document_key, load_document, render_document

CUBE = CubeSpecification("c", ("L",), ("day",), "seed", suppress_index_on=frozenset({"L"}))
DAYS = [datetime(2018, 1, 1), datetime(2018, 1, 2)]
BAD = "2018-01-02%2000%3A00%3A00.000000001"


def write_cube(store):
    """Write it; the row with L = 2 has the value."""
    when = pa.array(DAYS, pa.timestamp("us"))
    seed = pa.table({"day": when, "L": [1, 2], "v": ["a", "b"]})
    more = pa.table({"day": when, "L": [1, 2], "w": [10, 20]})
    for name, table in (("seed", seed), ("more", more)):
        uuid = f"c++{name}"
        write_plain(store, uuid, table, ("day",), CUBE.metadata(name))
        document = load_document(store, uuid)
        files = {}
        for label, key in document.partitions.items():
            renamed = label.replace("2018-01-02%2000%3A00%3A00", BAD)
            files[renamed] = f"{uuid}/table/{renamed}.parquet"
            store.put(files[renamed], store.get(key))
        store.put(document_key(uuid), render_document(replace(document, partitions=files)))
