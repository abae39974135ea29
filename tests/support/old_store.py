"""A store as teams with Kartothek 5.3 have it, with all that its long life has left there."""

from __future__ import annotations

import json

from tests.support.kartothek import build_with_kartothek, kartothek
from tests.support.stores import LocalStore

_WRITE = """
from functools import partial
import pyarrow.parquet as pq
from kartothek.io.eager import (
    build_dataset_indices, create_empty_dataset_header, store_dataframes_as_dataset,
    update_dataset_from_dataframes, write_single_partition,
)

read = pq.read_pandas  # it passes a set, which newer versions of Arrow refuse
pq.read_pandas = lambda source, columns=None: read(source, columns=columns and list(columns))
factory = partial(get_store_from_url, "hfs://" + sys.argv[1])

def cube_of(name):
    return Cube(dimension_columns=["x", "y"], partition_columns=["p"], uuid_prefix=name,
                seed_dataset="cells", index_columns=["i"], suppress_index_on=["y"])

frame = pd.DataFrame({"p": [0, 0, 1], "x": [1, 2, 3], "y": ["a", "b", "c"], "i": [7, 8, 9],
                      "v": [1.5, float("nan"), None], "note": ["n", None, ""]})
more = frame[["x", "p"]].assign(w=[True, False, True])
for name in ("lost", "alone", "old", "forgot"):
    datasets = {"cells": frame} if name == "alone" else {"cells": frame, "more": more}
    build_cube(datasets, cube_of(name), store)
for uuid in ("lost++cells", "alone++cells", "forgot++cells", "forgot++more"):
    build_dataset_indices(factory, uuid, ["v" if "cells" in uuid else "w"])

plain = dict(store=factory, metadata_version=4)
store_dataframes_as_dataset(dataset_uuid="packed", dfs=[frame], secondary_indices=["x"],
                            metadata_storage_format="msgpack", metadata={"mine": 1}, **plain)
store_dataframes_as_dataset(
    dataset_uuid="several", dfs=[{"label": "a", "data": [("core", frame), ("side", more)]}],
    **plain)
for number in range(3):
    update_dataset_from_dataframes([frame.assign(v=float(number))], store=factory,
                                   dataset_uuid="grown", partition_on=["p"],
                                   secondary_indices=["x"])
store_dataframes_as_dataset(dataset_uuid="emptied", dfs=[frame], partition_on=["p"],
                            secondary_indices=["x"], **plain)
update_dataset_from_dataframes(None, store=factory, dataset_uuid="emptied",
                               delete_scope=[{"p": 0}, {"p": 1}])
from kartothek.core.common_metadata import make_meta
create_empty_dataset_header(store=factory, dataset_uuid="unlisted", partition_on=["p"],
                            table_meta={"table": make_meta(frame, "m", partition_keys=["p"])})
for label in "ab":
    write_single_partition(store=factory, dataset_uuid="unlisted", partition_on=["p"],
                           data={"data": [("table", frame)], "label": label})
"""


def write_old_store(folder):
    """Let Kartothek fill a folder.

    Cubes: `k` (awkward partition values), `lost`, `alone` and `forgot` (documents without cube
    metadata), `old` (under the keys of Kartothek 2). Datasets: `packed` (msgpack), `several` (two
    tables), `grown` (three writes), `emptied` (indexes, no file), `unlisted` (no list of files).
    """
    store = LocalStore(folder)
    build_with_kartothek(store)
    kartothek(store, _WRITE)
    for document in folder.glob("old++*.json"):
        content = json.loads(document.read_text())
        metadata = content["metadata"]
        for key in ("is_seed", "dimension_columns", "partition_columns"):
            metadata[f"klee_{key}"] = metadata.pop(f"ktk_cube_{key}")
        document.write_text(json.dumps(content))
