"""What is said about addresses of Spark Connect servers."""

from __future__ import annotations

import traceback

import pytest
from pyspark.errors import ParseException

from ktk_engine.errors import SessionError
from ktk_engine.spark.client.connect import ConnectClient
from ktk_engine.spark.session.connect import connect_session, shown

SECRET = "canary-3b1c"


@pytest.mark.parametrize(
    "remote",
    [
        f"sc://localhost:9/;token={SECRET}==",
        f"sc://localhost:9/;{SECRET}",
        f"sc://localhost:9/{SECRET}",
        f"sc://localhost:x/;token={SECRET}",
        f"http://localhost:9/;token={SECRET}",
    ],
)
def test_no_error_shows_the_secrets_of_an_address(remote):
    pytest.importorskip("grpc", reason="Spark Connect is not installed")
    with pytest.raises(SessionError) as error:
        connect_session(remote)
    assert SECRET not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    ("remote", "text"),
    [
        (f"sc://host:15002/;token={SECRET}", "sc://host:15002"),
        (f"sc://{SECRET}@host:15002/;token=x", "sc://host:15002"),
        (f"sc://user:{SECRET}@host/", "sc://host"),
        (f"sc://a@{SECRET}@host", "sc://host"),
        ("sc://[::1]:15002", "sc://[::1]:15002"),
    ],
)
def test_an_address_is_shown_without_users_and_secrets(remote, text):
    assert shown(remote) == text


@pytest.mark.parametrize(
    ("line", "position", "sql"),
    [(1, 8, "where 1"), (1, 15, "select (]"), (3, 2, "select\n1,\n) from t")],
)
def test_a_syntax_error_has_the_places_of_the_statement(line, position, sql):
    def error(text, position):
        lines = text.split("\n")
        lines.insert(line, "-" * position + "^^^")
        said = f"[PARSE_SYNTAX_ERROR] Syntax error. (line {line}, pos {position})"
        return "\n".join([f"{said}\n\n== SQL ==", *lines])

    class Server:
        def sql(self, text):
            raise ParseException(error(text, position))

    client = ConnectClient.__new__(ConnectClient)
    client.session = Server()
    with pytest.raises(ParseException) as caught:
        client.check_syntax(sql)
    assert str(caught.value) == error(sql, position - 8 if line == 1 else position)
