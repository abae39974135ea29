"""The fenced blocks of a page, and what each asks for.

A page's blocks are one story, told in a copy of the sample project:

- `sql`, `yaml`, `python` and `csv` blocks in which a comment names a file (`-- models/x.sql: why`)
  put it into the project, CSV without that comment; a block may hold several. They are built
  before the next block that names no file and has no `dbt build` or `dbt run` itself.
- `shell` blocks hold commands, `dbt ...` or `ktk ...`, a line each.
- `console` blocks hold commands after `$ `, and what they say.
- `python` blocks that name no file are run.
- `text` blocks show what was said up to there.

A comment before a block, on a line of its own, says what is special: `<!-- fails -->` or
`<!-- not run: the reason -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^(?:<!-- (?P<remark>(?:fails|not run: [^\n]+?)) -->\n+)?"
    r"^(?P<fence>```+)(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"^(?:--|#) ((?:[\w-]+/)*[\w-]+\.(?:sql|yml|py|csv))(?::.*)?$", re.MULTILINE)
_COMMENTED = ("sql", "yaml", "python", "csv")


@dataclass(frozen=True)
class Snippet:
    """One fenced block: its language, its lines, and the line of the page where they begin."""

    language: str
    text: str
    line: int
    remark: str

    @property
    def fails(self) -> bool:
        return self.remark == "fails"

    @property
    def is_run(self) -> bool:
        return not self.remark.startswith("not run")

    @property
    def files(self) -> dict[str, str]:
        """The files in it, by their paths; what is before the first is lost in none."""
        if self.language not in _COMMENTED:
            return {}
        starts = list(_FILE.finditer(self.text))
        ends = [*(start.start() for start in starts[1:]), len(self.text)][: len(starts)]
        if starts and self.text[: starts[0].start()].strip():
            raise ValueError(f"line {self.line}: something is before the first file's name")
        return {
            start[1]: self.text[
                start.end() + 1 if start[1].endswith(".csv") else start.start() : end
            ]
            for start, end in zip(starts, ends, strict=True)
        }

    @property
    def builds(self) -> bool:
        """Whether its commands themselves build what the files before it define."""
        return any(re.match(r"dbt (build|run)( |$)", command) for command in self.commands)

    @property
    def commands(self) -> list[str]:
        lines = self.text.splitlines()
        if self.language == "console":
            return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip()] if self.language == "shell" else []


def snippets_of(page: str) -> list[Snippet]:
    """The blocks of a page in its order.

    Args:
        page: the page's text.

    Raises:
        ValueError: a fence that opens and does not close.
    """
    found = [
        Snippet(
            match["language"],
            match["text"],
            page.count("\n", 0, match.start("text")) + 1,
            match["remark"] or "",
        )
        for match in _BLOCK.finditer(page)
    ]
    fences = len(re.findall(r"^```", page, re.MULTILINE))
    if fences != 2 * len(found):
        raise ValueError(f"{fences} fences, but {len(found)} blocks")
    return found
