"""The tokens of SQL, as Spark's lexer has them.

One regular expression cuts them, so their positions are exact for any text. sqlglot's tokenizer
differs from Spark's: it ends a comment at a line feed after a backslash, and changes with its
versions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ktk_engine.errors import QueryError

# Half of a surrogate pair, which is not a character: Python's strings may have it, UTF-8 may not.
HALF_CHARACTER = re.compile("[\ud800-\udfff]")

Kind = Literal["word", "quoted", "text", "number", "sign"]

# The kind of the next token. Comments and blanks are skipped, and a hint counts as a comment.
# Words may begin with a digit; it is a number only if no letter follows.
_TOKEN = re.compile(
    r"""
    [\s\u00a0]++ | --(?:\\\n|[^\r\n])*+
    | (?P<comment>/\*)
    | (?P<text>[rR]'[^']*+' | [rR]"[^"]*+"
        | '[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+' | "[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+")
    | (?P<quoted>`[^`]*+(?:``[^`]*+)*+`)
    | (?P<number>(?: (?:\d++\.\d*+|\.\d++)(?:[eE][+-]?\d++)?(?:[fFdD]|[bB][dD])?
        | \d++[eE][+-]?\d++(?:[fFdD]|[bB][dD])? | \d++(?:[lLsSyYfFdD]|[bB][dD])?) (?!\w))
    | (?P<word>[^\W\d_]++://[\w/.?=&\#%-]++ | \w++)
    | (?P<sign><=>|\|\||\|>|->|=>|::|<=|>=|<>|!=|==|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTES = frozenset("'\"`")
# What opens and closes a level, and what a query begins with.
OPENING, CLOSING = frozenset("([{"), frozenset(")]}")
FIRST_OF_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
_COMMENT_SIGN = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A word, a quoted name, a string literal, a number or a sign."""

    kind: Kind
    start: int
    end: int
    word: str  # in upper case, or a sign; empty for the other kinds

    @property
    def is_name(self) -> bool:
        """Whether it may be a name."""
        return self.kind in ("word", "quoted")


def tokenize(sql: str) -> list[Token]:
    """Cut any text into tokens, without blanks and comments.

    An unclosed quote is a sign, and so are all of its kind that follow: looking again for the end
    of each would take forever.
    """
    found: list[Token] = []
    match, at, end, unclosed = _TOKEN.match, 0, len(sql), set[str]()
    while at < end:
        if sql[at] in unclosed:
            found.append(Token("sign", at, at + 1, sql[at]))
            at += 1
            continue
        item = match(sql, at)
        assert item is not None  # any character is a sign
        kind, start, at = item.lastgroup, at, item.end()
        if kind == "comment":
            at = _end_of_comment(sql, at)
        elif kind == "word" or kind == "sign":
            found.append(Token(kind, start, at, item[0].upper()))  # type: ignore[arg-type]
            if item[0] in _QUOTES:
                unclosed.add(item[0])
        elif kind is not None:
            found.append(Token(kind, start, at, ""))  # type: ignore[arg-type]
    return found


def _end_of_comment(sql: str, at: int) -> int:
    """Where a comment ends, which may be nested; an unclosed one goes to the end."""
    depth = 1
    while depth:
        sign = _COMMENT_SIGN.search(sql, at)
        if sign is None:
            return len(sql)
        depth += 1 if sign[0] == "/*" else -1
        at = sign.end()
    return at


def replaced(sql: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Give a text with other texts from some places to others, in their order."""
    pieces, at = [], 0
    for start, end, text in changes:
        pieces += [sql[at:start], text]
        at = end
    return "".join([*pieces, sql[at:]])


def name_of(sql: str, token: Token) -> str:
    """Give the name that a word or a quoted name means."""
    text = sql[token.start : token.end]
    return text[1:-1].replace("``", "`") if token.kind == "quoted" else text


_ESCAPE = re.compile(
    r"\\(?:u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<o>[01][0-7]{2})|(?P<c>.))", re.DOTALL
)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT = frozenset("%_")  # patterns of LIKE need their backslashes


def text_of(sql: str, tokens: Sequence[Token]) -> str:
    """Give the text of adjacent string literals, which Spark joins."""
    return "".join(text_of_literal(sql[token.start : token.end]) for token in tokens)


def text_of_literal(literal: str) -> str:
    """Give the text of a string literal; a `QueryError` for an escape that is not a character."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    try:
        text = _ESCAPE.sub(_unescaped, literal[1:-1].replace(quote * 2, quote))
        if HALF_CHARACTER.search(text):  # two halves are one character, as in Java
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except (OverflowError, ValueError) as error:
        raise QueryError(
            f"The literal {literal[:100]!a} has an escape that is not a character."
        ) from error
    return text


def _unescaped(match: re.Match[str]) -> str:
    digits = match["u"] or match["U"]
    if digits:
        return chr(int(digits, 16))
    if match["o"]:
        return chr(int(match["o"], 8))
    char = match["c"]
    return f"\\{char}" if char in _KEPT else _ESCAPED.get(char, char)


_TO_SIMPLIFY = re.compile(r"--|/\*|\(\s*\(|[\"\\]|''|'\s*'|r'", re.IGNORECASE)


def simplified(sql: str) -> str:
    """Rewrite a query or an expression so that sqlglot reads in it what Spark does by default.

    It drops comments, hints too, because sqlglot ends them elsewhere. It also drops parentheses
    directly within others, because some thirty levels are too deep for sqlglot. A text, which may
    be several literals, becomes one whose only escapes are those of quotes and backslashes.
    """
    if not _TO_SIMPLIFY.search(sql):
        return sql
    tokens = tokenize(sql)
    left_out = _doubled(tokens)
    pieces, end = [], None
    for is_text, group in groupby(enumerate(tokens), lambda item: _is_joined(sql, item[1])):
        items = list(group)
        for index, token in items[:1] if is_text else items:
            if end is not None and token.start > end:
                pieces.append(" ")
            if is_text:
                text = text_of(sql, [item for _, item in items])
                pieces.append("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
            elif index not in left_out:
                pieces.append(sql[token.start : token.end])
            end = token.end
        end = items[-1][1].end
    return "".join(pieces)


def _is_joined(sql: str, token: Token) -> bool:
    """Whether it is a text, without `''`, which is a quote since Spark 4."""
    is_quoted = sql[token.start] == "'" and "''" in sql[token.start + 1 : token.end - 1]
    return token.kind == "text" and not is_quoted


def _doubled(tokens: Sequence[Token]) -> set[int]:
    """Which parentheses are directly within others, around one expression that is not a query."""
    closed: dict[int, int] = {}
    opened: list[int] = []
    lists: set[int] = set()
    for index, token in enumerate(tokens):
        if token.word == "(":
            opened.append(index)
        elif token.word == "," and opened:
            lists.add(opened[-1])
        elif token.word == ")" and opened:
            closed[opened.pop()] = index
    found: set[int] = set()
    for start, end in closed.items():
        is_within = closed.get(start - 1) == end + 1
        if is_within and start not in lists and tokens[start + 1].word not in FIRST_OF_QUERY:
            found |= {start, end}
    return found


def split_statements(sql: str) -> list[str]:
    """Cut a text at semicolons, except in quotes, comments and scripts; no statement is empty."""
    starts, ends, tokens = [0], [], tokenize(sql)
    is_script = bool(tokens) and tokens[0].word == "BEGIN"
    for token in tokens:
        if token.word == ";" and not is_script:
            ends.append(token.start)
            starts.append(token.end)
    firsts = [bisect_left(tokens, start, key=_start) for start in starts]
    return [
        sql[start:end].strip()
        for start, end, first in zip(starts, [*ends, len(sql)], firsts, strict=True)
        if first < len(tokens) and tokens[first].start < end
    ]


def _start(token: Token) -> int:
    return token.start
