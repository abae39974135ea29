"""Reads plain files of other programs as a source.

Spark reads CSV and JSON files, and parquet files that it reads correctly: see `parquet_files`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyspark  # noqa: F401
from pyspark.errors import AnalysisException
from pyspark.sql import types as st

from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.compatibility import condition_of
from ktk_engine.spark.read.scan import UNBOUNDED
from ktk_engine.spark.session.session import text_for
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_name
from ktk_engine.types.quote import quote_identifier, quote_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's default mode would silently turn a value that does not fit into null.
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "parquet": UNBOUNDED,
    "json": {"mode": "FAILFAST"},
    "csv": {"mode": "FAILFAST", "header": "true", "inferschema": "true"},
}
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE, _BEYOND_ASCII = re.compile("%([0-9A-Fa-f]{2})"), re.compile("%[89A-Fa-f][0-9A-Fa-f]")
_NOTHING_THERE = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


def read_files(session: SparkSession, address: FileAddress, name: str) -> DataFrame:
    """Give the rows of files lazily, with the declared types or else those that Spark infers.

    Parquet files, here those of other file systems, have their own types, and columns of folders
    `x=y` are text. Raises a `DatasetNotFoundError` without files, or a `ConfigurationError` if they
    lack a declared column.
    """
    options = {**_DEFAULTS[address.format], **given_options(address)}
    try:
        if address.format == "parquet" or not address.columns:
            return _with_decoded_folders(_load(session, address, options, None))
        found = _schema(session, address, options, name)
        # By name: Spark compares each file's header with the schema.
        frame = _load(session, address, {**options, "enforceschema": "false"}, found)
        return _with_decoded_folders(frame)
    except AnalysisException as error:
        if condition_of(error).partition(".")[0] not in _NOTHING_THERE:
            raise
        raise DatasetNotFoundError(
            Message(
                f"Source {name}: there are no {address.format} files at {address.location}. "
                "Correct ",
                Remedy("location"),
                " (a relative one starts at the project's folder), or put the files there.",
            )
        ) from error


def given_options(address: FileAddress) -> dict[str, str]:
    """Give the user's options for Spark's reader, which ignores letter case."""
    return {key.lower(): value for key, value in address.options}


def _load(
    session: SparkSession,
    address: FileAddress,
    options: Mapping[str, str],
    schema: st.StructType | None,
) -> DataFrame:
    reader = session.read.format(address.format).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(literal_location(address.location))


def _schema(
    session: SparkSession, address: FileAddress, options: Mapping[str, str], name: str
) -> st.StructType:
    """The files' columns with the declared types; rows are read only to infer the others."""
    declared = {column: spark_type(parse_type(text)) for column, text in address.columns}
    if address.format == "csv" and options["header"].lower() != "true":
        return _without_header(session, address, options, declared, name)
    without_types = {**options, "inferschema": "false"}
    found = _load(session, address, without_types, None).schema
    declared = {find_name(column, found.names) or column: t for column, t in declared.items()}
    unknown = [column for column in declared if column not in found.names]
    if unknown:
        hint = did_you_mean(unknown[0], found.names, "{}")
        raise ConfigurationError(
            Message(
                f"Source {name}: the files at {address.location} have no column "
                f"{', '.join(unknown)}, which is ",
                Remedy("declared"),
                f" with a data_type.{hint} They have: {', '.join(found.names)}.",
            )
        )
    if address.format == "csv" and set(found.names) - set(declared):
        found = _load(session, address, options, None).schema
    return st.StructType(
        [st.StructField(f.name, declared.get(f.name, f.dataType)) for f in found.fields]
    )


def _without_header(
    session: SparkSession,
    address: FileAddress,
    options: Mapping[str, str],
    declared: Mapping[str, st.DataType],
    name: str,
) -> st.StructType:
    """Columns of files without a header: the declared ones, in order."""
    found = _load(session, address, {**options, "inferschema": "false"}, None).schema
    if len(found) != len(declared):
        raise ConfigurationError(
            Message(
                f"Source {name}: the files at {address.location} have no header and {len(found)} "
                f"columns, but {len(declared)} are ",
                Remedy("declared"),
                " with a data_type. Declare all of them in their order, or none.",
            )
        )
    return st.StructType([st.StructField(column, type_) for column, type_ in declared.items()])


def _with_decoded_folders(frame: DataFrame) -> DataFrame:
    """Decode columns of folders as UTF-8 where their names are percent-encoded.

    Spark decodes each `%XX` to the character of that number, which is right for what it writes
    itself. It encodes no letters beyond ASCII, so encoded ones come from another program.
    """
    folders: dict[str, None] = {}
    for uri in frame.inputFiles():
        found = [part for part in unquote(uri).split("/")[:-1] if "=" in part]
        folders.update(dict.fromkeys(found))
    if not any(map(_BEYOND_ASCII.search, folders)):
        return frame
    names = dict.fromkeys(folder.partition("=")[0] for folder in folders)
    written = {_as_spark_decodes(name): name for name in names}
    chosen = [
        _value_of_folder(written[field.name])
        if field.name in written
        else quote_identifier(field.name)
        for field in frame.schema.fields
    ]
    return frame.selectExpr(*(text_for(frame.sparkSession, text) for text in chosen))


def _value_of_folder(name: str) -> str:
    """SQL for a column of folders, by the folder's name."""
    path = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
    pattern = quote_text(f".*/{re.escape(name)}=([^/]*)/.*")
    # A percent sign that encodes nothing stands for itself.
    text = rf"regexp_replace(regexp_extract({path}, {pattern}, 1), '%(?![0-9A-Fa-f]{{2}})', '%25')"
    value = f"url_decode(replace({text}, '+', '%2B'))"
    known = f"nullif(nullif({value}, ''), {quote_text(_HIVE_NULL)})"
    return f"{known} as {quote_identifier(unquote(name))}"


def _as_spark_decodes(name: str) -> str:
    """The name that Spark gives to a column of folders."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def literal_location(location: str) -> str:
    """Escape an existing path of this machine, which is no pattern, whatever its name."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", location) if os.path.exists(location) else location
