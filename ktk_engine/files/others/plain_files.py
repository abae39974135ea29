"""Plain parquet files of this machine as one relation: their common columns and their rows.

Other programs wrote them, so nothing is taken for granted. Every footer is read, columns are joined
by name and class, and what cannot be joined is refused with the files' names. See docs/sources.md.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import ConfigurationError, FormatError, SourceWarning
from ktk_engine.files.footers import Footer, FooterCache
from ktk_engine.format.partition_text import HIVE_NULL
from ktk_engine.formatting import counted
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.snapshot import NULL_FOLDERS, Snapshot, files_table
from ktk_engine.store.local.source_files import SourceFiles
from ktk_engine.types.identifier import Identifier, first_pair_alike
from ktk_engine.types.mismatch import merge, mismatch
from ktk_engine.types.type_class import class_name, class_problem

_BRACES = re.compile(r"\{([^{}]*)\}")
_ROOT = re.compile(r"[A-Za-z0-9+.-]+:/+[^/]*/?")
_DATASET = "a dataset of Kartothek or of this library"
# What a table has in its folder, or next to it.
_MARKS = (
    ("{above}/{name}.by-dataset-metadata*", _DATASET),
    ("{above}/.ktk/dataset/{name}", _DATASET),
    ("{above}/.ktk/cube/{cube}", _DATASET),
    ("{folder}/_delta_log", "a Delta table"),
    ("{folder}/.hoodie", "a Hudi table"),
    ("{folder}/metadata/*.metadata.json", "an Iceberg table"),
)
_SCHEME = re.compile(r"^file:(?://)?(?=/)")
# Spark's type for an old form of instants, which Arrow reads as local time in nanoseconds.
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class PlainFile:
    """A file of a source."""

    path: str  # absolute, without links
    # The folders `name=text` between the source's location and the file, as written.
    folders: Mapping[str, str]
    between: bool = False  # there are folders of other names among them


@dataclass(frozen=True)
class PlainFiles:
    """The files of a source as one relation."""

    store: SourceFiles  # its keys are the files' paths
    files: tuple[PlainFile, ...]
    footers: tuple[Footer, ...]
    schema: pa.Schema  # all columns, in order; refused ones are texts
    refused: Mapping[str, str]  # column -> why it cannot be read, with a file
    snapshot: Snapshot  # the other columns, and the files
    spelled_otherwise: str  # a column that some files have in another letter case; else empty


def find_files(location: str, only: str = "", ignore_folders: bool = False) -> list[PlainFile]:
    """Find the files at a location, in folders of any depth, as Spark does.

    A location is a file, a folder, or a pattern of `*`, `?`, `[ab]`, `{ab,cd}`. Names that begin
    with `_` or `.` are not read as data, unless the location itself names them so. `only` is a
    pattern for names of files. With `ignore_folders`, folders `name=text` are not columns.
    """
    path = _SCHEME.sub("", location)
    found = [path] if os.path.exists(path) else sorted(set(_matches(path)))
    files = []
    for root in found:
        inside = [root] if os.path.isfile(root) else sorted(_walk(root))
        for file in inside:
            if only and not fnmatch.fnmatchcase(os.path.basename(file), only):
                continue
            inner = "" if file == root else os.path.relpath(os.path.dirname(file), root)
            parts = [part for part in inner.split(os.sep) if part not in ("", os.curdir)]
            named = [part for part in parts if "=" in part and not ignore_folders]
            folders = dict(part.split("=", 1) for part in named)
            files.append(PlainFile(os.path.realpath(file), folders, len(named) < len(parts)))
    return files


def refuse_tables(
    source: str,
    paths: Iterable[str],
    exists: Callable[[Sequence[str]], bool] = lambda patterns: any(map(glob.glob, patterns)),
    escape: Callable[[str], str] = glob.escape,
) -> None:
    """Refuse files of a table whose metadata says which of its files and rows are in use.

    Args:
        source: the source, for messages.
        paths: its files.
        exists: tells whether something matches one of several patterns.
        escape: makes a pattern of a path.

    Raises:
        ConfigurationError: a file is in a folder of such a table.
    """
    folders = {folder for path in paths for folder in _folders_above(path)}
    marks = [
        (pattern.format_map({key: escape(text) for key, text in parts.items()}), what, folder)
        for folder in sorted(folders, key=len)
        if "=" not in (parts := _parts(folder))["name"]
        for pattern, what in _MARKS
    ]
    if not marks or not exists([pattern for pattern, _, _ in marks]):
        return
    what, folder = next((w, folder) for pattern, w, folder in marks if exists([pattern]))
    store, name = folder.removeprefix("file://").rpartition("/")[::2]
    way: Remedy | str = "by a reader of that format, or have its rows exported"
    if what == _DATASET:
        way = Remedy("read_dataset", store=store, dataset=name)
    raise ConfigurationError(
        f"Source {source}: {store}/{name} is {what}. Its metadata says which files are in use; "
        "all files together have rows that were deleted or replaced. Read it ",
        way,
        ".",
    )


def _folders_above(path: str) -> Iterator[str]:
    """The folders that a path is in, up to the root or bucket."""
    root = _ROOT.match(path)
    while len(path := path.rpartition("/")[0]) > (root.end() if root else 0):
        yield path


def _parts(folder: str) -> dict[str, str]:
    above, _, name = folder.rpartition("/")
    return {"folder": folder, "above": above, "name": name, "cube": name.partition("++")[0]}


def _matches(pattern: str) -> Iterator[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        for path in glob.glob(pattern.replace("[^", "[!")):
            parts = zip(path.split(os.sep), pattern.split(os.sep), strict=False)
            if all(_is_data(name) or not _is_data(given) for name, given in parts):
                yield path
        return
    for part in braces[1].split(","):
        yield from _matches(pattern[: braces.start()] + part + pattern[braces.end() :])


def _walk(root: str) -> Iterator[str]:
    """Files in a folder and below; follows links, and visits each folder once."""
    seen = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = filter(_is_data, folders)
        yield from (os.path.join(folder, name) for name in names if _is_data(name))


def _is_data(name: str) -> bool:
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not name.endswith("._COPYING_")


def read_plain_files(
    store: SourceFiles, cache: FooterCache, files: Sequence[PlainFile]
) -> PlainFiles:
    """Read the footers of files, at least one, and join columns by name and class.

    Raises a `ConfigurationError` if columns or folders cannot be joined, and a `FormatError` if a
    file is not a parquet file or cannot be read.
    """
    keys = [file.path[1:] for file in files]
    try:
        footers = [_with_instants(footer) for footer in cache.read(store, keys)]
    except FormatError as error:
        raise FormatError(
            error, " If it is not data, leave it out: ", Remedy("only_files", ending="parquet"), "."
        ) from error
    folders = _folders(store, files)
    joined = _Joined(store.url, {Identifier(name): name for name in folders})
    for file, footer in zip(files, footers, strict=True):
        joined.add(file.path, footer.schema)
    joined.tell()
    schema = joined.schema()
    readable = [field for field in schema if field.name not in joined.refused]
    if not readable:
        no_column = f"The files of {store.url} have no column, for instance {files[0].path}."
        raise ConfigurationError(next(iter(joined.refused.values()), no_column))
    texts = {name: pa.array(values, pa.string()) for name, values in folders.items()}
    snapshot = Snapshot(
        uuid=store.url,
        schema=pa.schema(readable),
        partition_keys=tuple(folders),
        file_table=files_table(keys, keys, pa.table(texts)),
        properties={NULL_FOLDERS: True},
    )
    return PlainFiles(
        store, tuple(files), tuple(footers), schema, joined.refused, snapshot, joined.other
    )


def _with_instants(footer: Footer) -> Footer:
    """The footer in Spark's types, where the old form of 96 bits is an instant."""
    fields = [f.with_type(_INSTANT) if f.name in footer.instants else f for f in footer.schema]
    return replace(footer, schema=pa.schema(fields)) if footer.instants else footer


def _folders(store: SourceFiles, files: Sequence[PlainFile]) -> dict[str, list[str | None]]:
    """The columns of folders, and the value of each file."""
    first = files[0]
    for file in files:
        if file.folders.keys() != first.folders.keys():
            raise ConfigurationError(
                f"The files of {store.url} are in folders of different layouts: "
                f"{_said(first)}, and {_said(file)}. Let ",
                Remedy("location"),
                " name files of one layout, or ignore folders: ",
                Remedy("ignore_folders"),
                ".",
            )
    return {
        _decoded(store, first, name): [
            None
            if file.folders[name] in ("", HIVE_NULL)
            else _decoded(store, file, file.folders[name])
            for file in files
        ]
        for name in first.folders
    }


def _said(file: PlainFile) -> str:
    names = ", ".join(f"`{name}`" for name in file.folders)
    return f"{file.path} in those of {names}" if names else f"{file.path} in none `name=value`"


def _decoded(store: SourceFiles, file: PlainFile, text: str) -> str:
    """The name or value of a folder, in which `%XX` are bytes of UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"A folder of {file.path} of {store.url} is not encoded as UTF-8: {text}. Rename it."
        ) from error


@dataclass
class _Joined:
    """The columns of files, joined by name."""

    source: str
    folders: Mapping[Identifier, str]
    refused: dict[str, str] = field(default_factory=dict)
    other: str = ""
    _fields: dict[Identifier, tuple[pa.Field, str]] = field(default_factory=dict)
    _seen: dict[pa.Schema, str] = field(default_factory=dict)

    def add(self, path: str, schema: pa.Schema) -> None:
        """Join the columns of one more file."""
        schema = schema.remove_metadata()
        if schema in self._seen:
            return
        self._seen[schema] = path
        pair = first_pair_alike(schema.names)
        if pair is not None or len(set(schema.names)) < len(schema):
            names = " and ".join(f"`{name}`" for name in pair or (_twice(schema),) * 2)
            raise ConfigurationError(
                f"The file {path} of {self.source} has the columns {names}, which SQL cannot tell "
                "apart. Write it with other names."
            )
        for column in schema:
            self._add(path, column)

    def _add(self, path: str, column: pa.Field) -> None:
        key = Identifier(column.name)
        known, first = self._fields.setdefault(key, (column.with_type(pa.null()), path))
        if key in self.folders:
            return
        if known.name != column.name:
            self.other = column.name
        problem = class_problem(column.type)
        if problem is not None:
            self.refused.setdefault(
                known.name,
                f"Column `{column.name}` of {self.source} cannot be read. Its type in {path}: "
                f"{problem}. Leave the column out, or have the file written with another type.",
            )
            return
        found = mismatch(known.type, column.type, column.name)
        if found is not None:
            raise ConfigurationError(
                f"Column `{column.name}` of {self.source} is {class_name(found.left)} "
                f"({found.left}) in {first} and {class_name(found.right)} ({found.right}) in "
                f"{path}: {found.reason}. Make a source of each kind of file, and cast there."
            )
        at = path if pat.is_null(known.type) else first
        self._fields[key] = (known.with_type(merge(known.type, column.type)), at)

    def schema(self) -> pa.Schema:
        """All columns in order: those of the files as they come, then those of folders."""
        found = []
        for key, (column, _) in self._fields.items():
            text = key in self.folders or column.name in self.refused
            name = self.folders.get(key, column.name)
            found.append(pa.field(name, pa.string() if text else column.type))
        further = [name for key, name in self.folders.items() if key not in self._fields]
        return pa.schema(found + [pa.field(name, pa.string()) for name in further])

    def tell(self) -> None:
        """Say which columns some files lack."""
        lacking: dict[str, list[str]] = {}
        for schema, path in self._seen.items():
            names = {Identifier(name) for name in schema.names}
            for key, (column, _) in self._fields.items():
                if key not in names and key not in self.folders:
                    lacking.setdefault(column.name, []).append(path)
        if lacking:
            parts = [f"`{name}` is not in {paths[0]}" for name, paths in lacking.items()]
            more = f", and {counted(len(parts) - 5, 'more column')}" if len(parts) > 5 else ""
            warnings.warn(
                f"The files of {self.source} have different columns, which are joined by name; "
                f"a column is null where a file lacks it: {', '.join(parts[:5])}{more}.",
                SourceWarning,
                stacklevel=1,
            )


def _twice(schema: pa.Schema) -> str:
    names: list[str] = schema.names
    return next(name for name in names if names.count(name) > 1)
