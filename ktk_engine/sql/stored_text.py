"""Checks SQL that a store holds, before Spark gets it: others may have written it.

See docs/design/statements.md, Stored text.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ktk_engine.errors import QueryError
from ktk_engine.formatting import shortened
from ktk_engine.messages import Remedy
from ktk_engine.sql.references import count_uses_of_with
from ktk_engine.sql.spark_functions import FUNCTIONS, REFUSED
from ktk_engine.sql.statement import GLOBAL_VIEWS, Statement, read_statement
from ktk_engine.sql.token import FIRST_OF_QUERY, Token, name_of, replaced, tokenize
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.reserved_name import OWN_PREFIX

# Spark replaces these anywhere in a text: `${env:HOME}`, `${spark.x}`.
SUBSTITUTION = re.compile(r"\$\{\S(?:[^\s}$]|\$(?!\{[^}]))*+\}")
# Spark reads nested text by recursion, and some of it in time that grows with each level.
_DEEPEST = 200
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
# In Spark's text of plans, in lower case.
_RELATIONS = re.compile(r"unresolvedrelation \[")
_OF_SESSIONS = re.compile(
    rf"\bview \(`(?!{re.escape(OWN_PREFIX)})|\brelation [^\[\s]+\[|\bhivetablerelation\b"
    r"|\brelationv2\b|\bvariablereference\b|\bscripttransformation\b"
)
# An alias with names of columns follows them, and no call.
_BEFORE_ALIAS = frozenset({"AS", "WITH", "RECURSIVE", ")"})
_OPENING, _CLOSING = frozenset({"(", "[", "CASE"}), frozenset({")", "]", "END"})
_NESTED = frozenset({"ARRAY", "MAP", "STRUCT"})
_PREFIXES = frozenset({"NOT", "-", "+", "~", "!"})


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
        raise QueryError(f"{view} {problem}. A stored view may not do that. ", Remedy("no_view"))
    return statement


def stored_condition(sql: str) -> str:
    """Read a stored condition as Spark is to get it: without comments.

    Raises a `QueryError` if it does more than compute from a row.
    """
    text, tokens = _lexed(sql)
    for read in (text, _with_names(text, tokens)):
        found = tokenize(read)
        if problem := _problem(Statement(read), found, True) or _problem_of_row(found):
            raise QueryError(
                f"The condition `{shortened(sql)}` {problem}. A stored condition may not do that."
            )
    return text


def calls(sql: str) -> list[str]:
    """All names before a parenthesis in a text, in lower case, whatever they are there."""
    tokens = tokenize(sql)
    pairs = itertools.pairwise(tokens)
    found = {name_of(sql, one) for one, behind in pairs if behind.word == "(" and one.is_name}
    return sorted(name.lower() for name in found)


def check_plans(
    view: str, query: Statement, plans: str, names: Iterable[str], *, is_foreign: bool
) -> None:
    """Refuse a view that reads what its text does not seem to name.

    To Spark, nearly each word may be an alias, so what is a relation in a text is Spark's to say.
    `plans` are those of the text, as parsed and, if the view `is_foreign`, as analyzed. `names` are
    the relations that it may read. Raises a `QueryError`.
    """
    plans, ours = plans.lower(), {name.lower() for name in names}
    places = (found.end() for found in _RELATIONS.finditer(plans))
    read = Counter(plans[at : plans.find("], [", at)] for at in places)
    uses = count_uses_of_with(query.sql)
    # A text in a plan may look like a relation, and is refused. It hides none.
    others = [name for name in read if name not in ours and read[name] > uses[Identifier(name)]]
    if not is_foreign:  # its full names may be tables in Spark's catalog
        others = [name for name in others if _is_of_session(name)]
    if others or (is_foreign and _OF_SESSIONS.search(plans)):
        what = f"`{shortened(others[0].replace(', ', '.'))}`" if others else "something"
        raise QueryError(
            f"{view} reads {what} that only this session has. No stored view can read temporary "
            "views. Those of other stores cannot read session variables either, nor tables in "
            "Spark's catalog. Nothing was computed."
        )


def _is_of_session(parts: str) -> bool:
    """Whether the parts of a name, as a plan shows them, can be that of a temporary view."""
    return ", " not in parts or parts.startswith(f"{GLOBAL_VIEWS}, ")


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
    quoted = ((t.start, t.end) for t in tokens if t.kind == "text" and text[t.start] == '"')
    names = ((start, end, text[start + 1 : end - 1].replace('""', '"')) for start, end in quoted)
    return replaced(text, ((start, end, quote_identifier(name)) for start, end, name in names))


def _problem_of_query(statement: Statement, tokens: Sequence[Token], is_foreign: bool) -> str:
    """What a text does that it may not, as a predicate; empty if there is nothing."""
    if not statement.is_query:
        return "is not a query"
    for reference in statement.references:
        name = ".".join(reference.parts)
        if SUBSTITUTION.search(name):
            return f"reads a setting of the session (`{name}`)"
        if len(reference.parts) == 2 and any(sign in name for sign in "/\\:"):
            return f"reads a file by its path ({name})"
    return _problem(statement, tokens, is_foreign)


def _problem(statement: Statement, tokens: Sequence[Token], is_foreign: bool) -> str:
    text = statement.sql
    if OWN_PREFIX in text.lower():
        return f"has a name that begins with {OWN_PREFIX}"
    if found := SUBSTITUTION.search(text):
        return f"reads a setting of the session (`{found[0]}`)"
    words = [token.word for token in tokens]
    if _depth(words) > _DEEPEST:
        return "is nested too deeply"
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
        if behind != "(" or not token.is_name:
            continue
        name = name_of(text, token).lower()
        if name in REFUSED:
            return f"runs code or opens an address (`{name}`)"
        if token.word == "IDENTIFIER":
            # It may replace a whole name of a relation, but not a part of one.
            end = ends.get(token.start)
            if end is None or text[end:].lstrip()[:1] in (".", "("):
                return "computes a name (`identifier`)"
        elif is_foreign and is_call(tokens, words, at) and not _is_known(words, at, name):
            return f"calls `{name}`, which is not among the functions for views of other stores"
    return ""


def _depth(words: Sequence[str]) -> int:
    """How deep a text nests at most, where each operator before a value is a level too."""
    depth = deepest = prefixes = types = 0
    for word, behind in itertools.zip_longest(words, words[1:], fillvalue=""):
        depth += (word in _OPENING) - (word in _CLOSING)
        prefixes = prefixes + 1 if word in _PREFIXES else 0
        types += word in _NESTED and behind == "<"
        types = max(types - (word.count(">") if word in (">", ">>") else 0), 0)
        deepest = max(deepest, depth + prefixes + types)
    return deepest


def _problem_of_row(tokens: Sequence[Token]) -> str:
    """As `_problem`, for a condition on one row."""
    for token, behind in itertools.pairwise(tokens):
        if token.word == "(" and behind.word in FIRST_OF_QUERY:
            return "has a query"
    return ""


def _is_text(tokens: Sequence[Token]) -> bool:
    """Whether a text follows, or a parameter that may be one."""
    return any(token.kind == "text" or token.word in (":", "?") for token in tokens)


def _is_known(words: Sequence[str], at: int, name: str) -> bool:
    """Whether a call is one of Spark's own functions for all, by its plain name."""
    return name in FUNCTIONS and words[at - 1] != "."


def is_call(tokens: Sequence[Token], words: Sequence[str], at: int) -> bool:
    """Whether parentheses behind a word hold arguments, not another part of the grammar."""
    token, before = tokens[at], tokens[at - 1] if at else None
    if not token.is_name:
        return False
    if before is None or before.word == ".":
        return before is not None or token.word not in _SYNTAX
    # A name after another one, or after a value, is an alias with names of columns.
    is_dotted = before.kind == "word" and at > 1 and words[at - 2] == "."
    if before.word in _BEFORE_ALIAS or before.kind in ("quoted", "text", "number") or is_dotted:
        return False
    return token.word not in _SYNTAX and not _defines_query(tokens, words, at)


def _defines_query(tokens: Sequence[Token], words: Sequence[str], at: int) -> bool:
    """Whether a name with columns is that of a query: `name (a, b) as (select`."""
    at += 2
    while at < len(tokens) and (tokens[at].is_name or words[at] == ","):
        at += 1
    behind = [*words[at : at + 5], "", "", "", "", ""]
    is_query = behind[3] in FIRST_OF_QUERY | {"("} and behind[4] not in (",", ")")
    return behind[:3] == [")", "AS", "("] and is_query
