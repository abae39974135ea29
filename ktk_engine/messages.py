"""Messages whose remedies are data, so that each reader sees them in familiar terms.

The engine says what is wrong; what to do depends on the reader. So a message keeps its remedies
apart from its text, and a *voice* turns each of them into words: Python's is here, the command
line's in `ktk_engine.cli`, dbt's in the adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, SupportsIndex, runtime_checkable

# Control characters, which a terminal obeys, those that change the direction of what follows, and
# halves of surrogate pairs, which no stream takes.
_CONTROL = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)

Voice = Mapping[str, str]
"""The words for each kind of remedy, with its arguments in braces; see `PYTHON` for the kinds."""


@runtime_checkable
class Spoken(Protocol):
    """Part of a message that each voice words in its own way."""

    def said(self, voice: Voice) -> str:
        """Give it in a voice."""


class Remedy:
    """What to do about an error, as data.

    `PYTHON` has the kinds, with the names of their arguments in braces.
    """

    __slots__ = ("arguments", "kind")

    def __init__(self, kind: str, **arguments: object) -> None:
        self.kind = kind
        self.arguments = arguments

    @classmethod
    def on(cls, kind: str, name: str, dataset: str | None = None) -> Remedy:
        """Make one for a cube or table, or for a dataset of a cube: `drop`, `drop_dataset`."""
        if dataset is None:
            return cls(kind, name=name)
        return cls(f"{kind}_dataset", name=name, dataset=dataset)

    def said(self, voice: Voice) -> str:
        """Give it in a voice, or in Python's if that lacks this kind."""
        return printable(voice.get(self.kind, PYTHON[self.kind]).format_map(self.arguments))

    def __str__(self) -> str:
        return self.said(PYTHON)

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"Remedy({self.kind!r}{given})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remedy) and (self.kind, self.arguments) == (
            other.kind,
            other.arguments,
        )

    def __hash__(self) -> int:
        return hash(repr(self))


class Message(str):
    """A text that keeps its remedies; as a string it is in Python's voice.

    Its parts are texts, remedies, other messages, and errors, which contribute their messages.
    """

    __slots__ = ("parts",)
    parts: tuple[object, ...]

    def __new__(cls, *parts: object) -> Message:
        """Join the parts."""
        flat = tuple(_flat(parts))
        message = super().__new__(cls, "".join(map(str, flat)))
        message.parts = flat
        return message

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """Its remedies, in order."""
        return remedies_of(*self.parts)

    def said(self, voice: Voice) -> str:
        """Give the text in a voice."""
        return "".join(spoken(part, voice) for part in self.parts)

    def rstrip(self, chars: str | None = None, /) -> Message:
        """See `str.rstrip`; keeps remedies whole."""
        *before, last = self.parts or ("",)
        return Message(*before, last.rstrip(chars) if isinstance(last, str) else last)

    def to_json(self) -> str:
        """Serialize it where only text passes; a table in it becomes text."""
        return json.dumps([
            [part.kind, part.arguments] if isinstance(part, Remedy) else str(part)
            for part in self.parts
        ])  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Message:
        """Read what `to_json` gave."""
        parts = json.loads(text)
        return cls(*(p if isinstance(p, str) else Remedy(p[0], **p[1]) for p in parts))

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Callable[..., Message], Any]:
        return Message, self.parts


def remedies_of(*parts: object) -> tuple[Remedy, ...]:
    """The remedies in parts of a message."""
    found: list[Remedy] = []
    for part in parts:
        within: tuple[Remedy, ...] = getattr(part, "remedies", ())
        found += [part] if isinstance(part, Remedy) else within
    return tuple(found)


def joined(between: str, parts: Iterable[object]) -> Message:
    """Join parts of a message; see `str.join`."""
    message = Message()
    for part in parts:
        message = Message(message, between, part) if message.parts else Message(part)
    return message


def spoken(text: object, voice: Voice) -> str:
    """Give a message, an error or any other text in a voice."""
    return text.said(voice) if isinstance(text, Spoken) else str(text)


def printable(text: str) -> str:
    r"""Write control characters of names and values as `\u001b`, so that no terminal obeys them."""
    return text if text.isprintable() else _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _flat(parts: tuple[object, ...]) -> list[object]:
    found: list[object] = []
    for part in parts:
        message = getattr(part, "message", None) if isinstance(part, Exception) else part
        found += message.parts if isinstance(message, Message) else [part]
    return found


# In Python: calls of the library, or commands where it has none.
PYTHON: Voice = {
    "drop": "store.drop({name!r})",
    "drop_dataset": "store.cube({name!r}).drop({dataset!r})",
    "drop_all": "store.drop({name!r})",
    "drop_seed": "store.drop({name!r})",
    "drop_view": "drop view {name}",
    "undrop": "`ktk undrop {name}` on the command line",
    "undrop_dataset": "`ktk undrop {name} {dataset}` on the command line",
    "publish": "store.relation({name!r}).publish()",
    "publish_dataset": "store.cube({name!r}).publish(dataset={dataset!r})",
    "publish_as": "store.relation({name!r}).publish({format!r})",
    "stop_publishing": "store.relation({name!r}).publish(None)",
    "stop_documents": "store.relation({name!r}).publish(kartothek=False)",
    "compact": "store.relation({name!r}).compact()",
    "compact_dataset": "store.cube({name!r}).compact(dataset={dataset!r})",
    "delete_garbage": "store.cleanup({name!r}, delete=True)",
    "cleanup": "Store.cleanup",
    "restore": "Use store.relation({name!r}).restore(...).",
    "rename": "store.relation({name!r}).rename({new!r})",
    "rename_in_cube": "store.cube({name!r}).rename(...) renames the cube.",
    "untag": "store.relation({name!r}).untag({tag!r})",
    "history": "store.relation({name!r}).history()",
    "history_of_removed": "`ktk history {name}` on the command line",
    "check": "store.relation({name!r}).check()",
    "check_files": "`check()` of the cube or table",
    "check_bytes": "`check(deep=True)` of the cube or table",
    "describe": "store.relation({name!r}).info() shows columns, types, partitions and "
    "properties, .history() the commits.",
    "make_index": "store.cube({name!r}).index({quoted}) builds it.",
    "build_cube_again": "Build that dataset again.",
    "rebuild_together": "drop them first (Cube.drop), and build them again afterwards.",
    "create_index": "Use Table.index(...).",
    "adopt": "`ktk adopt {name}` on the command line",
    "look_at_adoption": "`ktk adopt {name} --dry-run` on the command line",
    "adopt_with_loss": "`ktk adopt {name} --force` on the command line",
    "adopt_with_seed": "`ktk adopt {name} --seed DATASET` on the command line",
    "adopt_with_words": "`ktk adopt {name} --seed DATASET --dimensions COLUMN,COLUMN` on the "
    "command line",
    "install": "pip install 'ktk-engine[{extra}]'",
    "upgrade": "Upgrade ktk-engine.",
    "flag": "{argument}",
    # Names of settings.
    "older_than": "`older_than`",
    "kept_versions": "`older_than` and `keep_versions` of Store.cleanup",
    "key": "key",
    "predicate": "the predicate",
    "location": "the source's location",
    "ignore_folders": "the option recursiveFileLookup",
    "only_files": "the option pathGlobFilter, for instance *.{ending}",
    "whole_documents": "the option multiLine",
    "separator": "the option sep, here {mark!r}",
    "encoding": "the option encoding",
    "read_dataset": "by Store({store!r}), as {dataset}",
    # Where rows are requested.
    "answer_here": 'engine="local"',
    "ask_spark": 'engine="spark"',
    "memory_limit": "memory_limit",
    "ask_view": "select * from {name}",
    "spelled_alike": "Each can be read under its own name (Store.table, Store.cube), and given "
    "another one (.rename).",
    "say_dataset": "Name one of them: {quoted} in SQL.",
    "build_under_other_name": "Build one of them under another name.",
    # How to rewrite all rows.
    "rebuild": "build the dataset again with overwrite",
    "replace_rows": "replace all rows: overwrite",
    "change_class": "The class of a column changes only where all rows are replaced: overwrite.",
    "cast_and_rebuild": "cast {column} and replace all rows: overwrite",
    "keep_column": "keep the column; only overwriting all rows changes the layout",
    "add_key": "Add it first: store.table({name!r}).alter(add=...).",
    "other_layout": "Build the dataset again with another layout: overwrite.",
    "drop_constraint": "Replace the table to drop the constraint.",
    "lay_out": "Change it back, or build the cube again with overwrite=True.",
    "lay_out_table": "Change it back, or change the table's layout first: "
    "store.table({name!r}).repartition(...).",
    "lay_out_model": "Change it back, or replace all rows: overwrite.",
    "lay_out_snapshot": "A snapshot is never rebuilt: change it back, or give it another name.",
    "lay_out_snapshot_table": "A snapshot is never rebuilt: change it back, give it another name, "
    "or change its layout: store.table({name!r}).repartition(...).",
    "evolve": "Add the columns first: alter table ... add columns",
    # Who builds a dataset, and under which name.
    "add_replace_or_leave": "To add to them, append. To replace them, overwrite. To leave them "
    "alone, write to another dataset.",
    "other_dataset": "Give one of them another name.",
    "other_name": "another name",
    "other_name_in_cube": "another name",
    "keep_name": "Change the name back to {name}, or build it again under the new one.",
    "keep_name_of_snapshot": "Change the name back to {name}, since a snapshot is never rebuilt.",
    "leave_or_stay": "If that is a mistake, change the names back. If it is meant, overwriting",
    "rename_by_statement": "Table.rename renames a table, and a view is created again",
    # How datasets of a cube fit together.
    "build_seed": "Build the seed dataset first: store.build({name!r}, ...).",
    "no_second_seed": "Replace it under its own name, {dataset}, or add this one as an "
    "enrichment, or to another cube.",
    "unbreak": "change the rows so that they fit; or drop these datasets first (Cube.drop), "
    "and build them again afterwards",
    "unbreak_in_full_refresh": "change the rows so that they fit; or drop these datasets first "
    "(Cube.drop), and build them again afterwards",
    "unbreak_elsewhere": "{names}: read from another store, and never changed there. Fix: change "
    "the rows so that they fit.",
    "take_owner_out": "drop {owner}: store.cube({name!r}).drop({owner!r}); otherwise rename "
    "{column} in {dataset}",
    "move_column_from_elsewhere": "rename {column} in {dataset}: {owner}, which has it too, is of "
    "another store",
    "move_column": "if {column} moved from {owner} to {dataset}, build {owner} without it first; "
    "otherwise rename it in one of them",
    "whole_cube": "Build it first.",
    "list_seed": "List it as well.",
    "one_cube": "Choose datasets of one cube.",
    "in_cube": "Choose datasets of cubes in this schema.",
    "cube_body": "Name them.",
    "seed_of_test": "Give the test that one as `seed`.",
    # Columns, in the table of findings.
    "given_class": "given class",
    "given_type": "given type",
    "missing": "missing in the rows",
    "declared": "declared",
    "cast": "{arrow}",
    "give_zone": "{arrow}",
    "give_type": "give {column} as {arrow}",
    "null_column": "{arrow}",
    "as_column": "rename {column} to {wanted}",
    "add_column": "add it",
    "let_column_go": "drop it first: .alter({of}drop=[{column!r}])",
    "let_column_come": "add it first: .alter({of}add={{{column!r}: {arrow}}})",
    "declare": "declare it, or remove {column}",
    "declare_class": "declare a type with a class",
    "select_or_undeclare": "add it, or do not declare {column}",
    # Rows.
    "filter_null": "Filter these rows, or give them a value.",
    "fill_null": "Filter these rows, or give them a value: "
    "pc.fill_null(table[{column!r}], {value}).",
    "fit_values": "Cast, round or filter the column.",
    "no_null_in_index": "Leave the column without an index, or give these rows a value and replace "
    "all rows.",
    "one_row_a_key": "Keep one row per key.",
    "other_key": "since their key differs",
    "fit_predicate": "Filter the rows by the predicate, or widen it.",
    "fit_window": "Filter the rows by {column}.",
    "plain_predicate": "Compute other values before, so that it compares columns of the table with "
    "literals.",
    "returned": "The function",
    "unstaged": "outside of a staged run",
    # What others have stored.
    "trust": "If you trust it, name it: Trust(stores=[{address!r}]).",
    "no_view": "Store its rows in a table instead.",
}
