"""Reads the sample cube with Kartothek 5.3.0; runs in an environment of its own (Python 3.8)."""

import sys

from kartothek.api.cube import query_cube
from kartothek.api.discover import discover_cube
from storefact import get_store_from_url

store_folder, answer = sys.argv[1:]
store = get_store_from_url("hfs://" + store_folder)
cube, _ = discover_cube("nyc", store)
assert cube.dimension_columns == ("carrier", "flight", "tailnum", "time_hour"), cube
assert cube.partition_columns == ("origin", "month"), cube
assert cube.seed_dataset == "flights", cube
assert cube.index_columns == {"dest"}, cube
(frame,) = query_cube(
    cube,
    store,
    payload_columns=["dest", "dep_delay", "wind_gust", "precip", "plane_year", "airline"],
)
frame.to_csv(answer, index=False)
