"""Replaces the names of relations in a statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ktk_engine.sql.references import Reference
from ktk_engine.sql.token import name_of, replaced, tokenize
from ktk_engine.types.identifier import Name
from ktk_engine.types.quote import quote_identifier


def rename(sql: str, names: Mapping[Reference, str]) -> str:
    """Replace names of relations; the old name becomes the alias where the statement gives none.

    So columns can still be qualified by it: `weather.temp`, and also `analytics.weather.temp`,
    which `{{ ref('weather') }}.temp` compiles to.
    """
    changes: dict[int, tuple[int, str]] = {}
    plain: set[Name] = set()
    for reference, name in names.items():
        text, alias = quote_identifier(name), ""
        if not reference.aliased:
            alias = f" as {quote_identifier(reference.parts[-1])}"
            plain |= {reference.parts, _written(sql, reference)}
        if reference.alias_at > reference.end:
            changes[reference.start] = (reference.end, text)
            changes[reference.alias_at] = (reference.alias_at, alias)
        else:
            changes[reference.start] = (reference.end, text + alias)
    for start, end, last in _qualifiers(sql, plain):
        changes.setdefault(start, (end, quote_identifier(last)))
    return replaced(sql, ((start, *changes[start]) for start in sorted(changes)))


def qualify(sql: str, schemas: Mapping[Reference, str]) -> str:
    """Put schemas before names of relations; `identifier('t')` becomes the name itself."""
    for reference in sorted(schemas, key=lambda reference: -reference.start):
        name = ".".join(map(quote_identifier, (schemas[reference], *reference.parts)))
        first, *others = tokenize(sql[reference.start : reference.end])
        end = first.end
        if others and others[0].word == "(":
            end = next(token.end for token in others if token.word == ")")
        sql = sql[: reference.start] + name + sql[reference.start + end :]
    return sql


def _written(sql: str, reference: Reference) -> Name:
    """The name as the statement writes it, whose address may have been resolved."""
    text = sql[reference.start : reference.end]
    return Name(name_of(text, token) for token in tokenize(text)[: 2 * len(reference.parts) : 2])


def _qualifiers(sql: str, names: Collection[Name]) -> Iterator[tuple[int, int, str]]:
    """Find a relation's whole name before a column: start, end, and the last part alone."""
    wanted = {name.key: name[-1] for name in names if len(name) > 1}
    if not wanted:
        return
    lengths = sorted({len(key) for key in wanted}, reverse=True)
    tokens = tokenize(sql)
    for index, token in enumerate(tokens):
        if token.word != "." or index == 0 or (index > 1 and tokens[index - 2].word == "."):
            continue  # only the first dot of a name counts
        for length in lengths:
            words = tokens[index - 1 : index - 1 + 2 * length : 2]
            dots = tokens[index : index + 2 * length : 2]
            if len(dots) < length or any(dot.word != "." for dot in dots):
                continue
            key = Name(name_of(sql, word) for word in words).key
            if key in wanted:
                yield words[0].start, words[-1].end, wanted[key]
                break
