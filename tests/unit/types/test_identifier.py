"""Names are one for SQL if they are equal in lower case, by no other rule."""

from __future__ import annotations

import pytest

from ktk_engine.types.identifier import Identifier, find_name, find_names, first_pair_alike


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("an", "AN", True),
        ("GRÖSSE", "grösse", True),
        ("Maße", "masse", False),
        ("Maße", "MASSE", False),  # Python's and Java's upper case
        ("é", "e\u0301", False),  # the normal form is not applied
        ("\u212a", "k", True),  # Kelvin
        ("İ", "i\u0307", True),
        ("ı", "I", False),
        ("ΟΔΟΣ", "οδος", True),
        ("ΟΔΟΣ", "οδοσ", False),  # a sigma at the end is another letter
        ("a_b", "a b", False),
    ],
)
def test_two_names(one, other, same):
    assert (Identifier(one) == Identifier(other)) is same
    assert (len({Identifier(one), Identifier(other)}) == 1) is same


def test_an_identifier_is_no_text():
    assert Identifier("a") != "a"
    assert str(Identifier("Ab")) == "Ab"


def test_a_name_is_found_as_it_is_spelled():
    known = ["Name", "größe", "x", "X"]
    assert find_name("NAME", known) == "Name"
    assert find_name("GRÖSSE", known) is None
    assert find_name("GRÖßE", known) == "größe"
    assert find_name("X", known) == "X"
    assert find_name("X", ["x", "x"]) == "x"
    assert find_name("n", ["N", "n "]) == "N"
    assert find_name("y", known) is None
    assert find_name("aB", ["ab", "AB"]) is None  # which of them?
    assert find_names(("name", "other"), known) == ("Name", "other")
    assert first_pair_alike(known) == ("x", "X")
    assert first_pair_alike(["Maße", "Masse", "masse"]) == ("Masse", "masse")
    assert first_pair_alike(["a", "a"]) is None
