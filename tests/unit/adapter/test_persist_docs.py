"""Which descriptions become comments, and which configurations are refused."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.persist_docs import (
    check_persist_docs,
    comments_of_model,
    unknown_parts,
)
from tests.support.documents import Comments


def model(persist_docs, **columns):
    described = {
        name: {"name": name, "description": text, "quote": quote}
        for name, (text, quote) in columns.items()
    }
    config = {"persist_docs": persist_docs}
    return {"config": config, "description": "model", "columns": described}


BOTH = {"relation": True, "columns": True}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (BOTH, Comments("model", {"a": "text"})),
        ({"relation": True}, Comments("model")),
        ({"columns": True, "relation": False}, Comments("", {"a": "text"})),
        ({}, Comments()),
        (None, Comments()),
    ],
)
def test_what_is_wanted(wanted, expected):
    assert comments_of_model(model(wanted, a=("text", False)), lambda: ["a"]) == (expected, [])


def test_a_macro_may_want_less():
    node = model(BOTH, a=("text", False))
    assert comments_of_model(node, lambda: ["a"], False)[0] == Comments("", {"a": "text"})
    assert comments_of_model(node, lambda: ["a"], True, False)[0] == Comments("model")


def test_quoted_names_match_letter_by_letter():
    node = model(
        BOTH, A=("any case", None), b=("exact", True), C=("other case", True), gone=("x", None)
    )
    found, missing = comments_of_model(node, lambda: ["a", "b", "c"])
    assert found.columns == {"a": "any case", "b": "exact"}
    assert missing == ["C", "gone"]


def test_the_exact_name_goes_before_another_case():
    node = model(BOTH, Größe=("text", False))
    assert comments_of_model(node, lambda: ["größe", "Größe"])[0].columns == {"Größe": "text"}


def test_an_empty_description_is_none_and_unwanted_columns_are_not_asked_for():
    assert comments_of_model(model(BOTH, a=("", False)), lambda: ["a"]) == (Comments("model"), [])
    assert comments_of_model(model({"relation": True}, a=("x", False)), pytest.fail)


@pytest.mark.parametrize("value", [None, {}, BOTH, {"columns": False}])
def test_accepted(value):
    check_persist_docs("m", value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "must be a mapping, for instance {relation: true, columns: true}, but is True"),
        ({"columns": 1}, "`columns` must be true or false, but is 1"),
    ],
)
def test_refused(value, message):
    with pytest.raises(DbtConfigError) as error:
        check_persist_docs("m", value)
    assert message in str(error.value)
    assert "Model m: config `persist_docs`" in str(error.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"relations": True},
            "unknown key `relations`, which does nothing. Did you mean `relation`?",
        ),
        ({"x": True}, "unknown key `x`, which does nothing. Known: relation, columns."),
        (BOTH, ""),
    ],
)
def test_unknown_keys_are_said(value, message):
    found = unknown_parts({"name": "m", "config": {"persist_docs": value}})
    assert message in found
    assert bool(found) == bool(message)
