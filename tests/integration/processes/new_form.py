"""Publishes a table in a form that only this file knows, once it is added to FORMS.

usage: python -m tests.integration.processes.new_form FOLDER
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from ktk_engine.errors import ObjectNotFoundError, PublishError
from ktk_engine.publish import published_forms  # deep: the list that a new form is added to

FOLDER = "_listing"


@dataclass(frozen=True)
class Listing:
    """The keys of a version's files, in a JSON file."""

    version: int = -1
    published: int = 0
    broken: str = ""
    commit: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class NextListing:
    """What replaces a listing."""

    wanted: published_forms.Wanted
    version: int
    note: str = ""

    def put(self):
        """Write it."""
        commit, snapshot = self.wanted.entry.commit, self.wanted.snapshot
        said = {"commit": commit, "published": self.wanted.entry.version, "version": self.version}
        said["keys"] = snapshot.file_column("key").to_pylist()
        self.wanted.store.put(f"{snapshot.uuid}/{FOLDER}/listing.json", json.dumps(said).encode())

    def follows(self):
        """Nobody else writes listings."""
        return True

    def take_back(self):
        """There is nothing to take back."""

    def settle(self):
        """There is nothing to settle."""


class ListingForm:
    """A file that lists a dataset's files."""

    name, title, record = "listing", "a listing", "listing"

    def folder(self, uuid):
        """Key of the folder."""
        return f"{uuid}/{FOLDER}"

    def is_current(self, wanted):
        """Whether it is of this commit."""
        return self.read(wanted.store, wanted.snapshot.uuid).commit == wanted.entry.commit

    def read(self, store, uuid):
        """Read it."""
        try:
            said = json.loads(store.get(f"{uuid}/{FOLDER}/listing.json"))
        except ObjectNotFoundError:
            return Listing()
        return Listing(**{**said, "keys": tuple(said["keys"])})

    def next_version(self, wanted, present):
        """The next one, unless it is of this commit."""
        if present.commit == wanted.entry.commit:
            return None
        return NextListing(wanted, present.version + 1)

    def check(self, store, snapshot):
        """Refuse a column, to show how a form refuses."""
        if "unlisted" in snapshot.schema.names:
            raise PublishError("no listing can have the column unlisted")

    def difference(self, wanted, present):
        """Compare the keys."""
        same = list(present.keys) == wanted.snapshot.file_column("key").to_pylist()
        return "" if same else "it lists other files"

    def verify_with_library(self, wanted, present):
        """There is no other reader."""
        return ""

    def owns(self, uuid, key):
        """Whether a key is the listing's."""
        return key.startswith(f"{uuid}/{FOLDER}/")

    def delete(self, store, uuid):
        """Delete it."""
        known = store.exists(f"{uuid}/{FOLDER}/listing.json")
        store.delete([f"{uuid}/{FOLDER}/listing.json"])
        return known


def main(folder):
    """Do what can be done with a form, through Python and the command line."""
    import pyarrow as pa
    from click.testing import CliRunner

    from ktk_engine import Store
    from ktk_engine.cli.main import main as ktk

    def run(*words):
        done = CliRunner().invoke(ktk, ["--store", folder, *words], catch_exceptions=False)
        return done.exit_code, done.output

    def keys():
        return ListingForm().read(store._store, "t").keys

    store = Store(folder)
    store.write_table("t", pa.table({"x": [1]}))
    assert "--listing" in run("publish", "--help")[1]
    assert "ktk publish t --listing" in run("publish", "t", "--listing", "--check")[1]
    assert run("publish", "t", "--listing")[0] == 0
    store.write_table("t", pa.table({"x": [2]}))
    assert len(keys()) == 2
    assert run("publish", "t", "--check")[0] == 0
    assert "t is no longer published" in run("publish", "t", "--stop")[1]
    assert not keys()
    store.table("t").publish(["listing", "delta"])
    store.write_table("t", pa.table({"x": [3]}), "overwrite")
    assert len(keys()) == 1
    store.write_table("u", pa.table({"unlisted": [3]}))
    code, said = run("publish", "u", "--listing")
    assert code == 1 and "cannot be published as a listing as it is: no listing can have" in said
    store._store.put("t/_listing/more.parquet", b"")
    assert "_listing" not in run("cleanup", "t", "--json")[1]
    print("done")


if __name__ == "__main__":
    published_forms.FORMS = (*published_forms.FORMS, ListingForm())
    main(sys.argv[1])
