"""Columns of frames are chosen and cast by name, with few calls of Java."""

from __future__ import annotations

import py4j.clientserver
import pytest
from pyspark.sql import types as st

from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.frames import column, with_types

NAMES = ["a.b", "c`d", "e/f=%", "ü", "*", "a", "Select"]


@pytest.fixture
def frame(spark):
    return spark.range(2).selectExpr(*["id"] * len(NAMES)).toDF(*NAMES)


@pytest.fixture
def calls(monkeypatch):
    """The commands that Python sends to Java, but for those that give objects back."""
    sent = []
    send = py4j.clientserver.ClientServerConnection.send_command

    def noted(self, command):
        if not command.startswith("m\n"):
            sent.append(command)
        return send(self, command)

    monkeypatch.setattr(py4j.clientserver.ClientServerConnection, "send_command", noted)
    return sent


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1], ["*"], ["a.b", "a"], ["a"] * 3, []])
def test_names_are_taken_as_they_are(frame, names):
    assert select_names(frame, names).columns == names


def test_no_sign_of_a_name_divides_names(spark):
    names = ["first", "zero \0 byte", "line\nend", "\\0", "\\", "", " ", "\u2028", "𝄞"]
    frame = spark.range(1).selectExpr(*["id"] * len(names)).toDF(*names)
    assert select_names(frame, names).columns == names
    kept = [name for name in names if "\0" not in name]
    assert select_names(frame, kept).columns == kept


def test_names_are_a_few_calls_of_java(frame, calls):
    select_names(frame, NAMES * 10)
    assert len(calls) < 10


def test_a_column_is_a_few_calls_of_java(spark, calls):
    """PySpark does not note which line made it, ten calls more."""
    column("a")  # PySpark asks at the first one whether it has to
    calls.clear()
    column("a")
    assert 0 < len(calls) < 5


def test_only_other_types_are_cast(frame, calls):
    assert with_types(frame, dict.fromkeys(NAMES, st.LongType())) is frame
    assert len(calls) < 10
    cast = with_types(frame, {"a.b": st.StringType(), "ü": st.LongType(), "*": st.DoubleType()})
    types = [field.dataType.simpleString() for field in cast.schema]
    assert cast.columns == NAMES
    assert types == ["string", *["bigint"] * 3, "double", *["bigint"] * 2]
    assert cast.collect()[1][0] == "1"
