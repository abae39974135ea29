"""Checks SQL that a store holds, before Spark gets it: others may have written it.

See docs/design/statements.md, Stored text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ktk_engine.errors import QueryError
from ktk_engine.messages import Message, Remedy
from ktk_engine.sql.spark_functions import FUNCTIONS, REFUSED
from ktk_engine.sql.statement import Statement, read_statement
from ktk_engine.sql.token import Token, name_of, tokenize
from ktk_engine.types.quote import quote_identifier

# Spark replaces these anywhere in a text: `${env:HOME}`, `${spark.x}`.
SUBSTITUTION = re.compile(r"\$\{\S(?:[^\s}$]|\$(?!\{[^}]))*+\}")
_LONGEST_NUMBER = 1_000  # digits; Python reads 4,300 at most
_PLAIN_HINT = re.compile(r"/\*\+[\w\s.,()]*\*/")
# All that Spark's lexer knows: `$` begins a literal that `tokenize` does not know.
_SIGNS = frozenset("()[],.:?=<>!+-*/%~&|^") | frozenset(
    {"<=>", "||", "|>", "->", "=>", "::", "<=", ">=", "<>", "!=", "==", "<<", ">>"}
)
# Words of the grammar before parentheses. A name in backticks is none of them.
_WORDS = """
    ALL AND ANY AS BETWEEN BY CASE CHAR CHARACTER CUBE DEC DECIMAL DISTINCT DIV ELSE ESCAPE EXCEPT
    EXISTS EXTEND FILTER FOR FROM GROUPING HAVING ILIKE IN INTERSECT INTERVAL IS JOIN LATERAL LIKE
    LIMIT MINUS NOT NUMERIC OF OFFSET ON OR OVER PIVOT QUALIFY RECURSIVE REGEXP REPEATABLE RLIKE
    ROLLUP SELECT SET SETMINUS SETS SOME TABLE TABLESAMPLE THEN TIME TIMESTAMP TIMESTAMPADD
    TIMESTAMPDIFF TIMESTAMP_LTZ TIMESTAMP_NTZ TRY_CAST UNION UNPIVOT USING VALUES VARCHAR WHEN WHERE
    WITH WITHIN
"""
_SYNTAX = frozenset(_WORDS.split())
# An alias with names of columns follows them, and no call.
_BEFORE_ALIAS = frozenset({"AS", "WITH", "RECURSIVE", ")"})
_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "("})


def stored_query(view: str, sql: str, is_foreign: bool = False) -> Statement:
    """Read the text of a stored view as Spark is to get it: without comments.

    It is one query, which runs no program and reads no file by a path. One that `is_foreign`, of
    another store, only calls functions of Spark that compute from their arguments. Raises a
    `QueryError` that names the view.
    """
    text, tokens = _lexed(sql)
    statement = read_statement(text, tokens)
    problem = _problem_of_query(statement, tokens, is_foreign)
    if not problem and '"' in text:  # with doubleQuotedIdentifiers these are names
        named = _with_names(text, tokens)
        problem = _problem_of_query(read_statement(named), tokenize(named), is_foreign)
    if problem:
        raise QueryError(
            Message(f"{view} {problem}, which no stored view may. ", Remedy("no_view"))
        )
    return statement


def check_expression(sql: str) -> None:
    """Refuse a stored condition that would run a program; raises a `QueryError`."""
    text, tokens = _lexed(sql)
    for read in (text, _with_names(text, tokens)):
        if problem := _problem(Statement(read), tokenize(read), False):
            raise QueryError(f"The condition `{sql}` {problem}, which no stored condition may.")


def calls(sql: str) -> list[str]:
    """The names of the functions that a checked text calls, in lower case."""
    tokens = tokenize(sql)
    words = [token.word for token in tokens]
    found = (at for at in range(len(words) - 1) if words[at + 1] == "(")
    return sorted({name_of(sql, tokens[at]).lower() for at in found if _is_call(tokens, words, at)})


def _lexed(sql: str) -> tuple[str, list[Token]]:
    """Leave out comments, which Spark may end elsewhere than `tokenize`, and last semicolons.

    Gives the text that is left, and its tokens.
    """
    found, tokens, pieces, at = tokenize(sql), list[Token](), list[str](), 0
    while found and found[-1].word == ";":
        found.pop()
    end = found[0].start if found else 0
    if "--" not in sql and "/*" not in sql:
        return sql[: found[-1].end] if found else "", found
    for token in found:
        if token.start > end:
            gap = sql[end : token.start].strip()
            pieces.append(f" {gap} " if gap and _PLAIN_HINT.fullmatch(gap) else " ")
            at += len(pieces[-1])
        pieces.append(sql[token.start : token.end])
        end = token.end
        tokens.append(Token(token.kind, at, at + end - token.start, token.word))
        at += end - token.start
    return "".join(pieces), tokens


def _with_names(text: str, tokens: Sequence[Token]) -> str:
    """The text as it is read if texts in double quotes are names."""
    pieces, end = list[str](), 0
    for token in tokens:
        if token.kind == "text" and text[token.start] == '"':
            name = text[token.start + 1 : token.end - 1].replace('""', '"')
            pieces += [text[end : token.start], quote_identifier(name)]
            end = token.end
    return "".join([*pieces, text[end:]])


def _problem_of_query(statement: Statement, tokens: Sequence[Token], is_foreign: bool) -> str:
    """What a text does that it may not, as a predicate; empty if there is nothing."""
    if not statement.is_query:
        return "is no query"
    for reference in statement.references:
        name = ".".join(reference.parts)
        if SUBSTITUTION.search(name):
            return f"reads a setting of the session (`{name}`)"
        if len(reference.parts) == 2 and any(sign in name for sign in "/\\:"):
            return f"reads a file by its path ({name})"
    return _problem(statement, tokens, is_foreign)


def _problem(statement: Statement, tokens: Sequence[Token], is_foreign: bool) -> str:
    text = statement.sql
    if found := SUBSTITUTION.search(text):
        return f"reads a setting of the session (`{found[0]}`)"
    words = [token.word for token in tokens]
    ends = {reference.start: reference.end for reference in statement.references}
    for at, (token, behind) in enumerate(zip(tokens, [*words[1:], ""], strict=True)):
        if token.kind == "number" and token.end - token.start > _LONGEST_NUMBER:
            return "has a number that is too long"
        if token.kind == "sign" and token.word not in _SIGNS:
            return f"has a sign that is not understood (`{token.word}`)"
        if token.word == "INSERT" and behind in ("INTO", "OVERWRITE"):
            return "writes (`insert`)"
        if token.word == "USING" and words[at - 1] != "." and _is_text(tokens[at + 1 : at + 2]):
            return "runs a program (`using`)"
        if behind != "(" or token.kind not in ("word", "quoted"):
            continue
        name = name_of(text, token).lower()
        if name in REFUSED:
            return f"runs code or opens an address (`{name}`)"
        if token.word == "IDENTIFIER":
            # It may stand for a whole name of a relation, and for no part of one.
            end = ends.get(token.start)
            if end is None or text[end:].lstrip()[:1] in (".", "("):
                return "computes a name (`identifier`)"
        elif is_foreign and _is_call(tokens, words, at) and not _is_known(words, at, name):
            return f"calls `{name}`, which is not among the functions for views of other stores"
    return ""


def _is_text(tokens: Sequence[Token]) -> bool:
    """Whether a text follows, or a parameter that may be one."""
    return any(token.kind == "text" or token.word in (":", "?") for token in tokens)


def _is_known(words: Sequence[str], at: int, name: str) -> bool:
    """Whether a call is one of Spark's own functions for all, by its plain name."""
    return name in FUNCTIONS and words[at - 1] != "."


def _is_call(tokens: Sequence[Token], words: Sequence[str], at: int) -> bool:
    """Whether parentheses hold arguments, and are no other part of the grammar."""
    token, before = tokens[at], tokens[at - 1] if at else None
    if token.kind not in ("word", "quoted"):
        return False
    if before is None or before.word == ".":
        return before is not None or token.word not in _SYNTAX
    # A name behind another one, or behind a value, is an alias with names of columns.
    is_dotted = before.kind == "word" and at > 1 and words[at - 2] == "."
    if before.word in _BEFORE_ALIAS or before.kind in ("quoted", "text", "number") or is_dotted:
        return False
    return token.word not in _SYNTAX and not _defines_query(tokens, words, at)


def _defines_query(tokens: Sequence[Token], words: Sequence[str], at: int) -> bool:
    """Whether a name with columns is that of a query: `name (a, b) as (select`."""
    at += 2
    while at < len(tokens) and (tokens[at].kind in ("word", "quoted") or words[at] == ","):
        at += 1
    behind = [*words[at : at + 5], "", "", "", "", ""]
    return behind[:3] == [")", "AS", "("] and behind[3] in _QUERY and behind[4] not in (",", ")")
