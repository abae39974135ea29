"""What the settings of a session make of SQL text: one record for all that read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from ktk_engine.errors import ConfigurationError
from ktk_engine.sql.token import Token, replaced, text_of, text_of_literal, tokenize
from ktk_engine.types.identifier import name_finder
from ktk_engine.types.quote import quote_identifier, quote_text

_ZONE = "spark.sql.session.timeZone"
_ANSI = "spark.sql.ansi.enabled"
_CASE = "spark.sql.caseSensitive"
_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
_RESPECTED = frozenset({_ZONE, _ANSI, _CASE, _QUOTES, _ESCAPES})
# Settings that may decide what a text means.
DECIDING = re.compile(
    r"(?<![\w.])spark\.sql\.(?:(?:ansi|parser|legacy)\.[\w.-]+|caseSensitive|session\.timeZone|"
    r"storeAssignmentPolicy|timestampType|preserveCharVarcharTypeInfo)(?![\w.])"
)
# Those of them that change neither names and literals nor how two values compare.
_HARMLESS = re.compile(
    r"spark\.sql\.parser\.(?:manageParserCaches|parserDfaCacheFlush\w+)|"
    r"spark\.sql\.legacy\.(?:"
    r"(?:avro|csv|db2|execution|hive|jdbc|json|mssqlserver|mysql|oracle|postgres)\..+|"
    r"parquet\.(?:datetime|int96)RebaseModeIn(?:Read|Write)|timeParserPolicy|sizeOfNull|"
    r"allow(?:CreatingManagedTableUsingNonemptyLocation|NonEmptyLocationInCTAS|HashOnMapType)|"
    r"allowUntypedScalaUDF|createHiveTableByDefault|pathOptionBehavior\.enabled|"
    r"(?:extraOptionsBehavior|replaceDatabricksSparkAvro)\.enabled|statisticalAggregate|"
    r"integerGroupingId|percentileDiscCalculation|truncateForEmptyRegexSplit)"
)
# What a literal holds whose meaning a setting changes.
_OPEN = re.compile(r"[\"\\]|[^\W\d_]'|''")
_WHOLE = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
# Spark replaces `${...}` in any text by a setting or an environment variable, and refuses numbers
# of more than 38 digits.
LEFT_TO_SPARK = re.compile(r"\$\{|[\d.]{39}")
# Words after which Spark accepts only a literal.
_BEFORE_LITERALS = frozenset(
    {"ESCAPE", "COMMENT", "DATE", "INTERVAL", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
)
_Change = tuple[int, int, str]  # see `replaced`; a blank keeps it apart from the word before


@dataclass(frozen=True)
class Dialect:
    """The meaning of SQL text in a session."""

    zone: str = "UTC"  # of instants without one; `UNKNOWN_ZONE` refuses these
    is_ansi: bool = True  # else, `in` compares texts and other values as texts
    is_case_sensitive: bool = False  # whether `A` is another column than `a`
    quotes_names: bool = False  # whether "a" is a name
    keeps_backslashes: bool = False  # whether a backslash in a text is itself
    is_sparks: bool = False  # of a session: what `LEFT_TO_SPARK` finds is not read here
    others: tuple[str, ...] = ()  # settings that may change the meaning in other ways

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Dialect:
        """The dialect of a session in which these are set explicitly; others are ignored."""

        def is_on(key: str, default: str = "false") -> bool:
            return settings.get(key, default).lower() == "true"

        others = (
            key
            for key in settings
            if DECIDING.fullmatch(key)
            and key not in _RESPECTED
            and not _HARMLESS.fullmatch(key)
            and (key, settings[key].upper()) != (_ASSIGNMENT, "ANSI")
        )
        is_ansi = is_on(_ANSI, "true")
        return cls(
            settings.get(_ZONE, "UTC"),
            is_ansi,
            is_on(_CASE),
            is_on(_QUOTES) and is_ansi,
            is_on(_ESCAPES),
            True,
            tuple(sorted(others)),
        )

    def in_default(self, sql: str) -> str:
        """Give a text of this dialect in the default one, in which this library reads it."""
        if not self.is_other_text:
            return sql
        literals = _open_literals(sql)
        return replaced(
            sql, ((t.start, t.end, f" {self._in_default(sql[t.start : t.end])}") for t in literals)
        )

    def _in_default(self, literal: str) -> str:
        if literal[0] == '"' and self.quotes_names:
            return quote_identifier(literal[1:-1].replace('""', '"'))
        return quote_text(literal[1:-1] if self.keeps_backslashes else text_of_literal(literal))

    def for_spark(self, sql: str) -> str:
        """Give a text of the default dialect in this one, in which Spark reads it.

        Raises a `ConfigurationError` for a text that no literal has, where only a literal may be.
        """
        if not self.is_other_text:
            return sql
        found: list[_Change] = []
        tokens = tokenize(sql)
        for is_text, items in groupby(range(len(tokens)), lambda at: tokens[at].kind == "text"):
            if is_text:
                first, *others = items
                run = tokens[first : first + 1 + len(others)]
                found += self._for_spark(sql, run, tokens[max(first - 2, 0) : first])
        return replaced(sql, ((start, end, f" {text}") for start, end, text in found))

    def _for_spark(self, sql: str, run: list[Token], before: list[Token]) -> list[_Change]:
        """Spell adjacent literals, which Spark joins; `before` are the tokens before them."""
        spelled = [
            (token.start, token.end, self._literal(text_of(sql, [token])))
            for token in run
            if _is_open(sql, token)
        ]
        if all(literal for *_, literal in spelled):
            return spelled
        text, start, end = text_of(sql, run), run[0].start, run[-1].end
        word = before[-1].word if before else ""
        if word == "ESCAPE" and text == "\\" and before[0].word not in ("(", ","):
            return [(before[-1].start, end, "")]  # it is the default of LIKE
        literal = self._literal(text)
        is_fixed = word in _BEFORE_LITERALS or LEFT_TO_SPARK.search(sql, start, end)
        if is_fixed and not literal:
            raise ConfigurationError(
                f"`{_ESCAPES}` leaves no literal for the text {text!r}, and {word} needs a "
                f"literal. Nothing was done. Use a session without it (`reset {_ESCAPES}`)."
            )
        return [(start, end, literal or f"cast(X'{text.encode().hex()}' as string)")]

    def _literal(self, text: str) -> str:
        """Write a text for Spark; empty if no literal has it."""
        if not self.keeps_backslashes:
            return quote_text(text)
        for written in (f"'{text}'", f'"{text}"'):
            is_name = written[0] == '"' and self.quotes_names
            if _WHOLE.fullmatch(written) and "${" not in written and not is_name:
                return written
        return ""

    @property
    def is_other_text(self) -> bool:
        """Whether literals mean something else than by default."""
        return self.quotes_names or self.keeps_backslashes

    def find(self, name: str, known: Iterable[str]) -> str | None:
        """The known name that is meant; None if there is none, or there are several."""
        return self.finder(known)(name)

    def finder(self, known: Iterable[str]) -> Callable[[str], str | None]:
        """A function like `find` for many names among the same known ones."""
        if self.is_case_sensitive:
            return {name: name for name in known}.get
        return name_finder(known)

    def check_known(self, word: str) -> None:
        """Refuse a statement whose meaning may depend on settings that are not known here."""
        if self.others:
            listed = ", ".join(f"`{key}`" for key in self.others)
            raise ConfigurationError(
                f"{word} is read by this library, which does not know how {listed} changes what it "
                "means. Nothing was written. Unset what is not needed for this statement (`reset "
                f"{self.others[0]}`)."
            )


DEFAULT = Dialect()


def has_open_literals(sql: str) -> bool:
    """Whether a text has literals that depend on the dialect."""
    return bool(_OPEN.search(sql)) and any(_open_literals(sql))


def _open_literals(sql: str) -> Iterator[Token]:
    """The literals that depend on the dialect, in the order of the text."""
    return (token for token in tokenize(sql) if token.kind == "text" and _is_open(sql, token))


def _is_open(sql: str, token: Token) -> bool:
    is_sparks = LEFT_TO_SPARK.search(sql, token.start, token.end)
    return not is_sparks and bool(_OPEN.search(sql, token.start, token.end - 1))
