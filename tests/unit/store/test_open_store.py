from pathlib import Path

import pytest

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.open_store import open_store


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "file://localhost{}", "FILE://{}"])
def test_local_addresses(tmp_path, form):
    assert open_store(form.format(tmp_path)).url == f"file://{tmp_path}"


def test_a_path_and_a_relative_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_store(Path("x")).url == f"file://{tmp_path}/x"
    assert open_store("./x").url == f"file://{tmp_path}/x"
    assert not (tmp_path / "x").exists()


def test_an_address_opens_the_same_store_again(tmp_path):
    store = open_store(tmp_path / "a b%20ü#?")
    assert open_store(store.url) == store


@pytest.mark.parametrize("scheme", ["s3", "gs", "hs3", "abfss"])
def test_other_schemes_are_named_without_their_secrets(scheme):
    with pytest.raises(ConfigurationError, match=f"'{scheme}://'") as caught:
        open_store(f"{scheme}://key:secret@host/bucket")
    assert "secret" not in str(caught.value)
    assert "key" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "file://host/x", "file:///x?y", "file:///x#y", "a\0b"])
def test_bad_addresses(url):
    with pytest.raises(ConfigurationError):
        open_store(url)


@pytest.mark.parametrize("path", ["/data/year=2020/store", "/x=y", "/a/=b/c"])
def test_folders_that_look_like_partitions(path):
    with pytest.raises(ConfigurationError, match="partition column"):
        open_store(path)
    with pytest.raises(ConfigurationError, match="partition column"):
        open_store("file://" + path.replace("=", "%3D"))


def test_a_current_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ConfigurationError, match="current folder, which is gone"):
        open_store("warehouse")
