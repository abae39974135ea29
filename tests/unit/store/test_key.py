import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.errors import InvalidKeyError
from ktk_engine.store.key import inside, join_key, validate_key, validate_uuid

BAD = [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/./b",
    "a/../b",
    "../a",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "ü\x85",
    "a\udc80",
    "x" * 256,
    "ü" * 128,
    "/".join(["x" * 200] * 6),
]
GOOD = ["a", "a/b", "p=%2F/x", "p=/x", "ü/é", ".ktk/log/1.json", "..a/b..", "a b", "x" * 255]


@pytest.mark.parametrize("key", BAD)
def test_bad_keys_are_refused(key):
    with pytest.raises(InvalidKeyError):
        validate_key(key)


@pytest.mark.parametrize("key", GOOD)
def test_good_keys_stay_as_they_are(key):
    assert validate_key(key) == key


@given(st.text())
def test_a_valid_key_stays_in_its_folder(key):
    import posixpath

    try:
        validate_key(key)
    except InvalidKeyError:
        return
    assert posixpath.normpath(key) == key
    assert not key.startswith(("/", "../"))


def test_join():
    assert join_key("a", "b/c") == "a/b/c"
    for parts in [("a", ""), ("", "a"), ("a", ".."), ("a/", "b")]:
        with pytest.raises(InvalidKeyError):
            join_key(*parts)


def test_inside():
    assert inside("u/table/x", "u") == "u/table/x"
    for key in ["u", "v/x", "ux/y", "u/../v", "/u/x", "u.json"]:
        with pytest.raises(InvalidKeyError):
            inside(key, "u")


def test_uuid():
    assert validate_uuid("geo++seed_1-A") == "geo++seed_1-A"
    for uuid in ["", "a b", "a/b", "a\n", "ü", "..", "x" * 256]:
        with pytest.raises(InvalidKeyError):
            validate_uuid(uuid)
