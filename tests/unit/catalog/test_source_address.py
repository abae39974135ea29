"""Addresses are names in SQL: any path and option goes through them and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.catalog.source_address import (
    FILE_FORMATS,
    FileAddress,
    StoreAddress,
    parse_address,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
PAIRS = st.lists(st.tuples(TEXT, st.text(st.characters(exclude_categories=("Cs",)))), max_size=3)


@given(TEXT, st.sampled_from(FILE_FORMATS), PAIRS.map(tuple), PAIRS.map(tuple))
def test_files_come_back(location, file_format, options, columns):
    address = FileAddress(location, file_format, options, columns)
    assert parse_address(str(address)) == address


@given(TEXT, TEXT, st.none() | st.integers(1))
def test_stores_come_back(store, relation, version):
    address = StoreAddress(store, relation, version)
    assert parse_address(str(address)) == address


@given(TEXT, PAIRS.map(tuple))
def test_nothing_of_a_path_means_something_in_sql_or_jinja(location, options):
    assert re.fullmatch(r"[\w/:,~.?&=%-]+", str(FileAddress(location, "csv", options)), re.ASCII)


@pytest.mark.parametrize("text", ["", "a", "analytics", "xml:/a", "spark_catalog", "/a/b"])
def test_what_is_no_address(text):
    assert parse_address(text) is None


def test_an_address_quotes_what_a_url_does_not_take():
    found = str(StoreAddress("/lake/x y", "dataset:nyc++a"))
    assert found == "ktk:/lake/x%20y?relation=dataset:nyc%2B%2Ba"
