"""`version-hint.text` of an Iceberg table, in which others may have written anything."""

from __future__ import annotations

import warnings

import pytest

from tests.support.published_table import append, problem, published

HINT = "t/iceberg/metadata/version-hint.text"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"9" * 5_000,
        b"-1",
        b"1e3",
        b"\xff\xfe",
        "٣".encode(),
        b" 1 \n",
        b"1\x1b[2J",
        b"0x10",
    ],
)
def test_whatever_it_says_publishing_goes_on(store, content):
    face = published(store, "iceberg")
    store.put(HINT, content)
    problem(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        append(face, 3)
    assert store.get(HINT).isdigit()
    assert problem(store) == ""
    assert face.table("t").rows == 3
