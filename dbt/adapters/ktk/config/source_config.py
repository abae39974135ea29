"""Where the rows of sources, and of deferred nodes, are stored outside the profile's store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.voice import DBT
from ktk_engine.catalog.source_address import (
    FILE_FORMATS,
    Address,
    FileAddress,
    FileFormat,
    Pairs,
    StoreAddress,
)
from ktk_engine.errors import KtkError
from ktk_engine.log.version import check_tag
from ktk_engine.store.open_store import is_url
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean, nearest_name

_FILE_KEYS = ("ktk_location", "ktk_format", "ktk_options")
_STORE_KEYS = ("ktk_store", "ktk_cube", "ktk_dataset", "ktk_version")
_KEYS = (*_FILE_KEYS, *_STORE_KEYS)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")


@dataclass(frozen=True)
class Project:
    """Where the relative paths of a project start."""

    root: Path
    store: str  # of the profile
    defer_store: str = ""  # of the profile; empty if `--state` describes `store`

    def absolute(self, location: str) -> str:
        """Resolve a relative path against the project's folder; a URL stays as it is."""
        return location if is_url(location) else str(self.root / os.path.expanduser(location))

    def schema_url(self, schema: str, store: str = "") -> str:
        """The folder of a schema in a store, by default in the profile's."""
        return f"{self.absolute(store or self.store).rstrip('/')}/{schema}"

    def deferred(self, node: RelationConfig) -> StoreAddress | None:
        """The address of a node of another environment; None for the profile's store."""
        if not self.defer_store:
            return None
        return StoreAddress(self.schema_url(node.schema, self.defer_store), node.identifier)


def project_of(config: Any) -> Project:
    """Read it from dbt's configuration of a project with its profile."""
    profile = config.credentials
    root = Path(getattr(config, "project_root", "") or Path.cwd())  # `dbt debug` has no project
    return Project(root, str(profile.store), str(profile.defer_store or ""))


def source_address(source: RelationConfig, project: Project) -> Address | None:
    """Read where a source's rows are stored, from its `config` or `meta`; `config` wins.

    None without keys of this adapter: a relation of the profile's store. The `DbtConfigError` of an
    unknown or contradictory key says what to write.
    """
    found = _Source(source, _keys_of(source))
    if not found.keys:
        return None
    found.check_keys()
    if "ktk_location" in found.keys:
        return FileAddress(
            project.absolute(found.text("ktk_location")),
            found.format(),
            found.options(),
            tuple(found.columns()),
        )
    store = project.schema_url(source.schema)
    if "ktk_store" in found.keys:
        store = project.absolute(found.text("ktk_store"))
    return StoreAddress(store, found.relation(), found.version())


def _keys_of(source: RelationConfig) -> dict[str, Any]:
    """This adapter's keys in a source."""
    config: Any = source.config
    extra = getattr(config, "extra", None) or {}
    given = {**(source.meta or {}), **extra}
    return {key: value for key, value in given.items() if str(key).startswith("ktk_")}


class _Source:
    """Reads the keys of one source and says precisely what is wrong with them."""

    def __init__(self, source: RelationConfig, keys: Mapping[str, Any]) -> None:
        self.keys = keys
        self._columns: Mapping[str, Any] = getattr(source, "columns", None) or {}
        self._names = {
            "name": source.name,
            "identifier": source.identifier,
            "schema": source.schema,
            "source_name": str(getattr(source, "source_name", "")),
        }

    def check_keys(self) -> None:
        """Refuse unknown keys, and keys that contradict each other."""
        for key in self.keys:
            if key not in _KEYS:
                hint = did_you_mean(key, _KEYS)
                raise self._refused(key, f"is unknown.{hint} Known: {', '.join(_KEYS)}")
        files = [key for key in _FILE_KEYS if key in self.keys]
        stores = [key for key in _STORE_KEYS if key in self.keys]
        if files and stores:
            raise self._refused(
                files[0],
                f"is about plain files, `{stores[0]}` about a Kartothek store: remove one",
            )
        if files and "ktk_location" not in files:
            raise self._refused(files[0], "needs `ktk_location`, the file or folder")
        if "ktk_cube" in stores and "ktk_dataset" in stores:
            raise self._refused("ktk_dataset", "contradicts `ktk_cube`: remove one")

    def text(self, key: str) -> str:
        """A text with `{name}` and the like filled in."""
        value = self.keys[key]
        if not isinstance(value, str) or not value.strip():
            raise self._refused(key, f"must be text, but is {value!r}")
        return _PLACEHOLDER.sub(lambda match: self._filled_in(key, match[1]), value)

    def _filled_in(self, key: str, name: str) -> str:
        """The value of a word in braces; others are part of the path, or refused as typos."""
        if name in self._names:
            return self._names[name]
        nearest = nearest_name(name, self._names)
        if nearest:
            raise self._refused(key, f"holds {{{name}}}. Did you mean {{{nearest}}}?")
        return f"{{{name}}}"

    def format(self) -> FileFormat:
        """The files' format, by the config or by their suffix."""
        if "ktk_format" in self.keys:
            given = self.text("ktk_format").lower()
            if given not in FILE_FORMATS:
                raise self._refused("ktk_format", f"is {given!r}. Known: {', '.join(FILE_FORMATS)}")
            return cast(FileFormat, given)
        path = PurePosixPath(self.text("ktk_location"))
        ending = (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix
        found = {".jsonl": "json", ".ndjson": "json"}.get(ending, ending.removeprefix("."))
        if found not in FILE_FORMATS:
            raise self._refused(
                "ktk_location",
                f"does not tell the format of {path}: set `ktk_format` to "
                f"{', '.join(FILE_FORMATS)}",
            )
        return cast(FileFormat, found)

    def options(self) -> Pairs:
        """Options of Spark's reader."""
        value = self.keys.get("ktk_options") or {}
        if not isinstance(value, Mapping):
            raise self._refused("ktk_options", f"must be a mapping, but is {value!r}")
        return tuple((str(key), _option(item)) for key, item in value.items())

    def columns(self) -> Iterator[tuple[str, str]]:
        """Columns with a type in YAML."""
        for name, column in self._columns.items():
            text = getattr(column, "data_type", None)
            if not text:
                continue
            try:
                parse_type(str(text))
            except KtkError as error:
                message = f"gives `{name}` the data_type {text!r}: {error.said(DBT).rstrip('.')}"
                raise self._refused("columns", message) from error
            yield str(name), str(text)

    def relation(self) -> str:
        """The relation to read of a store: a cube, a dataset, or by default the source's name."""
        for kind in ("cube", "dataset"):
            if f"ktk_{kind}" in self.keys:
                return f"{kind}:{self.text(f'ktk_{kind}')}"
        return self._names["identifier"]

    def version(self) -> int | str | None:
        """The version to read; None for the newest."""
        value = self.keys.get("ktk_version")
        if value is None or (type(value) is int and value > 0):
            return value
        try:
            return check_tag(value)
        except KtkError as error:
            raise self._refused(
                "ktk_version",
                f"must be a number as `ktk history` lists them, or a tag, but is {value!r}",
            ) from error

    def _refused(self, key: str, message: str) -> DbtConfigError:
        who = f"{self._names['source_name']}.{self._names['name']}"
        return DbtConfigError(f"Source {who}: config `{key}` {message}.")


def _option(value: object) -> str:
    """An option in Spark's form; YAML's true is Spark's `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
