"""Where a profile's Spark is: what it may say about a Spark Connect server, and what it may not."""

from __future__ import annotations

import copy
import pickle

import pytest
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.ktk.config.connect_target import ConnectTarget
from dbt.adapters.ktk.credentials import KtkCredentials

TOKEN = "canary-7f3a;=%"
STORE = "s3://bucket/folder"


@pytest.fixture(autouse=True)
def no_remote(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def credentials(**said) -> KtkCredentials:
    return KtkCredentials(**{"schema": "s", "store": STORE, "method": "connect", **said})


def refused(**said) -> str:
    with pytest.raises(ValidationError) as caught:
        credentials(**said)
    assert "canary" not in str(caught.value)
    return str(caught.value)


def shown(found: KtkCredentials) -> str:
    return f"{found!r} {found.server!r} {found.server} {dict(found.connection_info())}"


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ({"host": "spark.example"}, "sc://spark.example:15002"),
        ({"host": "spark.example", "port": 443}, "sc://spark.example:443"),
        ({"host": "::1", "port": "15003"}, "sc://[::1]:15003"),
        ({"host": "[2001:db8::1]", "use_ssl": True}, "sc://[2001:db8::1]:15002/;use_ssl=true"),
        ({"host": "localhost", "token": "t"}, "sc://localhost:15002/;token=t"),
        (
            {"host": "spark.example", "token": TOKEN},
            "sc://spark.example:15002/;token=canary-7f3a%3B%3D%25",
        ),
        ({"remote": "sc://spark.example"}, "sc://spark.example:15002"),
        ({"remote": "sc://[::1]:15003/"}, "sc://[::1]:15003"),
        (
            {"remote": "sc://dbc.example:443/;token=canary;x-databricks-cluster-id=1"},
            "sc://dbc.example:443/;token=canary;x-databricks-cluster-id=1",
        ),
    ],
)
def test_where_a_server_is(said, url):
    found = credentials(**said)
    assert (found.server.url, found.method) == (url, "connect")
    assert "canary" not in shown(found)


def test_copies_keep_the_token_and_tls():
    target = ConnectTarget.parse("sc://spark.example/;use_ssl=true;token=canary", "remote")
    for same in (copy.copy(target), copy.deepcopy(target)):
        assert (same.token, same.use_ssl, same.url) == ("canary", "true", target.url)


def test_pickles_hold_no_token():
    target = credentials(host="spark.example", token=TOKEN).server
    assert b"canary" not in pickle.dumps(target)
    assert pickle.loads(pickle.dumps(target)) == ConnectTarget("spark.example")


def test_a_session_of_its_own_unless_something_else_is_said(monkeypatch):
    found = KtkCredentials(schema="s")
    assert (found.server, found.method) == (None, "session")
    assert dict(found.connection_info()).keys() == {
        "store",
        "schema",
        "database",
        "method",
        "target_type",
    }
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert KtkCredentials(schema="s", method="session").server is None


def test_the_environment_is_asked_where_the_profile_says_nothing(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", f"sc://env.example/;token={'canary'}")
    for said in ({}, {"method": "connect"}):
        found = KtkCredentials(schema="s", store=STORE, **said)
        assert found.server.url == "sc://env.example:15002/;token=canary"
        assert "sc://env.example:15002/;token=***" in shown(found)
        assert "canary" not in shown(found)
    assert credentials(host="spark.example").server.host == "spark.example"
    monkeypatch.setenv("SPARK_REMOTE", "local[2]")
    assert "variable SPARK_REMOTE is not the address of a Spark Connect server" in refused()


def test_it_survives_the_way_through_a_dictionary(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://env.example/;token=canary")
    for said in ({}, {"host": "spark.example", "port": 1, "token": "t"}, {"remote": "sc://a"}):
        found = credentials(**said)
        again = KtkCredentials.from_dict(found.to_dict(omit_none=True))
        assert again.server == found.server
        KtkCredentials.validate(found.to_dict(omit_none=True))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"method": "thrift"}, "type ktk knows `session`, a Spark of dbt's own process, and"),
        ({}, "does not say where the server is: add `host`"),
        ({"method": "session", "host": "a", "port": 1}, "has `host`, `port` and no `method"),
        ({"method": None, "remote": "sc://a"}, "has `remote` and no `method: connect`"),
        ({"port": 1}, "has `port` and no `host`"),
        ({"remote": "sc://a", "host": "b"}, "has `remote` and `host`: `remote` says all of them"),
        ({"remote": "sc://a", "token": TOKEN}, "`remote` and `token`"),
        (
            {"remote": "canary.example:15002"},
            "`remote` is not the address of a Spark Connect",
        ),
        ({"remote": "sc://canary:pw@a"}, "without a user and without a folder"),
        ({"remote": "sc://a/folder;token=canary"}, "is not the address"),
        ({"remote": "sc://a/;token"}, "has a parameter that is not `key=value`"),
        ({"remote": "sc://a/;token=canary="}, "signs such as = or ; in a value as %3D and %3B"),
        ({"remote": "sc://a:99999"}, "`port` that is not a number from 1 to 65535"),
        ({"remote": 5}, "`remote` is text"),
        ({"host": "sc://a"}, "`host` is a name or an address alone"),
        ({"host": "a:15002"}, "`port`, `token` and `use_ssl` are keys of their own"),
        ({"host": 127}, "`host` is text"),
        ({"host": "a", "port": "x"}, "`port` that is not a number"),
        ({"host": "a", "port": True}, "`port` that is not a number"),
        ({"host": "a", "token": 5}, "`token` is text"),
        ({"host": "a", "use_ssl": "yes"}, "`use_ssl` is true or false"),
        ({"host": "a", "use_ssl": 1}, "`use_ssl` is true or false"),
        ({"host": "a", "token": TOKEN, "use_ssl": False}, "sends a token over TLS alone"),
        ({"remote": "sc://a/;token=canary;use_ssl=false"}, "sends a token over TLS alone"),
        ({"host": "127.0.0.1", "token": TOKEN}, "without TLS to `localhost` alone"),
    ],
)
def test_what_contradicts_itself_is_refused_in_words_of_the_profile(said, message):
    assert message in refused(**said)


@pytest.mark.parametrize("store", ["./warehouse", "/mnt/store", "file:///mnt/store", "FILE:/mnt"])
@pytest.mark.parametrize("key", ["store", "defer_store"])
def test_a_folder_is_for_a_server_of_this_machine(store, key):
    said = {"store": STORE, key: store}
    for host in ("spark.example", "10.0.0.1", "2001:db8::1", "localhost.example"):
        message = refused(host=host, **said)
        assert f"`{key}` is a folder of this machine" in message
        assert "Name an object store (s3://bucket/folder and the like" in message
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"):
        credentials(host=host, **said)


@pytest.mark.parametrize(
    "key",
    [
        "spark.master",
        "spark.remote",
        "spark.driver.memory",
        "spark.executor.cores",
        "spark.hadoop.fs.s3a.access.key",
        "spark.jars.packages",
        "spark.app.name",
        "spark.ui.enabled",
        "spark.dynamicAllocation.enabled",
    ],
)
def test_what_a_spark_is_started_with_is_not_for_a_session(key):
    settings = {"spark.sql.shuffle.partitions": 2, "spark.databricks.x": 1, key: "canary"}
    message = refused(host="a", server_side_parameters=settings)
    assert f"set `{key}`, which a Spark is started with" in message
    KtkCredentials(schema="s", server_side_parameters=settings)


def test_a_metastore_is_of_a_spark_of_dbts_own():
    for settings in (
        {"spark.sql.catalogImplementation": "hive"},
        {"spark.sql.catalog.spark_catalog": "org.example.Catalog"},
    ):
        message = refused(host="a", server_side_parameters=settings)
        assert "name a metastore" in message and "the Spark of dbt's own process alone" in message


def test_what_a_session_may_have_is_left_to_the_server():
    settings = {"spark.sql.shuffle.partitions": 2, "spark.databricks.x": 1}
    assert credentials(host="a", server_side_parameters=settings).server == ConnectTarget("a")
