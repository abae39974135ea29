"""Where keys come from, and what of them goes to tasks."""

from __future__ import annotations

import importlib.util
import pickle

import pytest

from ktk_engine.errors import ConfigurationError, StoreError
from ktk_engine.store.cloud.request_failure import read_failure
from ktk_engine.store.open_store import open_store
from tests.servers.azure import ACCOUNT
from tests.servers.s3 import KEY, SECRET

_AWS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    """An environment without keys, and a home without files."""
    for name in _AWS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile `there` in AWS's files."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        f"[there]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (folder / "config").write_text("[profile there]\nregion = eu-central-1\n")


def test_of_the_environment(s3_server, monkeypatch):
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    store = open_store(s3_server.new_url())
    store.put("a", b"1")
    data = pickle.dumps(store)
    for name in s3_server.environment:
        monkeypatch.delenv(name)
    assert pickle.loads(data).get("a") == b"1"  # tasks on other machines have no such variables


@pytest.mark.parametrize("named_by", ["storage_options", "AWS_PROFILE"])
def test_of_a_profile(s3_server, profile, monkeypatch, named_by):
    options = {"endpoint": s3_server.endpoint}
    if named_by == "AWS_PROFILE":
        monkeypatch.setenv("AWS_PROFILE", "there")
    else:
        options["profile"] = "there"
    store = open_store(s3_server.new_url(), options)
    store.put("a", b"1")
    assert store._cloud.for_tasks().options["region"] == "eu-central-1"
    data = pickle.dumps(store)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    assert pickle.loads(data).get("a") == b"1"
    with pytest.raises(ConfigurationError, match="could not be found"):
        open_store("s3://bucket", {**options, "profile": "nowhere"}).list_names()


def test_a_profile_needs_the_library_of_aws(profile, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "boto3" else find(name)
    )
    with pytest.raises(ConfigurationError, match=r"pip install 'ktk-engine\[s3\]'"):
        open_store("s3://bucket/a").list_names()


def test_keys_of_different_places_are_not_mixed(s3_server, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another key")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of another key")
    store = open_store("s3://bucket", s3_server.options)
    assert store._cloud._given() == {
        "access_key_id": KEY, "secret_access_key": SECRET, "token": None, "expires_at": None,
    }  # fmt: skip
    assert b"another key" not in pickle.dumps(store)


def test_half_a_key_is_refused():
    with pytest.raises(ConfigurationError, match="only one of `access_key_id`"):
        open_store("s3://bucket", {"access_key_id": "x"}).list_names()


def test_who_has_no_keys_is_told_where_they_could_be():
    """The clients ask the machine last, which does not run in a cloud."""
    cloud = open_store("s3://bucket/a")._cloud
    error = OSError("Error performing PUT http://169.254.169.254/latest/api/token in 1s: no route")
    failure = read_failure(error, cloud)
    assert failure.unsigned and not failure.transient and failure.refused
    assert "no credentials were found" in failure.text


def test_the_account_of_azure(azure_server, monkeypatch):
    options = dict(azure_server.options)
    url = azure_server.new_url()
    del options["account_name"]
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="does not say in which storage account it is"):
        open_store(url, options).list_names()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", options.pop("account_key"))
    store = open_store(url, options)
    store.put("a", b"1")
    data = pickle.dumps(store)
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")
    assert pickle.loads(data).get("a") == b"1"


def test_a_wrong_key_is_no_missing_object(azure_server):
    store = open_store(azure_server.new_url(), {**azure_server.options, "account_key": "AAAA"})
    with pytest.raises(StoreError, match="account_key") as caught:
        store.get("a")
    assert type(caught.value) is StoreError
