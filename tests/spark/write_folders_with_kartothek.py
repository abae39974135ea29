"""Writes tables and cubes with Kartothek 5.3.0 in odd folders; runs in Python 3.8."""

import json
import sys
from functools import partial

import pandas as pd
from kartothek.core.cube.cube import Cube
from kartothek.io.eager import store_dataframes_as_dataset
from kartothek.io.eager_cube import build_cube
from storefact import get_store_from_url

folder, names, values = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
store = partial(get_store_from_url, "hfs://" + folder)
for number, name in enumerate(names):
    frame = pd.DataFrame({name: values, "id": range(len(values)), "v": 1.5})
    store_dataframes_as_dataset(
        store=store, dataset_uuid=f"t{number}", dfs=[frame], partition_on=[name]
    )
    cube = Cube(dimension_columns=["id"], partition_columns=[name], uuid_prefix=f"c{number}")
    build_cube(data=frame, cube=cube, store=store)
