"""Reduces Spark's errors to the part that helps the author of a model."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import without_secrets
from ktk_engine.spark.client.connect import lost_session

_CANCELLED = "[OPERATION_CANCELED]"
# The prefix of errors that have no Python class in Spark Connect.
_CLASS_OF_JAVA = re.compile(r"\A\(org\.apache\.spark[\w.$]*\) ")
_OF_JAVA = re.compile(r"\[JVM_ATTRIBUTE_NOT_SUPPORTED\] Attribute `(\w+)`")
# An error of `raise_error`, whose message is complete.
_RAISED = re.compile(r"\A\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: P0001)?\Z", re.DOTALL)
_WAITED = "Exception thrown in awaitResult"
_MISSING = "TABLE_OR_VIEW_NOT_FOUND"
# Spark's analyzer appends the position and the plan to its message.
_QUOTED = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_PLACE = re.compile(r"; line (\d+) pos \d+(?:;\n.*)?\Z", re.DOTALL)
_PLAN = re.compile(r";\n.*\Z", re.DOTALL)
_PARSED = re.compile(r"\n\n== SQL ==\n(.*?\n-*\^\^\^)(?:\n.*)?\Z", re.DOTALL)
_DAMAGED = (
    "If the file is a model's and damaged, restore it from a backup, or rebuild the model with "
    "--full-refresh: `ktk check --deep` lists every damaged file. If it is a source's, ask for "
    "another copy of it."
)
# Our line that called Spark does not help the author of the SQL.
_OWN_CALL = re.compile(r'\n== DataFrame ==\n"[^"\n]*" was called from\n[^\n]*ktk_engine/[^\n]*')
_NEAR = re.compile(r"Syntax error at or near '(\w+)'")
# Statements of Delta Lake, and the command that does the same.
_COMMANDS = {
    "optimize": "ktk_compact",
    "vacuum": "ktk_cleanup",
    "restore": "ktk_restore",
    "undrop": "ktk_undrop",
}
_OWN_LIMIT = (
    "\nIf this is dbt show: it appends a limit of its own. Leave yours out, and give --limit, "
    "which is 5 by default and -1 for all rows."
)
_SHOWN_LINES = 3
_CLEANED = (
    "If a clean-up ran meanwhile, it removed a version that was still being read. Run it again,\n"
    "and let clean-ups keep versions for longer than statements take (ktk cleanup --older-than)."
)
_PYSPARKS_FRAME = re.compile(
    r'^  File "[^"\n]*/(?:pyspark|py4j)[^"\n]*", line.*\n(?:    .*\n)*', re.MULTILINE
)


def spark_ended() -> str:
    """Say why Spark ended, if it did: each call then fails with a long message."""
    if "py4j" not in sys.modules:  # Spark runs elsewhere
        return ""
    from ktk_engine.spark.session.liveness import why_ended

    return why_ended()


def spark_message(error: Exception, hint: str = "") -> str | None:
    """Give the message of Spark's error without Java's stack or a plan; None for other errors.

    `hint` says what to do about a missing relation; see `missing_hint`.
    """
    module = type(error).__module__
    if lost := lost_session(error):
        return lost
    if module.startswith("py4j"):
        if "SPARK_JOB_CANCELLED" in str(error):
            return "Spark's job was cancelled, but not by dbt."
        text = _java_message(error) or str(error)
    elif module.startswith("pyspark.errors"):
        text = str(error).split("\nJVM stacktrace", 1)[0]
    else:
        return None
    text = text.split("\n\tat ", 1)[0].split("\n\nDriver stacktrace:", 1)[0].strip()
    text = without_secrets(_RAISED.sub(r"\1", _CLASS_OF_JAVA.sub("", text)))
    if _CANCELLED in text[:200]:
        return "Spark's job was cancelled, but not by dbt."
    if match := _OF_JAVA.match(text):
        return _no_java(match[1])
    if text.startswith(f"[{_MISSING}]"):
        return _missing(text, hint)
    if text.startswith("[FAILED_READ_FILE"):
        text = "\n".join([text, *_causes(f"{java_stack(error)}\n{error}")])
        if "FILE_NOT_EXIST" in text:
            text += f"\n{_CLEANED}"
        elif ".parquet" in text.split("\n", 1)[0]:
            text += f"\n{_DAMAGED}"
    return _shortened(text)


def _no_java(attribute: str) -> str:
    """What to use in place of features of classic sessions."""
    return (
        f"`{attribute}` belongs to a Spark in this process, and over Spark Connect there is none. "
        "Use frames and SQL (mapInArrow, mapInPandas, applyInPandas, session.sql), or run this "
        "with `method: session` in the profile."
    )


def java_stack(error: Exception) -> str:
    """Give Java's stack of an error for the log file; empty without one."""
    return str(getattr(error, "_stackTrace", None) or getattr(error, "java_exception", None) or "")


def _shortened(text: str) -> str:
    """Drop plans and PySpark's own frames; of a query, keep the wrong lines."""
    text = _OWN_CALL.sub("", text)
    if match := _PARSED.search(text):
        *lines, marker = match[1].split("\n")
        shown = "\n".join([*lines[-_SHOWN_LINES:], marker])
        return f"{text[: match.start()]}\n{shown}{_elsewhere(text)}"
    if match := _PLACE.search(text):
        return f"{text[: match.start()]} (line {match[1]} of the SQL)"
    if "Traceback (most recent call last)" in text:
        return _workers(text)
    return _PLAN.sub("", text)


def _elsewhere(text: str) -> str:
    """The equivalent here of a statement of Delta Lake, or of a second limit."""
    near = _NEAR.search(text)
    if near and near[1].lower() == "limit":
        return _OWN_LIMIT
    operation = _COMMANDS.get(near[1].lower(), "") if near else ""
    command = operation.replace("_", " ")
    return f"\nHere that is {command}, or dbt run-operation {operation}." if operation else ""


def _workers(text: str) -> str:
    """The error of a Python worker: our messages are complete, others need their frames."""
    from ktk_engine.spark.session.spark_job import worker_error

    own = worker_error(text)
    return _PYSPARKS_FRAME.sub("", text) if own is None else own.said(DBT)


def _causes(stack: str) -> list[str]:
    """Why a file was unreadable: Spark's cause names the malformed row of a CSV."""
    found = re.findall(r"^Caused by: [\w.$]+: (.+)$", stack, re.MULTILINE)
    return list(dict.fromkeys([found[0], found[-1]])) if found else []


def missing_hint(node: str = "", sources: Sequence[str] = (), has_models: bool = True) -> str:
    """Say what to do about a missing relation.

    `node` is the node that reads it, empty if dbt cannot select it. No build makes its `sources`;
    `has_models` says that it also reads what a build makes.
    """
    said = []
    if has_models or not sources:
        first = f": dbt build --select +{node} builds all that it refers to" if node else ""
        said.append(f"If it is a model, seed or snapshot of this project, build it first{first}.")
    if sources:
        kind = "the source" if len(sources) == 1 else "one of the sources"
        said.append(
            f"If it is {kind} {', '.join(sources)}: dbt does not build it. Load it, or correct its "
            "`schema` and `identifier`."
        )
    return "\n".join(said)


def _missing(text: str, hint: str) -> str:
    """A missing relation: mostly a model that is not built yet."""
    name = _QUOTED.search(text)
    place = _PLACE.search(text)
    where = f" (line {place[1]} of the SQL)" if place else ""
    if name and name[0] in ("`history`", "`detail`") and "DESCRIBE" in text.upper():
        return (
            f"[{_MISSING}] DESCRIBE HISTORY and DETAIL belong to Delta: use ktk history, ktk info."
        )
    shown = name[0] if name else ""
    return f"[{_MISSING}] There is no table or view {shown}{where}.\n{hint or missing_hint()}"


def _java_message(error: Exception) -> str:
    """The first message in a chain of Java exceptions that is more than a wrapper; else empty."""
    exception: Any = getattr(error, "java_exception", None)
    while exception is not None:
        message = str(exception.getMessage() or "")
        kind = str(exception.getClass().getName())
        if not kind.endswith(".ExecutionException") and not message.startswith(_WAITED):
            return message or kind
        exception = exception.getCause()
    return ""
