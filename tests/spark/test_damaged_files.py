"""What Spark reads is verified: a flipped bit in a data file never gives other rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from dbt.adapters.ktk.session.spark_message import spark_message
from ktk_engine import Store
from ktk_engine.errors import FormatError
from tests.support.changes import WriteRequest, build
from tests.support.voices import DBT

COUNT = 400
ROWS = pa.table(
    {
        "k": pa.array(range(COUNT), pa.int64()),
        "P": [n % 2 for n in range(COUNT)],
        "text": [f"value {n % 13}" for n in range(COUNT)],
        "number": [n / 7 for n in range(COUNT)],
    }
)


def _end_of_pages(data: bytes) -> int:
    """Where the page index begins, or the footer."""
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return max(
        (c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in columns
    )


@pytest.fixture
def damage(store):
    """The key of a data file, and a function that flips one of its bits."""
    build(store, ROWS, WriteRequest("cells", "seed", "c", ("k",), partition_by=("P",)))
    cube = Store(store.root).cube("c")
    files = cube._loaded.snapshots["cells"].files.to_pylist()
    key = files[0]["key"]
    data = (store.root / key).read_bytes()

    def flip(byte, bit=3):
        damaged = bytearray(data)
        damaged[byte] ^= 1 << bit
        (store.root / key).write_bytes(damaged)

    flip.key, flip.pages, flip.size = key, _end_of_pages(data), len(data)
    return flip


def test_every_flip_is_an_error_that_names_the_file(spark, store, damage):
    """Spread over pages, their headers, the page index and the footer."""
    good = Store(store.root).cube("c").query().to_arrow(spark)
    name = damage.key.rpartition("/")[2]
    for number in range(30):
        byte = damage.size * number // 30
        damage(byte, number % 8)
        try:
            found = Store(store.root).cube("c").query().to_arrow(spark)
        except FormatError as error:
            assert name in str(error)
            assert "check(deep=True)" in str(error)
        else:
            assert found.equals(good), f"byte {byte} of {damage.size}"


@pytest.mark.parametrize("where", ["pages", "footer"])
def test_a_host_session_without_the_setting_verifies_too(spark, store, damage, where):
    host = spark.newSession()
    host.conf.set("parquet.page.verify-checksum.enabled", "false")
    damage(damage.pages - 40 if where == "pages" else damage.size - 60)
    with pytest.raises((FormatError, Py4JError, PySparkException), match=r"\.parquet"):
        Store(store.root).cube("c").query(["number", "text"]).to_spark(host).collect()


def test_a_file_that_tasks_read_is_named(spark, store, damage):
    """A worker's error is that of the library, without its traceback."""
    other = pa.table({"k": ROWS["k"], "P": ROWS["P"], "e": ROWS["number"]})
    build(store, other, WriteRequest("e", "enrichment", "c", ("k",), partition_by=("P",)))
    damage(damage.pages // 2)
    query = Store(store.root).cube("c").query()
    assert len(query.plan.datasets) == 2
    with pytest.raises(FormatError, match="(?s)" + damage.key.rpartition("/")[2]) as caught:
        query.to_arrow(spark)
    assert "Traceback" not in str(caught.value)
    with pytest.raises(PySparkException) as raw:
        query.to_spark(spark).collect()
    message = spark_message(raw.value)
    assert message == caught.value.said(DBT)
    assert "check(deep=True)" in str(caught.value)
