"""The findings of type checks, one per column, and their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

import pyarrow as pa

from ktk_engine.errors import TypeClassError
from ktk_engine.formatting import noun
from ktk_engine.messages import PYTHON, Message, Remedy, Spoken, Voice, joined, remedies_of, spoken
from ktk_engine.types.arrow_name import arrow_name
from ktk_engine.types.type_class import class_name

Rule = Literal[
    "class",
    "missing",
    "unknown",
    "duplicate",
    "storable",
    "shared",
    "owner",
    "role",
    "declared",
    "contract",
]


@dataclass(frozen=True)
class Finding:
    """A column that breaks a rule."""

    column: str
    committed: pa.DataType | None  # the type so far; None for a new column
    model: pa.DataType | None  # the given type; None if the column is missing
    reason: str | Spoken  # why it is refused
    fix: str | Spoken  # what to write instead, if possible the exact cast
    # "class" (not the committed one), "missing" and "unknown" columns, "duplicate" names,
    # "storable" (no file can hold the type), "shared" (not the class in other datasets of the
    # cube), "owner" (payload of another dataset), "role" (unfit as dimension, partition or index
    # column), "declared" (not as declared), "contract" (not declared)
    rule: Rule

    @property
    def is_declared(self) -> bool:
        """Whether the other type is declared and not necessarily committed."""
        return self.rule in ("declared", "contract")

    @property
    def committed_class(self) -> str | None:
        """The class of the committed type."""
        return None if self.committed is None else class_name(self.committed)

    @property
    def model_class(self) -> str | None:
        """The class of the given type."""
        return None if self.model is None else class_name(self.model)

    def as_dict(self, voice: Voice = PYTHON) -> dict[str, str | None]:
        """Give the finding as JSON data, with types by name and their classes."""
        return {
            "column": self.column,
            "committed_class": self.committed_class,
            "committed_type": None if self.committed is None else _type_name(self.committed),
            "model_class": self.model_class,
            "model_type": None if self.model is None else _type_name(self.model),
            "reason": spoken(self.reason, voice),
            "fix": spoken(self.fix, voice),
            "rule": self.rule,
        }


@dataclass(frozen=True)
class FindingsTable:
    """Findings as a table, whose widths depend on the voice; see `findings_table`."""

    findings: tuple[Finding, ...]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The fixes of all findings."""
        return remedies_of(*(finding.fix for finding in self.findings))

    def said(self, voice: Voice) -> str:
        """Give the table in the words of a voice."""
        return findings_table(self.findings, voice)

    def __str__(self) -> str:
        return self.said(PYTHON)


def findings_table(findings: Iterable[Finding], voice: Voice = PYTHON) -> str:
    """Format findings as an aligned Markdown table without a final line break."""
    findings = tuple(findings)
    rows = [_headings(findings, voice), *(_cells(finding, voice) for finding in findings)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, _line(tuple("-" * width for width in widths), widths))
    return "\n".join(lines)


def raise_findings(
    findings: Sequence[Finding], where: str, columns: int | None = None, note: object = ""
) -> NoReturn:
    """Raise a `TypeClassError` with all findings, at least one.

    `where` says what was checked, as in "model prices -> dataset geodata++prices". `columns` is the
    number of given columns, to which missing ones are added.
    """
    count = len({finding.column for finding in findings})
    lacking = len({finding.column for finding in findings if finding.model is None})
    total = f" of {columns + lacking}" if columns is not None else ""
    columns_of = "column" if columns is None else "columns"
    last = f"{count}{total} {noun(count, f'{columns_of} differs', 'columns differ')}."
    raise TypeClassError(
        Message(
            f"Cube type check failed for {where} (nothing was written)\n\n",
            FindingsTable(tuple(findings)),
            "\n\n",
            joined(" ", filter(None, (last, note))),
        ),
        tuple(findings),
    )


def _type_name(t: pa.DataType) -> str:
    """Name a type; one without a class as pyarrow does."""
    return str(t) if class_name(t) == "no class" else arrow_name(t)


def _headings(findings: Sequence[Finding], voice: Voice) -> tuple[str, ...]:
    """The headings, which say where the types come from that others are compared with."""
    found = {finding.is_declared for finding in findings if finding.committed is not None}
    words = {False: "committed", True: "declared"}
    which = " or ".join(words[is_declared] for is_declared in sorted(found or {False}))
    given = (spoken(Remedy(kind), voice) for kind in ("given_class", "given_type"))
    return ("column", f"{which} class", f"{which} type", *given, "reason", "fix")


def _cells(finding: Finding, voice: Voice) -> tuple[str, ...]:
    """The texts of a line."""
    data = finding.as_dict(voice)
    keys = ("column", "committed_class", "committed_type", "model_class", "model_type")
    texts = [data[key] or "-" for key in (*keys, "reason", "fix")]
    return tuple(" ".join(text.replace("|", "\\|").split()) for text in texts)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Format a line of the table."""
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
