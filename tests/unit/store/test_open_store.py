import re
from pathlib import Path

import pytest

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.open_store import open_store
from tests.support.stores import Warehouse


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "file://localhost{}", "FILE://{}"])
def test_local_addresses(tmp_path, form):
    assert open_store(form.format(tmp_path)).url == f"file://{tmp_path}"


def test_a_path_and_a_relative_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_store(Path("x")).url == f"file://{tmp_path}/x"
    assert open_store("./x").url == f"file://{tmp_path}/x"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("form", ["~/warehouse", "~", Path("~/warehouse")])
def test_the_home_folder(tmp_path, monkeypatch, form):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store = open_store(form)
    assert store.url == (tmp_path / str(form)[2:]).as_uri()
    assert open_store("./~/warehouse").url == f"{tmp_path.as_uri()}/~/warehouse"
    assert not (tmp_path / "~").exists()


def test_a_home_folder_that_is_not_known():
    with pytest.raises(ConfigurationError, match=r"Write the whole path, or \./~nobody-here/x"):
        open_store("~nobody-here/x")


def test_an_address_opens_the_same_store_again(tmp_path):
    store = open_store(tmp_path / "a b%20ü#?")
    assert open_store(store.url) == store


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "hs3", "abfss", "hdfs"])
def test_bad_addresses_with_a_scheme_are_named_without_their_secrets(scheme):
    with pytest.raises(ConfigurationError, match=f"'{scheme}://'") as caught:
        open_store(f"{scheme}://AKIA7:hunter2@host/bucket")
    assert "hunter2" not in str(caught.value)
    assert "AKIA7" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:x://u:SECRET@h",
        "jdbc:oracle:thin:u/SECRET@h",
        "JDBC:SECRET",
        "postgresql+psycopg2:SECRET",
        "http:/SECRET@h",
        "user:SECRET@h/x",
        "file:SECRET/x",
        "s3n://SECRET@b/x",
    ],
)
def test_urls_of_other_programs_are_refused_without_their_secrets(url):
    with pytest.raises(ConfigurationError, match="are not supported") as caught:
        open_store(url)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        Warehouse(url)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("path", ["./a:b", "/x/jdbc:y", "a:b", "1a:b"])
def test_a_colon_in_a_path(path):
    assert open_store(path).url.endswith(path.removeprefix("."))


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


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3a://bucket/a/b/", "s3://bucket/a/b"),
        ("S3://Bucket/a b/x=y/ü%20", "s3://Bucket/a b/x=y/ü%20"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("gcs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
        ("abfss://c@acc.dfs.core.windows.net/a", "abfss://c@acc.dfs.core.windows.net/a"),
        ("abfs://c@acc.blob.core.windows.net", "abfss://c@acc.dfs.core.windows.net"),
    ],
)
def test_object_stores(written, url):
    store = open_store(written)
    assert store.url == url
    assert open_store(store.url) == store


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("s3://", "names no bucket"),
        ("s3:///a", "names no bucket"),
        ("s3://bucket/a?region=x", "holds '\\?' or '#'"),
        ("s3://bucket/a//b", "cannot be used: invalid key 'a//b'"),
        ("s3://bucket/../b", "cannot be used"),
        ("abfss://container/a", "does not name a container and an account"),
        ("az://c@acc.dfs.core.windows.net/a", "more than a bucket in front of the first /"),
    ],
)
def test_bad_addresses_of_object_stores(url, what):
    with pytest.raises(ConfigurationError, match=what):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "options", "what"),
    [
        ("s3://b/a", {"acces_key_id": "x"}, "Did you mean `access_key_id`?"),
        ("s3://b/a", {"account_key": "x"}, "which S3 does not know"),
        ("s3://b/a", {"region": ["x"]}, "value of `region` has to be text"),
        ("s3://b/a", {"endpoint": "localhost:9000"}, "has to begin with https://"),
        ("s3://b/a", {"endpoint": "http://user:S3cret@host:1"}, "`endpoint` holds '@'"),
        ("gs://b/a", {"endpoint": "https://host/?sig=S3cret"}, "`endpoint` holds '@'"),
        ("gs://b/a", {"region": "x"}, "which Google Cloud Storage does not know"),
        ("az://b/a", {"access_key_id": "x"}, "which Azure does not know"),
    ],
)
def test_bad_settings_are_named(url, options, what):
    with pytest.raises(ConfigurationError, match=re.escape(what)) as error:
        open_store(url, options)
    assert "S3cret" not in str(error.value)


def test_an_endpoint_of_the_environment_with_a_key(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://user:S3cret@host")
    with pytest.raises(ConfigurationError, match="variable AWS_ENDPOINT_URL holds '@'") as error:
        open_store("s3://b/a", {"access_key_id": "k", "secret_access_key": "s"}).exists("x")
    assert "S3cret" not in str(error.value)


@pytest.mark.parametrize("path", ["s3:/bucket/a", "gs:/bucket", "warehouse/abfss:/x"])
def test_one_slash_is_no_folder(path):
    with pytest.raises(ConfigurationError, match=r"write two slashes: [a-z0-9]+://bucket/prefix"):
        open_store(path)
