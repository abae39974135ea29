"""What ways to rows have in common: the questions that they answer, and their records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ktk_engine.errors import KtkError
from tests.golden.canonical import message_lines
from tests.golden.changed import Changed
from tests.golden.changes import Question, questions, refused_questions
from tests.golden.records import records

SEED = 5
# The lines of rows.
Way = Callable[[Any], list[str]]


def check_way(
    changed: Changed,
    name: str,
    way: Way,
    only: Callable[[Question], bool],
    refused: bool = True,
) -> None:
    """Compare the rows that a way gives with those that are recorded for all ways.

    Args:
        changed: the state.
        name: of the way.
        way: gives the rows of a question.
        only: whether the way takes a question.
        refused: whether to ask what is refused, too.
    """
    faulty = refused_questions(changed.before)
    with records(f"questions-{changed.before.storage}", name) as found:
        for question in (*questions(changed.before), *faulty):
            title = title_of(question)
            if not only(question) or (question in faulty and not refused):
                found.leave_out(title)
                continue
            try:
                lines = way(question)
            except KtkError as error:
                lines = message_lines(str(error))
            found.check(title, lines)


def every(question: Question) -> bool:
    return True


def is_plain(question: Question) -> bool:
    """Whether a question has only columns and a condition, so that SQL can say it."""
    return set(question) <= {"columns", "where"} and question.get("columns") != []


def title_of(question: Question) -> str:
    """The title of its record."""
    return ", ".join(f"{key} {value!r}" for key, value in question.items()) or "everything"
