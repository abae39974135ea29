"""The newest version of a long log is found without listing it from its start."""

from __future__ import annotations

from random import Random

import pytest

from ktk_engine.log import chain
from tests.support.committed import cube_scope
from tests.support.stores import LocalStore

SCOPE = cube_scope("c")


class Remote(LocalStore):
    """Counts requests as a remote store has them: a page of names, and a look at one."""

    pages = looks = 0

    @property
    def is_remote(self):
        return True

    def list_names(self, folder="", prefix="", since="", at_most=None):
        names = super().list_names(folder, prefix, since, at_most)
        self.pages += len(names) // chain._PAGE + 1
        return names

    def exists(self, key):
        self.looks += 1
        return super().exists(key)


@pytest.fixture
def remote(tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "_PAGE", 5)
    monkeypatch.setattr(chain, "_PROBES", 8)
    return Remote(tmp_path / "s")


def put(store, versions):
    folder = store.root / SCOPE.entry_key(0).rpartition("/")[0]
    folder.mkdir(parents=True)
    for version in versions:
        (folder / f"{version:020d}.json").write_bytes(b"{}")


def test_few_requests(remote):
    put(remote, range(1, 1001))
    assert chain.newest_version(remote, SCOPE) == 1000
    assert remote.pages <= 5
    assert remote.looks <= 40


def test_a_short_log_is_one_listing(remote):
    put(remote, range(1, 4))
    assert chain.newest_version(remote, SCOPE) == 3
    assert (remote.pages, remote.looks) == (1, 0)


def test_any_log_as_a_listing_tells(remote):
    """Entries may be missing, and other files lie among them."""
    for case in range(150):
        random, store = Random(case), Remote(remote.root / str(case))
        versions = range(1, random.choice((2, 6, 20, 100, 400)))
        kept = [n for n in versions if random.random() < random.choice((0.3, 1, 1))]
        put(store, kept)
        if random.random() < 0.3:
            for number in range(random.randrange(9)):
                store.put(SCOPE.entry_key(0).replace(".json", f".{number}"), b"")
        assert chain.newest_version(store, SCOPE) == max(kept, default=0), case
