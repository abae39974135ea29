"""File systems that ignore letter case, as macOS has them: two names may be one folder."""

from __future__ import annotations

import os
from datetime import timedelta
from unicodedata import normalize

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError
from ktk_engine.store.key import folded  # deep: what is tested
from ktk_engine.store.local import folder  # deep: what finds folders is patched

VALUES = [("x", "X"), (normalize("NFC", "é"), normalize("NFD", "é")), ("ß", "SS"), ("K", "k")]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store whose folders are found under any spelling; they keep that of who made them."""
    of_linux = folder._open_child

    def open_child(segment: str, parent: int, create: bool) -> int:
        alike = [name for name in os.listdir(parent) if folded(name) == folded(segment)]
        return of_linux(*[*alike, segment][:1], parent, create)

    monkeypatch.setattr(folder, "_open_child", open_child)
    return Store(tmp_path / "store")


def rows(found) -> list[tuple]:
    return sorted(tuple(row.values()) for row in found.query().to_arrow().to_pylist())


@pytest.mark.parametrize("values", VALUES)
def test_a_clean_up_keeps_the_rows_of_both_partitions(store, values):
    table = store.write_table("t", pa.table({"p": [*values], "v": [1, 2]}), partition_by=["p"])
    table = store.write_table("t", pa.table({"p": [*values[::-1]], "v": [3, 4]}))
    wanted = sorted([(values[0], 1), (values[1], 2), (values[1], 3), (values[0], 4)])
    assert rows(table) == wanted
    assert rows(table.compact()) == wanted
    cleaned = store.cleanup("t", older_than=timedelta(0), keep_versions=1, delete=True)
    assert cleaned
    table = store.table("t")
    assert rows(table) == wanted
    assert not table.check(deep=True)["problems"]
    assert rows(table.delete("v > 2")) == sorted(zip(values, [1, 2], strict=True))
    assert rows(store.table("t").restore(version=table.version)) == wanted
    store.cleanup("t", older_than=timedelta(0), keep_versions=1, delete=True)
    assert rows(store.table("t")) == wanted


def test_what_no_version_needs_goes_from_shared_folders(store, tmp_path):
    """Files are deleted under the spelling of their folder."""
    cells = pa.table({"p": ["x", "X"], "v": [1, 2]})
    for _ in range(3):
        store.write_table("t", cells, "overwrite", partition_by=["p"])
    store.cleanup("t", older_than=timedelta(0), keep_versions=1, delete=True)
    assert len([*(tmp_path / "store").glob("t/table/*/*.parquet")]) == 2


def test_a_name_in_another_spelling_is_refused(store):
    before = store.write_table("tx", pa.table({"v": [1]}))
    store.build("cx", pa.table({"k": [1]}), dimension_columns=["k"])
    for call in (
        lambda: store.table("tX"),
        lambda: store.write_table("tX", pa.table({"v": [2]})),
        lambda: before.rename("tX"),
        lambda: store.cube("cX"),
        lambda: store.build("cX", pa.table({"k": [2]}), dimension_columns=["k"], overwrite=True),
    ):
        with pytest.raises(ConsistencyError, match=r"are one name in .* Spell it [tc]x, or choose"):
            call()
    assert (rows(store.table("tx")), rows(store.cube("cx"))) == ([(1,)], [(1,)])
    store.drop("tx")
    with pytest.raises(ConsistencyError, match=r"Spell it tx, or choose another name"):
        store.write_table("tX", pa.table({"v": [2]}))
    assert rows(store.write_table("tx", pa.table({"v": [2]}))) == [(2,)]


def test_a_dataset_built_again_in_another_spelling_keeps_its_rows(store):
    """The folder keeps the spelling of the dataset that was dropped."""
    seed, more = pa.table({"k": [1]}), pa.table({"k": [1], "v": [2]})
    cube = store.build("c", {"seed": seed, "more": more}, dimension_columns=["k"])
    cube = cube.drop("more").extend({"MORE": more})
    for _ in range(2):
        store.cleanup("c", older_than=timedelta(0), keep_versions=1, delete=True)
        assert rows(store.cube("c")) == [(1, 2)]
    assert not store.cube("c").check(deep=True)["problems"]
