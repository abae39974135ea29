"""What the engine answered when the records were written, and how an answer is compared with it.

A file of `tests/golden/records` has sections: a line `## title`, then lines of text. A section
with the title `## title @ executor` holds for this executor alone, the others for all of them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).parent / "records"
_TITLE, _OF = "## ", " @ "


class Records:
    """The sections of one file, as one executor answers them.

    Make one with `records`, which looks at its end whether every section was asked for.
    """

    def __init__(self, file: str, executor: str) -> None:
        self._path = FOLDER / f"{file}.txt"
        self._executor = executor
        self._sections = _read(self._path)
        self._asked: set[str] = set()
        self._failures: list[str] = []

    def check(self, title: str, lines: Iterable[str]) -> None:
        """Compare an answer with the recorded one; `records` raises for all that differ.

        Args:
            title: names the section: what is changed, and the seed.
            lines: the answer, without an end of line.
        """
        found, own = list(lines), f"{title}{_OF}{self._executor}"
        assert title not in self._asked, f"two records are named {title}"
        self._asked.add(title)
        if os.environ.get("KTK_GOLDEN") == "write":
            if self._sections.setdefault(title, found) != found:
                self._sections[own] = found
            return
        wanted = self._sections.get(own, self._sections.get(title))
        if wanted is None:
            self._failures.append(f"{own} is not recorded. Found:\n" + "\n".join(found))
        elif found != wanted:
            diff = difflib.unified_diff(wanted, found, "recorded", "found", lineterm="", n=1)
            self._failures.append("\n".join([own, *diff]))

    def leave_out(self, title: str) -> None:
        """Say that this executor has no answer of a section."""
        self._asked.add(title)

    def problems(self, whole: str) -> list[str]:
        """Give what differs, and what was recorded and not asked for; or write what was answered.

        Args:
            whole: how the titles start that were asked for.
        """
        if os.environ.get("KTK_GOLDEN") == "write":
            _write(self._path, self._sections)
        left = {title for title in self._sections if _OF not in title} - self._asked
        found = [f"{t} is recorded, and was not answered" for t in left if t.startswith(whole)]
        return [f"{self._path.name}: {text}" for text in (*self._failures, *sorted(found))]


@contextmanager
def all_records(
    files: Mapping[str, str], executor: str, whole: str = ""
) -> Iterator[dict[str, Records]]:
    """Compare answers with files of records.

    Args:
        files: their names, by keys of the caller's.
        executor: who answers.
        whole: how the titles start of which all are asked for.

    Raises:
        AssertionError: at the end, with a diff of everything that is not as it is recorded.
    """
    found = {key: Records(file, executor) for key, file in files.items()}
    yield found
    problems = [text for each in found.values() for text in each.problems(whole)]
    if problems:
        texts = "\n\n".join(problems)
        raise AssertionError(
            f"{len(problems)} records differ. If that is meant: python -m tests.golden\n\n{texts}"
        )


@contextmanager
def records(file: str, executor: str, whole: str = "") -> Iterator[Records]:
    """Compare answers with one file of records; see `all_records`."""
    with all_records({file: file}, executor, whole) as found:
        yield found[file]


def _read(path: Path) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for section in f"\n{text}".split(f"\n{_TITLE}")[1:]:
        title, *lines = section.rstrip("\n").split("\n")
        sections[title] = lines
    return sections


def _write(path: Path, sections: dict[str, list[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    texts = ("\n".join((f"{_TITLE}{title}", *lines)) for title, lines in sections.items())
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
