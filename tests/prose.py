"""How the project writes English: `make lint` checks pages, macros, comments and messages.

Each rule names what to write instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
    ROOT / "ktk_engine" / "README.md",
)
MACROS = sorted((ROOT / "dbt" / "include").rglob("*.sql"))
CODE = ("ktk_engine", "dbt")

BANNED = {
    r"whoever": "who; or say it of one case",
    r"anyone who|anybody who|everybody who|everyone who": "name them: users, readers, writers",
    r"nobody|no one": "say what does not happen, actively",
    r"beside": "next to, besides, or with",
    r"so (?:many|much)(?! that\b)": "this many, the same number, or the number",
    r"as far as": "if, while, or up to",
    r"but for": "except for",
    r"(?:is|are|was|were|be|been) (?:told|said)": "say who says it: dbt prints, the error names",
    r"lie|lies|lay there": "is, are, or is stored",
    r"(?:is|are|was|were) (?:\w+'s|ours|theirs|yours)(?: alone)?(?=[.,:;)]|$| and\b| or\b)": (
        "belongs to, comes from, or is done by"
    ),
    r"(?:is|are|was|were) asked": "say who asks whom",
    r"what is more|whereof|thereof|wherein|therein|hereby": "plain words",
    r"(?<!there )(?:is|are|was|were|be) no (?!longer|more|less|fewer)(?:\w+|`x`)": "is not a",
    r"of (?:ours|theirs|yours|\w+'s(?=[.,:;)]|$))": "our, their, Spark's before the noun",
    r"taken for (?!granted)\w+|(?:take|takes|took)(?: it| them| this| all| any \w+)? for \w+": (
        "reads as, treats as, or confuses with"
    ),
    r"says? of|said of|known of": "about",
    r"also (?:if|where|when)": "even if, including, or a sentence of its own",
    r"anew": "again, or a verb with re-: rewrites, rebuilds",
    r"stands?|stood|standing": "means, represents, remains, or is",
    r"(?-i:Of) (?!course|the|these|several|two)[^.,]{1,30}, \w+": "begin with the subject",
}
_RULES = [
    (re.compile(rf"(?<![\w`-])(?:{words})(?![\w`-])", re.I), instead)
    for words, instead in BANNED.items()
]
_CHAIN = re.compile(r"[^.!?;]*;[^.!?;]*;[^.!?]*")
_NUMBER = re.compile(r"^(\s*#* ?)\d+\. ")  # of a list, or of a heading
_TWO_SENTENCES = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?]['\")]* +(?=[A-Z])")


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule."""

    path: str
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}: {self.instead}"


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that are prose: no blocks of code, no inline code, no addresses."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            text = re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", "`x`", line)
            yield number, _NUMBER.sub(r"\1", text)


def prose_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and other texts of a module that have several words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, re.sub(r"`[^`]*`", "`x`", line)


def findings_in_page(path: str, text: str) -> Iterator[Finding]:
    for number, line in prose_of_page(text):
        yield from banned_words(path, number, line)
        if (
            path != "CHANGELOG.md"
            and not line.startswith("|")
            and (match := _TWO_SENTENCES.search(line))
        ):
            words = line[max(match.end() - 15, 0) : match.end() + 15]
            yield Finding(path, number, words, "one sentence a line")


def findings_in_module(path: str, text: str) -> Iterator[Finding]:
    for number, line in prose_of_code(text):
        yield from banned_words(path, number, line)


def banned_words(path: str, number: int, line: str) -> Iterator[Finding]:
    for rule, instead in _RULES:
        for match in rule.finditer(line):
            yield Finding(path, number, match[0], instead)
    if not line.startswith("|") and (match := _CHAIN.search(line)):
        yield Finding(path, number, match[0].strip()[:60], "sentences instead of semicolons")


def all_findings() -> Iterator[Finding]:
    for page in PAGES:
        yield from findings_in_page(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))
    for macro in MACROS:
        path = str(macro.relative_to(ROOT))
        for number, line in prose_of_page(macro.read_text(encoding="utf-8")):
            yield from banned_words(path, number, line)
    for folder in CODE:
        for module in sorted((ROOT / folder).rglob("*.py")):
            path = str(module.relative_to(ROOT))
            yield from findings_in_module(path, module.read_text(encoding="utf-8"))


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or ("",)
    found = [str(each) for each in all_findings() if each.path.startswith(chosen)]
    print("\n".join(found))
    sys.exit(f"{len(found)} places to write anew" if found else 0)
