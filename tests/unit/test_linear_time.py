"""Text that others stored, or that users wrote, costs time in proportion to its length."""

from __future__ import annotations

import time
from contextlib import suppress
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.catalog.view import named_by_cube_comment  # deep: reads a compiled model
from ktk_engine.errors import KtkError, without_secrets
from ktk_engine.files.footers import FooterCache  # deep: a footer with names of others
from ktk_engine.format.parse_json import parse_json  # deep: any document
from ktk_engine.format.partition_text import partition_values  # deep: a stored value
from ktk_engine.sql.stored_text import stored_query  # deep: the text of a stored view
from ktk_engine.sql.token import tokenize  # deep: cuts any text
from tests.support.stores import LocalStore


def _footer(name: str) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array([], pa.float32())}), sink)
    with TemporaryDirectory() as folder:
        store = LocalStore(folder)
        store.put("f.parquet", sink.getvalue().to_pybytes())
        FooterCache().read(store, ["f.parquet"])


def _repeated_key(text: str) -> None:
    """Of as many keys as the text has characters, the last comes twice."""
    keys = [*range(len(text)), len(text) - 1]
    parse_json(f"{{{','.join(f'{chr(34)}{key}{chr(34)}:1' for key in keys)}}}".encode(), "it")


READERS = {
    "json": _repeated_key,
    "message": without_secrets,
    "view": lambda text: stored_query("v", text),
    "tokens": tokenize,
    "footer": _footer,
    "value": lambda text: partition_values([text], pa.float64()),
    "cube": lambda text: named_by_cube_comment("c", text),
}
TEXTS = [
    ("message", "a://", ""),
    ("message", "a", " a://"),
    ("message", "a.", "://@"),
    ("message", "a://b/", "@"),
    ("message", "file://", "?x"),
    ("message", "sc://a;", ""),
    ("view", "${", "'"),
    ("view", "${$", "}'"),
    ("tokens", r"'\'", ""),
    ("tokens", r'"\"', ""),
    ("tokens", r"\'", "'"),
    ("tokens", "r'", "'"),
    ("tokens", "`a``", ""),
    ("tokens", "1e", "_"),
    ("tokens", "/*", ""),
    ("json", "x", ""),
    ("footer", "(a", ""),
    ("footer", "(a)", ";"),
    ("value", "1", "x"),
    ("cube", "/* ktk cube: [", ""),
]


@pytest.mark.parametrize(("reader", "piece", "end"), TEXTS)
def test_twice_the_text_takes_at_most_three_times_the_time(reader, piece, end):
    """As is, and not four times; the shortest of some measurements each."""
    read = READERS[reader]

    def seconds(count: int) -> float:
        text, best = "select '" * (reader == "view") + piece * count + end, float("inf")
        for _ in range(5):
            began = time.process_time()
            with suppress(KtkError):
                read(text)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(8_000) < 3 * seconds(4_000) + 0.02
