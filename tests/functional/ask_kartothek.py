"""Asks Kartothek 5.3.0 for rows; runs in an environment of its own (Python 3.8).

Arguments: the store's folder, a Parquet file. Writes the file's rows as the dataset `own`, then
reads a JSON list of [dataset, column, operator, value as Python source] from stdin. Answers with
the ids of the rows of each, or with the name of the error's class.
"""

import datetime  # noqa: F401 - the values name it
import decimal  # noqa: F401
import json
import sys
from functools import partial

import pyarrow.parquet as pq
from kartothek.io.eager import read_table, store_dataframes_as_dataset
from kartothek.serialization import ParquetSerializer
from storefact import get_store_from_url

folder, rows = sys.argv[1:]
store = partial(get_store_from_url, "hfs://" + folder)
frame = pq.read_table(rows).to_pandas(date_as_object=True)
serializer = ParquetSerializer(chunk_size=4)
store_dataframes_as_dataset(store, "own", [frame], df_serializer=serializer)

answers = []
for dataset, column, operator, value in json.load(sys.stdin):
    predicates = [[(column, operator, eval(value))]]
    try:
        found = read_table(dataset, store, predicates=predicates, columns={"table": ["id"]})
        answers.append(sorted(int(number) for number in found["id"]))
    except Exception as error:  # noqa: BLE001 - whatever Kartothek raises is an answer
        answers.append(type(error).__name__)
print(json.dumps(answers))
