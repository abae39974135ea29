"""A store over another one: whoever holds it sees a plain store, and nobody else sees a change."""

from __future__ import annotations

import random

import pytest

from ktk_engine.errors import ObjectExistsError, ObjectNotFoundError, TokenMismatchError
from ktk_engine.store.overlay_store import OverlayStore
from tests.support.interrupting_store import InterruptingStore

KEYS = ("a", "b/c", "b/d", "b/d2/e", "h/1", "h/2", "h/x%2F/ä", "h/x%2F/z", "hh")
REFUSALS = (ObjectExistsError, ObjectNotFoundError, TokenMismatchError)


def is_held_back(key):
    return key.startswith("h/")


def names(store, folder, prefix="", since=""):
    """What a listing names, without folders that are empty: an overlay may still list those."""
    below = f"{folder}/" if folder else ""
    found = store.list_names(folder, prefix, since)
    return [name for name in found if not name.endswith("/") or list(store.list(below + name))]


def replaced(store, key, data):
    _, token = store.get_with_token(key)
    if data == b"0":
        store.put(key, b"in between")
    store.replace(key, data, token)


ACTIONS = {
    "put": lambda store, key, data: store.put(key, data),
    "put_if_absent": lambda store, key, data: store.put_if_absent(key, data),
    "replace": replaced,
    "delete": lambda store, key, data: store.delete([key, "h/2", "b/c"]),
    "get": lambda store, key, data: store.get(key),
    "get_range": lambda store, key, data: store.get_range(key, 0, 1),
    "open_read": lambda store, key, data: store.open_read(key).read(),
    "exists": lambda store, key, data: store.exists(key),
    "list": lambda store, key, data: [(i.key, i.size) for i in store.list(key[: len(data) + 1])],
    "list_names": lambda store, key, data: names(store, key.rpartition("/")[0]),
    "some names": lambda store, key, data: names(store, "h", data.decode()[:1], "1"),
}


def outcome(action, store, key, data):
    try:
        return action(store, key, data)
    except REFUSALS as error:
        return type(error)


@pytest.mark.parametrize("seed", range(20))
def test_it_answers_as_a_plain_store_does(seed):
    chance = random.Random(seed)
    start = {key: (b"old", InterruptingStore().now()) for key in KEYS[:: chance.choice((1, 2, 3))]}
    plain, beneath = InterruptingStore(start), InterruptingStore(start)
    overlay = OverlayStore(beneath, is_held_back)
    for _ in range(200):
        name, key = chance.choice(list(ACTIONS)), chance.choice(KEYS)
        data = str(chance.randrange(20)).encode()
        found = [outcome(ACTIONS[name], store, key, data) for store in (plain, overlay)]
        assert found[0] == found[1], (name, key, data)
    held = {key for key in beneath.objects if is_held_back(key)}
    assert held == {key for key in start if is_held_back(key)}
    assert all(beneath.objects[key] == start[key] for key in held)
    others = {key for key in plain.objects if not is_held_back(key)}
    assert others == beneath.objects.keys() - held
    changed = {key: data for key, data in overlay.held_back("h/").items() if data is not None}
    assert changed.items() <= {key: data for key, (data, _) in plain.objects.items()}.items()
    overlay.forget()
    assert {key: overlay.get(key) for key in held} == dict.fromkeys(held, b"old")


@pytest.mark.parametrize("at_most", range(5))
def test_no_more_names_are_listed_than_can_be_wanted(at_most):
    beneath = InterruptingStore({f"h/{n}": (b"", InterruptingStore().now()) for n in range(9)})
    overlay = OverlayStore(beneath, is_held_back)
    overlay.put("h/1", b"own")
    overlay.put("h/45", b"own")
    overlay.delete(["h/2", "h/3"])
    overlay.cut("h/7")
    asked = []
    list_names = beneath.list_names
    beneath.list_names = lambda *given: asked.append(given[3]) or list_names(*given)
    assert overlay.list_names("h", at_most=at_most) == ["0", "1", "4", "45", "5"][:at_most]
    assert overlay.list_names("h", since="2", at_most=at_most) == ["4", "45", "5", "6"][:at_most]
    assert overlay.list_names("h") == ["0", "1", "4", "45", "5", "6"]
    assert asked == [at_most + 4, at_most + 4, None]


def test_names_behind_a_cut_are_its_own():
    beneath = InterruptingStore()
    for name in "123":
        beneath.put(f"h/{name}", b"others")
    overlay = OverlayStore(beneath, is_held_back)
    overlay.cut("h/2")
    beneath.put("h/4", b"others")
    assert overlay.list_names("h") == ["1"]
    assert [info.key for info in overlay.list("h/")] == ["h/1"]
    assert not overlay.exists("h/3")
    overlay.put_if_absent("h/3", b"own")
    assert overlay.list_names("h", since="2") == ["3"]
    assert overlay.get("h/3") == b"own"
    with pytest.raises(ObjectNotFoundError):
        overlay.get("h/4")
    assert beneath.get("h/3") == b"others"
