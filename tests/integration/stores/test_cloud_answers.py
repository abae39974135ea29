"""What an object store answers, or does not: no false answer, no secret in what people see."""

from __future__ import annotations

import dataclasses
import pickle
import traceback

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import (
    FormatError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    TokenMismatchError,
)
from ktk_engine.format.file_digest import digest_of_file  # deep: digests of answers
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.cloud.cloud_store import CloudStore
from ktk_engine.store.open_store import open_store
from ktk_engine.store.warehouse import Warehouse, probe
from tests.servers.fault_proxy import FAULTS
from tests.servers.s3 import SECRET
from tests.support.queries import read_data_file


@pytest.fixture
def store(s3_server, proxy):
    """A store behind the proxy, which waits for nothing."""
    opened = proxy.behind(s3_server)
    return CloudStore(opened._cloud, Backoff(tries=4, sleep=lambda seconds: None))


def xml(status, code, message="It is so."):
    return status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_changes_no_answer(store, proxy, fault):
    def broken(method, part=""):
        proxy.once(fault, method, part)

    broken("PUT")
    store.put_if_absent("a", b"one" * 100)
    broken("PUT")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"two" * 100)
    for read in (store.get, lambda key: store.get_with_token(key)[0]):
        broken("GET")
        assert read("a") == b"one" * 100
    broken("GET")
    assert store.get_range("a", 3, 100) == (b"one" * 100)[3:103]
    broken("HEAD")
    assert store.exists("a")
    broken("HEAD")
    assert not store.exists("b")
    broken("GET")
    with pytest.raises(ObjectNotFoundError):
        store.get("b")
    broken("GET")
    assert [info.key for info in store.list()] == ["a"]
    broken("GET")
    assert store.list_names() == ["a"]
    _, token = store.get_with_token("a")
    broken("PUT")
    store.replace("a", b"three", token)
    broken("PUT")
    with pytest.raises(TokenMismatchError):
        store.replace("a", b"four", token)
    broken("PUT")
    store.put("c", b"1")
    broken("POST")
    store.delete(["c", "d"])
    assert [info.key for info in store.list()] == ["a"]
    assert store.get("a") == b"three"
    assert proxy.faults[fault] >= 12


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_changes_no_answer_in_tasks(store, proxy, fault):
    table = pa.table({"x": range(100_000)})
    store.put("a", b"0123456789" * 100)
    copy = pickle.loads(pickle.dumps(store))
    proxy.once(fault, "HEAD")
    assert copy.get_range("a", 5, 10) == b"5678901234"
    proxy.once(fault, "GET")
    assert copy.get("a") == b"0123456789" * 100
    proxy.once(fault, "PUT")
    with copy.open_write("t.parquet") as sink:
        pq.write_table(table, sink)
    proxy.once(fault, "GET")
    with copy.open_read("t.parquet") as source:
        assert pq.read_table(source).equals(table)


def test_another_write_of_the_same_key_is_not_taken_for_mine(store, proxy):
    """Mine never arrived; another's came before I asked again."""

    def decide(method, path):
        if method != "PUT":
            return None
        proxy.decide = lambda method, path: None
        store.put("log/1", b"theirs")
        return "cut"

    proxy.decide = decide
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("log/1", b"mine")
    assert store.get("log/1") == b"theirs"


@pytest.mark.parametrize("fault", ["cut", "refuse", "lost", "lost 500", xml(429, "TooMany")])
def test_no_answer_at_all_is_unknown_and_never_missing(store, proxy, fault):
    store.put("a", b"1")
    proxy.decide = lambda method, path: fault
    calls = [
        lambda: store.get("a"),
        lambda: store.get("missing"),
        lambda: store.exists("missing"),
        lambda: store.get_range("missing", 0, 1),
        lambda: list(store.list()),
        lambda: store.list_names(),
        lambda: store.delete(["a"]),
        lambda: store.put("a", b"2"),
        lambda: store.put_if_absent("b", b"2"),
        lambda: store.replace("a", b"2", '"x"'),
    ]
    for call in calls:
        before = len(proxy.requests)
        with pytest.raises(StoreError, match=store.url) as caught:
            call()
        assert type(caught.value) is StoreError
        assert caught.value.nothing_written == (isinstance(fault, tuple) and call in calls[-2:])
        assert len(proxy.requests) - before == store._patience.tries


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (xml(403, "AccessDenied"), "permission to list, read, write and delete in ktk-tests"),
        (xml(403, "SignatureDoesNotMatch"), "access_key_id"),
        (xml(301, "PermanentRedirect"), "Set the region of ktk-tests"),
        (xml(400, "AuthorizationHeaderMalformed"), "Set the region of ktk-tests"),
        (xml(501, "NotImplemented"), "use another store"),
        (xml(404, "NoSuchBucket"), "Is there a bucket ktk-tests?"),
    ],
)
def test_a_refusal_is_said_at_once_and_says_what_to_do(store, proxy, answer, advice):
    proxy.decide = lambda method, path: answer
    for call in (
        lambda: store.get("a"),
        lambda: list(store.list()),
        lambda: store.put_if_absent("a", b""),
        lambda: store.replace("a", b"", '"x"'),
        lambda: store.put("a", b""),
    ):
        before = len(proxy.requests)
        with pytest.raises(StoreError) as caught:
            call()
        assert type(caught.value) is StoreError
        assert len(proxy.requests) == before + 1
        assert advice in str(caught.value)
        assert store.url in str(caught.value)
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("a", b"")
    assert caught.value.nothing_written


def test_a_busy_store_is_not_one_that_has_the_object(store, proxy):
    """S3 says 409 while another conditional put is under way, which may come to nothing."""
    proxy.once(xml(409, "ConditionalRequestConflict"), "PUT")
    store.put_if_absent("a", b"1")
    assert store.get("a") == b"1"
    proxy.decide = lambda method, path: xml(409, "ConditionalRequestConflict")
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("b", b"1")
    assert type(caught.value) is StoreError
    assert caught.value.nothing_written


def test_a_server_without_conditions_is_found_at_once(s3_server, proxy, monkeypatch):
    """Some answer 200 and overwrite: the proxy takes the conditions out of requests."""
    from tests.servers import fault_proxy

    ask = fault_proxy._Handler._ask

    def without_conditions(self, body):
        for name in ("If-None-Match", "If-Match"):
            del self.headers[name]
        return ask(self, body)

    monkeypatch.setattr(fault_proxy._Handler, "_ask", without_conditions)
    options = {**s3_server.options, "endpoint": proxy.endpoint}
    url = s3_server.new_url()
    with pytest.raises(StoreError, match="safely: it overwrites an object that exists"):
        probe(open_store(url, options))
    warehouse = Warehouse(url, options)
    with pytest.raises(StoreError, match="safely: it overwrites an object that exists"):
        warehouse.create_schema("an")  # the first write of a project
    assert warehouse.schemas() == []


def test_a_store_that_fails_is_no_damaged_file(store, proxy):
    table = pa.table({"x": range(200_000), "y": [str(n) for n in range(200_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    store.put("t.parquet", data)
    copy = pickle.loads(pickle.dumps(store))
    for files in (store, copy):
        for digest in (digest_of_file(data), None):
            assert read_data_file(files, "t.parquet", digest, ["y"]).num_rows == 200_000
    reads = iter(range(10))
    proxy.decide = lambda method, path: "cut" if next(reads, 99) >= 1 else None
    for digest in (digest_of_file(data), None):
        reads = iter(range(10))
        with pytest.raises(StoreError, match="cannot read") as caught:
            read_data_file(store, "t.parquet", digest, ["y"])
        assert type(caught.value) is StoreError
    proxy.decide = lambda method, path: None
    store.put("t.parquet", data[:1000] + b"damage" + data[1006:])
    with pytest.raises(FormatError, match=r"t\.parquet of s3://.* is damaged"):
        read_data_file(store, "t.parquet", digest_of_file(data))


def test_no_secret_is_shown(store, proxy, s3_server, caplog):
    caplog.set_level("DEBUG")
    assert SECRET not in repr(store) + str(store) + store.url + store.uri("a")
    assert SECRET not in repr(store._cloud) + repr(vars(store))
    proxy.decide = lambda method, path: xml(403, "SignatureDoesNotMatch", f"not {SECRET} here")
    for files in (store, pickle.loads(pickle.dumps(store))):
        with pytest.raises(StoreError) as caught:
            files.get("a")
        shown = "".join(traceback.format_exception(caught.value))
        assert SECRET not in shown + repr(caught.value.__cause__) + caplog.text
    assert SECRET not in repr(dataclasses.replace(store._cloud))


def test_a_pickle_holds_what_tasks_need_and_nothing_else(s3_server, monkeypatch):
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "canary-of-another-key")
    given = {**s3_server.options, "session_token": ""}
    data = pickle.dumps(open_store("s3://ktk-tests/x", given))
    assert b"canary-of-another-key" not in data
    by_environment = open_store("s3://ktk-tests/x")
    assert SECRET.encode() not in repr(vars(by_environment)).encode()
    assert SECRET.encode() in pickle.dumps(by_environment)  # which tasks elsewhere may not have


def test_tasks_need_no_obstore(store, monkeypatch):
    import builtins

    store.put("a", b"1")
    data = pickle.dumps(store)
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] in ("obstore", "boto3", "botocore"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    copy = pickle.loads(data)
    assert copy.get("a") == b"1"
    assert copy.get_range("a", 0, 1) == b"1"
    with copy.open_write("b") as sink:
        sink.write(b"2")
    with copy.open_read("b") as source:
        assert source.read() == b"2"
    with pytest.raises(ObjectNotFoundError):
        copy.get("c")
