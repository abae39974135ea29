"""Reads plain files of other programs as a source.

Spark reads CSV and JSON files as texts, whose values `text_values` converts, and parquet files of
other file systems. See `parquet_source` for those of this machine.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote

import pyspark  # noqa: F401
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import functions as F
from pyspark.sql import types as st

from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.errors import ConfigurationError, DataError, DatasetNotFoundError
from ktk_engine.files.others.csv_form import CsvForm, CsvMarks
from ktk_engine.files.others.plain_files import find_files, refuse_tables
from ktk_engine.format.partition_text import HIVE_NULL
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.compatibility import condition_of
from ktk_engine.spark.read.scan import UNBOUNDED
from ktk_engine.spark.session.session import reading_stored_text, text_for
from ktk_engine.spark.sql.text_values import SPARKS_OWN, TextValues, as_texts
from ktk_engine.sql.stored_text import SUBSTITUTION
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Name, find_name, first_pair_alike
from ktk_engine.types.quote import quote_identifier, quote_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's default mode would silently turn a value that does not fit into null. Without column
# pruning it also notices a row of another length where a statement reads few columns.
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "parquet": UNBOUNDED,
    "json": {"mode": "FAILFAST"},
    "csv": {
        "mode": "FAILFAST",
        "header": "true",
        "inferschema": "true",
        "columnpruning": "false",
    },
}
_ESCAPE, _BEYOND_ASCII = re.compile("%([0-9A-Fa-f]{2})"), re.compile("%[89A-Fa-f][0-9A-Fa-f]")
_NOTHING_THERE = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
_SCHEME = re.compile(r"[A-Za-z0-9+.-]+:(//[^/]*)?")
_SEPARATORS = ",;|\t"
_ODD = "encode(value, 'UTF-8') <> cast(value as binary)"  # bytes that are not text
_LF = "\n"
# Spark decompresses files with these names.
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_BLANKS = " \t\r\n\ufeff"
_DOCUMENT = (
    "concat('{\"rows\":', if(value like '[%', value, concat('[', value, ']')), ',\"end\":true}')"
)
# Without other escapes and without pairs, what is left of `\ud83d\ude00` is half a character.
_HALF_CHARACTER = (
    r"(contains(value, '\\u') and regexp_replace(regexp_replace(value, '[\\\\][^u]', ' '), "
    r"'[\\\\]u[dD][89abAB]..[\\\\]u[dD][c-fC-F]', ' ') rlike '[\\\\]u[dD][89a-fA-F]')"
)


def read_files(session: SparkSession, address: FileAddress, name: str) -> DataFrame:
    """Give the rows of files lazily, with the declared types or else inferred ones.

    Parquet files, here those of other file systems, have their own types, and columns of folders
    `x=y` are text. Raises a `DatasetNotFoundError` without files, or a `ConfigurationError` if they
    lack a declared column, have different headers, or belong to a table of another format.
    """
    try:
        return _Files(session, address, name).frame()
    except AnalysisException as error:
        condition = condition_of(error).partition(".")[0]
        if condition == "COLUMN_ALREADY_EXISTS":
            key = (error.getMessageParameters() or {}).get("columnName", "")
            said = f"Source {name}: the files at {address.location} have objects with the key {key}"
            raise DataError(f"{said} twice, if letter case is ignored.") from error
        if condition not in _NOTHING_THERE:
            raise
        raise DatasetNotFoundError(
            f"Source {name}: there are no {address.format} files at {address.location}. Correct ",
            Remedy("location"),
            " (a relative one starts at the project's folder), or put the files there. Spark "
            "skips names that begin with _ or a dot.",
        ) from error


def given_options(address: FileAddress) -> dict[str, str]:
    """Give the user's options for Spark's reader, which ignores letter case."""
    return {key.lower(): value for key, value in address.options}


@dataclass(frozen=True)
class _Files:
    """The files of one source."""

    session: SparkSession
    address: FileAddress
    name: str

    @cached_property
    def given(self) -> dict[str, str]:
        return given_options(self.address)

    @property
    def _encoding(self) -> str:
        return self.given.get("encoding", self.given.get("charset", ""))

    @cached_property
    def options(self) -> dict[str, str]:
        form = self._form_of_lines if self.address.format == "csv" else {}
        return {**_DEFAULTS[self.address.format], **form, **self.given}

    def _refusal(self, *parts: object) -> ConfigurationError:
        return ConfigurationError(f"Source {self.name}: ", *parts)

    def _bare(self, **options: str) -> DataFrame:
        """The files without their own columns."""
        reader = self.session.read.format(self.address.format).options(**self.given)
        reader = reader.options(**options).schema(st.StructType([]))
        return reader.load(literal_location(self.address.location))

    @cached_property
    def _listed(self) -> list[str]:
        """The files' addresses, as Spark lists them."""
        try:
            return self._bare(recursivefilelookup="true").inputFiles()
        except IllegalArgumentException:  # a pattern meets a name with a colon
            return []

    @cached_property
    def _folders(self) -> dict[str, tuple[str, str]]:
        """The columns of folders: name to Spark -> name and SQL for the text, decoded as UTF-8.

        Spark decodes each `%XX` to the character of that number, which is right for what it writes
        itself. It encodes no letters beyond ASCII, so encoded ones come from another program.
        """
        names = self._bare().columns
        parts = {part for uri in self._listed for part in unquote(uri).split("/")[:-1]}
        if not any(_BEYOND_ASCII.search(part) for part in parts if "=" in part):
            return {name: (name, quote_identifier(name)) for name in names}
        written = {
            _as_spark_decodes(name): name for name, _, _ in (p.partition("=") for p in parts)
        }
        return {name: (unquote(written[name]), _value_of_folder(written[name])) for name in names}

    def frame(self) -> DataFrame:
        """The rows."""
        self._check_places()
        if self.address.format == "parquet":
            return self._selected(self._load())
        if SPARKS_OWN & self.given.keys():
            return self._selected(self._load(self._schema(self._load().schema)))
        if self.address.format == "json":
            self._check_documents()
        return self._converted()

    def _check_places(self) -> None:
        """Refuse files that Spark does not list, and those of tables with metadata."""
        there = find_files(self.address.location, self.given.get("pathglobfilter", ""))
        if there:
            refuse_tables(self.name, [file.path for file in there])
        else:
            refuse_tables(self.name, map(unquote, self._listed), self._exists, _in_braces)
        if missing := {file.path for file in there} - readable_paths(self._listed):
            raise self._refusal(
                f"Spark does not read {min(missing)}. It skips names that begin with _ or a dot, "
                "and cannot read names with a colon. Rename the file."
            )
        layouts = {_folder_names(uri): local_path(uri) for uri in sorted(self._listed)}
        if len(layouts) > 1 and self.given.get("recursivefilelookup", "").lower() != "true":
            one, other, *_ = layouts.values()  # Spark would skip one of them
            raise self._refusal(
                f"{one} and {other} are in folders of different layouts. Let ",
                Remedy("location"),
                " name files of one layout, or ignore folders: ",
                Remedy("ignore_folders"),
                ".",
            )

    def _exists(self, patterns: Sequence[str]) -> bool:
        """Whether something matches one of several patterns."""
        root = match[0] if (match := _SCHEME.match(patterns[0])) else ""
        below = ",".join(pattern[len(root) :].lstrip("/") for pattern in patterns)
        try:
            return bool(self.session.read.text(f"{root}/{{{below}}}").schema)
        except AnalysisException as error:
            if condition_of(error) != "PATH_NOT_FOUND":
                raise
            return False

    def _load(self, schema: st.StructType | None = None, **options: str) -> DataFrame:
        reader = self.session.read.format(self.address.format)
        reader = reader.options(**{**self.options, **options})
        if schema is not None:
            reader = reader.schema(schema)
        frame = reader.load(literal_location(self.address.location))
        if self.address.format == "parquet":
            with reading_stored_text(self.session):
                if client_of(self.session).has_user_types(frame):
                    raise self._refusal(
                        f"the files at {self.address.location} have a column of a user-defined "
                        "type, whose Python module would be imported. Write it as a plain type."
                    )
        hidden = find_name("_metadata", frame.columns) if self.address.format != "parquet" else None
        if odd := hidden or next(filter(SUBSTITUTION.search, _all_names(frame.schema)), None):
            where = f"the files at {self.address.location} have a column {odd}. Spark reads "
            raise self._refusal(where, "it as a setting, or reserves the name. Rename the column.")
        return frame

    def _sql(self, text: str) -> str:
        """A text of SQL as this session reads it."""
        return text_for(self.session, text)

    def _lines(self, location: str = "", **options: str) -> DataFrame:
        """The lines of the files, or of one of them."""
        others = {k: v for k, v in self.given.items() if k not in ("encoding", "charset")}
        if "value" in self._folders:  # the name that lines have
            others["recursivefilelookup"] = "true"
        reader = self.session.read.format("text").options(**{**others, **options})
        return reader.load(location or literal_location(self.address.location))

    @cached_property
    def _form_of_lines(self) -> dict[str, str]:
        """How CSV files are to be read: each line alone, or a file as a whole.

        Only as a whole, line breaks in quotes are read correctly. Raises a `ConfigurationError` if
        a file cannot be read correctly, or has another header.
        """
        quote = self.given.get("quote", '"')
        options = {"escape": quote} if quote else {}  # RFC 4180: a quote in quotes is doubled
        marks = CsvMarks(
            self._separator,
            quote,
            self.given.get("escape", quote),
            self.given.get("comment", ""),
            self._encoding,
            self.given.get("ignoreleadingwhitespace", "").lower() == "true",
        )
        if not marks.are_bytes or self.given.get("linesep", _LF) not in ("\r\n", "\r", _LF):
            # Only Spark can read these headers, and compares them with the schema.
            return {**options, "multiline": "true", "enforceschema": "false"}
        each_line = self.given.get("multiline", "").lower() == "false"
        forms: dict[str, CsvForm] = {}
        for file, text in self._texts():
            try:
                forms[file] = marks.form(text, each_line)
            except ConfigurationError as error:
                raise self._refusal(file, error) from error
        if self.given.get("header", "true").lower() == "true":
            self._check_headers({file: form.header for file, form in forms.items() if form.header})
        if not any(form.has_breaks for form in forms.values()):
            return {**options, "multiline": "false"}
        if mixed := next((file for file, form in forms.items() if len(form.ends) > 1), ""):
            said = f"cells hold line breaks, and lines of {mixed} end in several ways. "
            raise self._refusal(said, "Write it with one kind of line ends.")
        ends = {end for form in forms.values() for end in form.ends}
        # Else Spark makes a line feed of each line break in quotes.
        one = {"linesep": min(ends)} if len(ends) == 1 else {}
        return {**options, **one, "multiline": "true"}

    @property
    def _separator(self) -> str:
        separator = self.given.get("sep", self.given.get("delimiter", ","))
        return {r"\t": "\t"}.get(separator, separator)

    def _texts(self) -> Iterator[tuple[str, mmap]]:
        """The files' names and bytes; those of other machines and compressed ones by Spark."""
        for uri in sorted(self._listed):
            path = local_path(uri)
            is_here = os.path.isfile(path) and not path.endswith(_COMPRESSED)
            with open(path, "rb") if is_here else TemporaryFile() as file:
                if not is_here:
                    self._copy(uri, file)
                if os.fstat(file.fileno()).st_size:
                    with mmap(file.fileno(), 0, access=ACCESS_READ) as text:
                        yield path, text

    def _copy(self, uri: str, to: IO[bytes]) -> None:
        """Copy a file that only Spark can read."""
        lines = self._lines(_escaped(unquote(uri)), linesep=_LF)
        for line in lines.selectExpr("cast(value as binary)").toLocalIterator():
            to.write(line[0] + b"\n")
        to.flush()

    def _check_headers(self, headers: Mapping[str, str]) -> None:
        """Refuse headers that differ, repeat a name, or are separated by another character."""
        known: dict[str, list[str]] = {}
        for file, line in headers.items():
            names = known[file] = _cells(line, self._separator, self.given.get("quote", '"'))
            if pair := first_pair_alike(names) or _repeated(names):
                said = f"the header of {file} names {' and '.join(pair)}, which SQL cannot tell "
                raise self._refusal(said, "apart. Rename one of them.")
            marks = [mark for mark in _SEPARATORS if mark in line and names == [line]]
            if marks and not {"sep", "delimiter"} & self.given.keys():
                said = f"{line!r} would be the only column of {file}. If {marks[0]!r} separates "
                give = Remedy("separator", mark=marks[0])
                raise self._refusal(said, "its columns, give ", give, ".")
            first = next(iter(known))
            if Name(names).key != Name(known[first]).key:
                raise self._refusal(
                    f"the files have different headers. {first} has {', '.join(known[first])}; "
                    f"{file} has {', '.join(names)}. Write them with one header, or leave out "
                    "files that are not data: ",
                    Remedy("only_files", ending="csv"),
                    ".",
                )

    def _converted(self) -> DataFrame:
        """The rows of CSV and JSON files, each value in its type."""
        found = self._load(inferschema="false").schema
        declared = self._declared(found.names)
        types = {field.name: field.dataType for field in self._schema(found)}
        types |= dict.fromkeys(self._folders.keys() - declared.keys(), st.StringType())
        texts = [st.StructField(name, as_texts(types[name])) for name in types]
        frame = self._load(st.StructType(texts))
        values = TextValues(self.given, self.name, declared)
        if self.address.format == "csv" and self.options["inferschema"].lower() == "true":
            types |= values.infer(frame, types.keys() - declared.keys() - self._folders.keys())
        return self._selected(frame, lambda name, text: values.exact(text, types[name], name))

    def _selected(
        self, frame: DataFrame, convert: Callable[[str, str], str] = lambda name, text: text
    ) -> DataFrame:
        """All columns of a frame, those of folders decoded as UTF-8.

        `convert` gives SQL for the value of a column, by its name and SQL for its text.
        """
        chosen = []
        for name in frame.columns:
            shown, text = self._folders.get(name, (name, quote_identifier(name)))
            chosen.append(f"{convert(name, text)} as {quote_identifier(shown)}")
        return frame.selectExpr(*map(self._sql, chosen))

    def _check_documents(self) -> None:
        """Refuse JSON files with text that is not one document, a line or a file.

        Spark's own reader drops what follows a document. So each is put into a document of our own,
        whose end is read only if nothing follows. It also makes `?` of half a character.
        """
        if self._encoding.lower() not in ("", "utf-8", "utf8"):
            return
        parsed = "rows array<struct<any: string>>, end boolean, wrong string"
        options = {**self.options, "mode": "PERMISSIVE", "columnnameofcorruptrecord": "wrong"}
        lines = self._lines(wholetext=self.options.get("multiline", "false")).selectExpr(
            self._sql(f"trim(both {quote_text(_BLANKS)} from value) as value"),
            f"{_ODD} as odd",
            "_metadata.file_path as file",
        )
        half = self._sql(_HALF_CHARACTER)
        wrong = (
            # Counting is faster, but knows no options of the reader.
            lines.where(
                f"odd or (value <> '' and not (left(value, 1) = '{{' and not {half} and "
                "json_array_length(concat('[', value, ',0]')) <=> 2))"
            )
            .withColumn("parsed", F.from_json(F.expr(self._sql(_DOCUMENT)), parsed, options))
            .where(
                f"odd or {half} or parsed.wrong is not null or parsed.end is null or "
                "exists(parsed.rows, row -> row is null) or "
                "(value not like '[%' and size(parsed.rows) > 1)"
            )
            .agg(F.expr("min(struct(file, left(value, 500) as value))").alias("first"))
            .collect()[0]
            .first
        )
        if wrong is not None:
            said = f"{local_path(wrong.file)} has text that is not one JSON document in UTF-8: "
            way = Remedy("whole_documents")
            ways = f"{wrong.value!r}. Write one document a line, or give ", way, " for one a file."
            raise DataError(Message(f"Source {self.name}: ", said, *ways))

    def _declared(self, names: Sequence[str]) -> dict[str, str]:
        """The declared types, by the names of the files' columns."""
        return {find_name(name, names) or name: text for name, text in self.address.columns}

    def _schema(self, found: st.StructType) -> st.StructType:
        """The files' columns with the declared types."""
        texts = self._declared(found.names)
        declared = {name: spark_type(parse_type(text)) for name, text in texts.items()}
        place, are = f"the files at {self.address.location} have", Remedy("declared")
        if declared and self.address.format == "csv" and self.options["header"].lower() != "true":
            if len(found) != len(declared):
                raise self._refusal(
                    f"{place} no header and {len(found)} columns, but {len(declared)} are ",
                    are,
                    " with a data_type. Declare all of them in their order, or none.",
                )
            return st.StructType([st.StructField(name, t) for name, t in declared.items()])
        unknown = [column for column in declared if column not in found.names]
        if unknown:
            hint = did_you_mean(unknown[0], found.names, "{}")
            said = f" with a data_type.{hint} They have: {', '.join(found.names)}."
            raise self._refusal(f"{place} no column {', '.join(unknown)}, which is ", are, said)
        return st.StructType(
            [st.StructField(f.name, declared.get(f.name, f.dataType)) for f in found.fields]
        )


def _value_of_folder(name: str) -> str:
    """SQL for the text of a column of folders, by the folder's name."""
    path = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
    pattern = quote_text(f".*/{re.escape(name)}=([^/]*)/.*")
    # A percent sign that encodes nothing is itself.
    text = rf"regexp_replace(regexp_extract({path}, {pattern}, 1), '%(?![0-9A-Fa-f]{{2}})', '%25')"
    value = f"url_decode(replace({text}, '+', '%2B'))"
    return f"nullif(nullif({value}, ''), {quote_text(HIVE_NULL)})"


def _as_spark_decodes(name: str) -> str:
    """The name that Spark gives to a column of folders."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def _cells(line: str, separator: str, quote: str) -> list[str]:
    """The cells of a header's line; the line itself if only Spark can read it."""
    try:
        return next(csv.reader([line], delimiter=separator, quotechar=quote or None), [line])
    except (csv.Error, TypeError):
        return [line]


def _repeated(names: Sequence[str]) -> tuple[str, str] | None:
    """The first name that comes twice; Spark numbers columns without one."""
    return next(((name, name) for name in names if name and names.count(name) > 1), None)


def _all_names(t: st.DataType) -> Iterator[str]:
    """The names of a type's fields, in any depth."""
    for field in t.fields if isinstance(t, st.StructType) else ():
        yield field.name
        yield from _all_names(field.dataType)
    if isinstance(t, st.ArrayType):
        yield from _all_names(t.elementType)


def local_path(uri: str) -> str:
    """The path of a file of this machine; the address of any other."""
    return os.path.realpath(unquote(uri[5:])) if uri.startswith("file:") else uri


def _folder_names(uri: str) -> tuple[str, ...]:
    """The names of the folders `name=text` that a file is in."""
    return tuple(part.partition("=")[0] for part in uri.split("/")[:-1] if "=" in part)


def readable_paths(uris: Iterable[str]) -> set[str]:
    """The paths of files that Spark has listed, without names that it cannot open."""
    return {path for path in map(local_path, uris) if ":" not in os.path.basename(path)}


def literal_location(location: str) -> str:
    """Escape an existing path of this machine, which is not a pattern, whatever its name."""
    return _escaped(location) if os.path.exists(location) else location


def _escaped(path: str) -> str:
    """A pattern that matches a path alone."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _in_braces(path: str) -> str:
    """A pattern for a path among others between braces."""
    return _escaped(path).replace(",", "\\,")
